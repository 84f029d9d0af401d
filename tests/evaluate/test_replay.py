"""What the gateway recorded is decided again from its ledger: the same by the same router, and never guessed for another."""

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.replays import replayed
from tests.running import Running, running, script

from turnout.errors import TapeMiss
from turnout.evaluate.replay import differences, replay, turn_of
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.routing import Escalation, TargetName

JSON = dict[str, Any]
FAILED = "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2\n========= 1 failed, 2 passed in 0.12s ========="
TOML = """
[upstreams.weak]
format = "anthropic_messages"
script = "weak.jsonl"
max_retries = 0
[upstreams.judge]
format = "openai_chat"
script = "judge.jsonl"
max_retries = 0
[upstreams.sorter]
format = "openai_chat"
script = "sorter.jsonl"
[targets.weak]
upstream = "weak"
model = "weak"
price = { input = 1.0, output = 2.0, cache_read = 0.1, cache_write = 1.2 }
[targets.strong]
upstream = "weak"
model = "strong"
price = { input = 10.0, output = 50.0, cache_read = 1.0, cache_write = 12.0 }
[targets.judge]
upstream = "judge"
model = "judge"
price = { input = 0.5, output = 1.0 }
[targets.sorter]
upstream = "sorter"
model = "sorter"
[routes.escalating]
type = "escalation"
weak = "weak"
strong = "strong"
judge = "judge"
[routes.staged]
type = "stage"
efficient = "weak"
capable = "strong"
hold = 2
[routes.staged.switch_price]
[routes.sorted]
type = "classifier"
efficient = "weak"
capable = "strong"
judge = "sorter"
trigger = "user_turn"
[routes.pinned]
type = "affinity"
[routes.pinned.router]
type = "random"
targets = ["weak", "strong"]
[routes.broken]
type = "passthrough"
target = "judge"
fallbacks = ["weak"]
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("replay")
    script(
        folder,
        "weak.jsonl",
        {"contains": "break", "model": "weak", "status": 500, "error": "broken"},
        {"text": "I try again."},
    )
    verdict = {"crux": "it", "primary_rule": "LIM-1", "capability_boundary": "unsupported", "p_solve": 0.25}
    script(
        folder,
        "judge.jsonl",
        {"contains": "refuse", "status": 500, "error": "the judge is down"},
        {"contains": "ramble", "text": "Let me think."},
        {"text": '{"reason": "a loop", "escalate": true}'},
    )
    script(folder, "sorter.jsonl", {"text": json.dumps(verdict)})
    with running(TOML, folder, capture="full") as served:
        for route in ("escalating", "staged", "sorted", "pinned"):
            for session in range(3):
                played(served, route, f"{route}-{session}", session)
        ask(served, "broken", "broken", [{"role": "user", "content": "refuse"}])
        yield served


def played(gateway: Running, route: str, session: str, number: int) -> None:
    """A session of six turns whose tests go on failing; now and then its models and judges fail as well."""
    messages: list[JSON] = [{"role": "user", "content": "make the tests pass " + "and mind the style " * 400}]
    for turn in range(6):
        ask(gateway, route, session, messages)
        function = {"name": "Bash", "arguments": json.dumps({"command": "pytest tests/test_a.py"})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            }
        )
        word = ("", "ramble", "break")[number] if turn == 0 else ""
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"{FAILED} {word}"})
        if turn == 3:
            messages += [
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": "it still fails, look again"},
            ]


def ask(gateway: Running, route: str, session: str, messages: list[JSON]) -> None:
    body = json.dumps({"model": route, "messages": messages}).encode()
    headers = {"content-type": "application/json", "x-turnout-session": session}
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", body, headers)
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=20) as response:
        response.read()


def recorded(gateway: Running, **wanted: Any) -> TurnRecord:
    """A turn, its request included, whose route and rule are these."""
    found = next(
        turn
        for turn in reversed(gateway.settled())
        if turn.why is not None and turn.route == wanted["route"] and turn.why.rule == wanted.get("rule", turn.why.rule)
    )
    ledger = Ledger.read(gateway.ledger_url)
    try:
        record = ledger.turn(found.id)
    finally:
        ledger.close()
    assert record is not None
    return record


def test_every_turn_is_decided_again_as_it_was(gateway: Running):
    turns = gateway.settled()
    assert replayed(gateway) == len(turns) == 4 * 3 * 6 + 1
    rules = {turn.why.rule for turn in turns if turn.why}
    sources = {turn.why.source for turn in turns if turn.why}
    assert {"latched", "voted", "judge_failed", "weak_failed"} <= rules
    assert {"judge", "latch", "classifier", "pin", "override", "fallback"} <= sources


def test_other_settings_ask_something_else_and_are_not_answered(gateway: Running):
    record = recorded(gateway, route="escalating", rule="voted")
    facts = gateway.gateway.models.facts()
    fields = {"weak": "weak", "strong": "strong", "judge": "judge", "type": "escalation"}
    same = msgspec.convert(fields, Escalation)
    assert differences(record, replay(record, same, facts)) == []
    at_once = msgspec.convert({**fields, "confirmations": 1}, Escalation)
    decision = replay(record, at_once, facts)
    assert (decision.target, decision.why.rule) == ("strong", "latched")
    assert differences(record, decision)[0] == "target strong instead of weak"
    latched = recorded(gateway, route="escalating", rule="latched")
    assert differences(latched, replay(latched, same, facts)) == []
    for change in ({"judging": {"prompt": "Is it stuck?"}}, {"transcript": {"window": 2}}, {"judge": "strong"}):
        with pytest.raises(TapeMiss, match="judge call"):
            replay(latched, msgspec.convert({**fields, **change}, Escalation), facts)


def test_what_was_remembered_is_compared_too(gateway: Running):
    record = recorded(gateway, route="escalating", rule="voted")
    router, facts = gateway.gateway.config.routes["escalating"].router, gateway.gateway.models.facts()
    changed = msgspec.structs.replace(
        record, remembered=({"event": "escalation_voted", "turn": "x", "escalate": True},)
    )
    assert "remembers" in differences(changed, replay(record, router, facts))[0]
    forgotten = msgspec.structs.replace(record, memory={"/EscalationMemory": {"streak": 1}})
    assert replay(forgotten, router, facts).why.rule == "latched"


def test_targets_that_were_cooling_are_unhealthy_again(gateway: Running):
    record = recorded(gateway, route="staged")
    facts = gateway.gateway.models.facts()
    was = turn_of(msgspec.structs.replace(record, cooling=("strong",)), facts).targets
    assert {name: fact.healthy for name, fact in was.items()} == {
        "weak": True,
        "strong": False,
        "judge": True,
        "sorter": True,
    }
    assert facts[TargetName("strong")].healthy


def test_a_record_without_its_request_is_a_miss_that_says_what_it_takes(gateway: Running):
    facts = gateway.gateway.models.facts()
    (record, *_) = gateway.settled()
    for look in (
        lambda turn: turn.conversation.messages,
        lambda turn: len(turn.conversation),
        lambda turn: turn.settings.store,
    ):
        with pytest.raises(TapeMiss, match='capture = "full"') as missed:
            look(turn_of(record, facts))
        assert missed.value.reason == "conversation"
    with pytest.raises(TapeMiss, match="without signals"):
        turn_of(msgspec.structs.replace(record, signals=None), facts)
    continued = msgspec.structs.replace(
        recorded(gateway, route="staged"),
        format="openai_responses",
        request=b'{"model": "staged", "input": "and?", "previous_response_id": "resp_1"}',
    )
    with pytest.raises(TapeMiss, match="continues a response") as missed:
        len(turn_of(continued, facts).conversation)
    assert missed.value.reason == "continued"
    assert turn_of(continued, facts).settings.model == "staged"


def test_a_router_that_reads_only_signals_decides_without_the_request(gateway: Running):
    facts, routes = gateway.gateway.models.facts(), gateway.gateway.config.routes
    listed = [turn for turn in gateway.settled() if turn.route == "staged"]
    assert all(turn.request is None for turn in listed)
    for turn in listed:
        assert differences(turn, replay(turn, routes["staged"].router, facts)) == []
        with pytest.raises(TapeMiss):
            replay(turn, routes["escalating"].router, facts)


def test_lists_of_turns_hold_no_replies(gateway: Running):
    assert all(turn.asked == () for turn in gateway.settled())
    assert recorded(gateway, route="escalating", rule="voted").asked != ()


def test_without_full_capture_nothing_of_it_is_kept(tmp_path: Path):
    script(tmp_path, "weak.jsonl", {"text": "I try again."})
    script(tmp_path, "judge.jsonl", {"text": '{"reason": "fine", "escalate": false}'})
    script(tmp_path, "sorter.jsonl", {"text": "?"})
    with running(TOML, tmp_path) as gateway:
        ask(gateway, "escalating", "s", [{"role": "user", "content": "hi"}])
        record = recorded(gateway, route="escalating")
    assert (record.request, record.asked, record.cooling) == (None, (), ())
