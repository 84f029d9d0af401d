"""The cache ledger over whole sessions: what it predicts is what is reported, and who broke a prefix is named."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from msgspec import Struct
from tests.running import Running, running, script

from turnout.conversation import Edit, Instruction, Note
from turnout.gateway.warmth import PREFIX_KEY
from turnout.ledger.trace import TurnRecord
from turnout.routing import Passthrough
from turnout.routing.core import Forward, TargetName, Turn, Why
from turnout.routing.warmth import KEY, CacheUse
from turnout.upstream.scripted import Script

ROUTES = """
[upstreams.plain]
format = "openai_chat"
script = "{folder}/script.jsonl"
[upstreams.marked]
format = "anthropic_messages"
script = "{folder}/script.jsonl"
[targets.plain]
upstream = "plain"
model = "gpt-one"
price = {{ input = 1.0, output = 4.0, cache_read = 0.1 }}
[targets.other]
upstream = "plain"
model = "gpt-two"
price = {{ input = 5.0, output = 20.0, cache_read = 0.5 }}
[targets.marked]
upstream = "marked"
model = "three"
price = {{ input = 5.0, output = 25.0, cache_read = 0.5, cache_write = 6.25 }}
[targets.second]
upstream = "marked"
model = "five"
price = {{ input = 1.0, output = 5.0, cache_read = 0.1, cache_write = 1.25 }}
[targets.unmarked]
upstream = "marked"
model = "three"
price = {{ input = 5.0, output = 25.0, cache_read = 0.5, cache_write = 6.25 }}
cache_marks = false
[targets.unmarked_second]
upstream = "marked"
model = "five"
price = {{ input = 1.0, output = 5.0, cache_read = 0.1, cache_write = 1.25 }}
cache_marks = false
[routes.unmarked]
type = "passthrough"
target = "unmarked"
[routes.unmarked_second]
type = "passthrough"
target = "unmarked_second"
[routes.second]
type = "passthrough"
target = "second"
[targets.unpriced]
upstream = "plain"
model = "four"
[routes.plain]
type = "passthrough"
target = "plain"
[routes.other]
type = "passthrough"
target = "other"
[routes.marked]
type = "passthrough"
target = "marked"
[routes.careful]
type = "careful"
target = "plain"
[routes.unpriced]
type = "passthrough"
target = "unpriced"
"""
TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}]
LONG = " ".join(f"fact {i} is that {i * 7919 % 1009} follows." for i in range(400))


class Careful(Struct, frozen=True, tag="careful", tag_field="type", forbid_unknown_fields=True):
    """Puts a prompt before conversations that ask for it, and a note at the end of those that ask for that."""

    target: TargetName

    @property
    def otherwise(self) -> TargetName:
        return self.target

    def route(self, turn: Turn) -> Forward:
        newest = turn.conversation.messages[-1].text
        edits: tuple[Edit, ...] = ()
        if "prompt, please" in newest:
            edits = (Instruction("Take particular care."),)
        elif "note, please" in newest:
            edits = (Note("Mind the tests. " * 500),)
        return Forward(self.target, Why("fixed", "as asked"), edits=edits)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Running]:
    script(tmp_path, "script.jsonl", {"text": "Very well: " + "noted. " * 30})
    with running(ROUTES.format(folder=tmp_path), tmp_path, routers=Passthrough | Careful) as served:
        yield served


def opening(system: str = "You work with great care. " + LONG) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": "Begin with step 0. " + LONG[:2000]}]


def grown(messages: list[dict[str, Any]], step: int = 1) -> list[dict[str, Any]]:
    return [
        *messages,
        {"role": "assistant", "content": f"Very well, step {step} is done. " + LONG[:600]},
        {"role": "user", "content": f"Go on with step {step}. " + LONG[:900]},
    ]


def send(gateway: Running, route: str, messages: list[dict[str, Any]], session: str = "s", **more: Any) -> TurnRecord:
    headers = {"content-type": "application/json", "x-turnout-session": session}
    body = {"model": route, "messages": messages, "tools": TOOLS, **more}
    with urlopen(Request(f"{gateway.url}/v1/chat/completions", json.dumps(body).encode(), headers), timeout=10) as got:
        got.read()
    return gateway.settled()[0]


def use_of(record: TurnRecord) -> CacheUse:
    assert record.cache is not None
    return record.cache


def test_a_growing_session_reads_what_was_predicted(gateway: Running) -> None:
    messages = opening()
    first = use_of(send(gateway, "plain", messages))
    assert (first.cause, first.predicted_read, first.reported_read) == ("first", 0, 0)
    for step in range(1, 7):
        messages = grown(messages, step)
        record = send(gateway, "plain", messages)
        use = use_of(record)
        assert use.cause == ""
        assert use.reported_read is not None
        assert use.reported_read > 3000
        assert use.predicted_read == pytest.approx(use.reported_read, rel=0.02)
    assert use.bias == pytest.approx(0.0, abs=0.02)
    state = record.memory[KEY]
    assert state["turns"] == 6
    assert state["growth_tokens"] == pytest.approx(use.prompt_tokens - state["prompt_tokens"], rel=0.2)
    assert PREFIX_KEY not in record.memory


def test_streamed_turns_count_too(gateway: Running) -> None:
    messages = opening()
    send(gateway, "plain", messages, stream=True)
    use = use_of(send(gateway, "plain", grown(messages), stream=True))
    assert use.cause == ""
    assert use.predicted_read == pytest.approx(use.reported_read or 0, rel=0.02)


def test_a_switch_finds_the_other_cache_cold_and_the_way_back_what_was_left(gateway: Running) -> None:
    messages = opening()
    sizes = [use_of(send(gateway, "plain", messages)).prompt_tokens]
    messages = grown(messages, 1)
    away = use_of(send(gateway, "other", messages))
    assert (away.cause, away.predicted_read, away.reported_read) == ("switch", 0, 0)
    assert away.lost_tokens == sizes[0]
    for step in range(2, 12):
        messages = grown(messages, step)
        stayed = use_of(send(gateway, "other", messages))
        assert stayed.cause == ""
    back = use_of(send(gateway, "plain", grown(messages, 12)))
    assert back.cause == "switch"
    assert back.reported_read is not None
    assert back.predicted_read == pytest.approx(back.reported_read, rel=0.02)
    assert back.predicted_read == pytest.approx(sizes[0], rel=0.05)


def marked(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The conversation as a Messages client sends it: cache marks on the instructions and on the newest message, which is
    written as a list for that."""
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": messages[0]["content"], "cache_control": mark}]
    last = {"role": "user", "content": [{"type": "text", "text": messages[-1]["content"], "cache_control": mark}]}
    return {"system": system, "messages": [*messages[1:-1], last], "max_tokens": 500}


def ask_marked(gateway: Running, route: str, messages: list[dict[str, Any]]) -> CacheUse:
    headers = {"content-type": "application/json", "x-turnout-session": "m", "anthropic-version": "2023-06-01"}
    body = json.dumps({"model": route, **marked(messages)}).encode()
    with urlopen(Request(f"{gateway.url}/v1/messages", body, headers), timeout=10) as got:
        got.read()
    return use_of(gateway.settled()[0])


def test_cache_marks_that_move_along_break_nothing(gateway: Running) -> None:
    messages = opening()
    for step in range(1, 5):
        use = ask_marked(gateway, "marked", messages)
        assert use.cause == ("first" if step == 1 else "")
        assert use.reported_read is not None
        assert use.reported_write is not None
        assert use.predicted_read == pytest.approx(use.reported_read, rel=0.02)
        assert use.predicted_write == pytest.approx(use.reported_write, rel=0.2)
        messages = grown(messages, step)


def test_a_client_without_marks_reads_from_a_cache_that_wants_them(gateway: Running) -> None:
    """What a Chat client sends to a Messages model is marked on the way: all but the newest turn is read."""
    messages, before = opening(), 0
    for step in range(1, 6):
        use = use_of(send(gateway, "marked", messages, stream=step % 2 == 0))
        assert use.cause == ("first" if step == 1 else "")
        assert use.reported_read == pytest.approx(before, abs=20)
        assert use.predicted_read == pytest.approx(use.reported_read or 0, rel=0.02)
        assert (use.reported_read or 0) + (use.reported_write or 0) == pytest.approx(use.prompt_tokens, abs=20)
        before = use.prompt_tokens
        messages = grown(messages, step)


def test_where_nothing_is_marked_to_be_kept_a_switch_breaks_nothing(gateway: Running) -> None:
    messages = opening()
    for step, route in enumerate(("unmarked", "unmarked_second", "unmarked"), 1):
        use = use_of(send(gateway, route, messages))
        assert (use.reported_read, use.reported_write) == (0, 0)
        assert use.cause == ("first" if step == 1 else "")
        messages = grown(messages, step)


def test_a_model_gets_its_own_reasoning_back_and_so_finds_its_prefix_again(tmp_path: Path) -> None:
    """The model that thought first wrote a prefix with its thinking; that another has thought since changes nothing of it."""
    script(tmp_path, "script.jsonl", {"reasoning": "Let me see. ", "text": "Very well. " + "noted. " * 30})
    thought = {"type": "thinking", "thinking": LONG[:1500], "signature": "c2ln"}
    messages = opening()
    with running(ROUTES.format(folder=tmp_path), tmp_path, routers=Passthrough | Careful) as gateway:
        uses = []
        for step, route in enumerate(("marked", "marked", "marked", "second", "marked"), 1):
            uses.append(ask_marked(gateway, route, messages))
            messages = grown(messages, step)
            messages[-2]["content"] = [thought, {"type": "text", "text": messages[-2]["content"]}]
    assert [use.cause for use in uses[:4]] == ["first", "", "", "switch"]
    assert uses[4].cause == ""
    assert uses[4].predicted_read == pytest.approx(uses[4].reported_read or 0, rel=0.1)
    assert uses[4].predicted_read >= uses[3].prompt_tokens * 0.7


def after(gateway: Running, changed: list[dict[str, Any]], messages: list[dict[str, Any]], **more: Any) -> CacheUse:
    """The use of a turn that sends `changed` after a turn that sent `messages`."""
    send(gateway, "plain", messages)
    return use_of(send(gateway, "plain", changed, **more))


def deep() -> list[dict[str, Any]]:
    messages = opening()
    for step in range(1, 6):
        messages = grown(messages, step)
    return messages


def test_an_agent_that_rewrites_its_instructions_is_named(gateway: Running) -> None:
    messages = deep()
    changed = [{"role": "system", "content": "Today is another day. " + messages[0]["content"]}, *messages[1:]]
    use = after(gateway, grown(changed, 6), messages)
    assert (use.cause, use.part, use.message) == ("agent", "system", 0)
    assert use.reported_read == 0
    assert use.predicted_read == 0
    assert use.lost_tokens > 4000


def test_an_agent_that_changes_its_tools_is_named(gateway: Running) -> None:
    messages = deep()
    tools = [{"type": "function", "function": {"name": "walk", "parameters": {"type": "object", "properties": {}}}}]
    use = after(gateway, grown(messages, 6), messages, tools=tools)
    assert (use.cause, use.part, use.message) == ("agent", "tools", None)
    assert use.predicted_read == use.reported_read == 0


def test_an_answer_shortened_in_place_is_the_agents_doing(gateway: Running) -> None:
    messages = deep()
    changed = [*messages[:4], {"role": "assistant", "content": "[cleared]"}, *messages[5:]]
    use = after(gateway, grown(changed, 6), messages)
    assert (use.cause, use.part, use.message, use.upto) == ("agent", "message", 4, None)
    assert use.reported_read is not None
    assert use.predicted_read == pytest.approx(use.reported_read, rel=0.1)


def test_messages_taken_out_from_the_front_are_the_agents_doing(gateway: Running) -> None:
    messages = deep()
    use = after(gateway, grown([*messages[:1], *messages[3:]], 6), messages)
    assert (use.cause, use.part, use.message) == ("agent", "truncated", 1)


def test_a_message_of_the_users_changed_in_place_is_the_clients_doing(gateway: Running) -> None:
    messages = deep()
    changed = [*messages[:3], {"role": "user", "content": "No, something else. " + LONG[:900]}, *messages[4:]]
    use = after(gateway, grown(changed, 6), messages)
    assert (use.cause, use.part, use.message) == ("client", "message", 3)


def asking(messages: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [*messages[:-1], {"role": "user", "content": f"{messages[-1]['content']} A {what}, please."}]


def test_a_prompt_of_ours_breaks_the_prefix_and_is_named(gateway: Running) -> None:
    messages = deep()
    send(gateway, "careful", messages)
    messages = asking(grown(messages, 6), "prompt")
    use = use_of(send(gateway, "careful", messages))
    assert (use.cause, use.part) == ("gateway", "prompt")
    assert use.predicted_read == use.reported_read == 0
    again = use_of(send(gateway, "careful", asking(grown(messages, 7), "prompt")))
    assert again.cause == ""
    assert again.predicted_read == pytest.approx(again.reported_read or 0, rel=0.02)


def test_a_note_of_ours_costs_its_own_tokens_only(gateway: Running) -> None:
    messages = deep()
    send(gateway, "careful", messages)
    messages = asking(grown(messages, 6), "note")
    noted = use_of(send(gateway, "careful", messages))
    assert noted.cause == ""
    use = use_of(send(gateway, "careful", grown(messages, 7)))
    assert not use.broke
    assert use.predicted_read < noted.prompt_tokens - 1500
    assert use.predicted_read == pytest.approx(use.reported_read or 0, rel=0.1)


def test_going_back_breaks_nothing_that_is_still_wanted(gateway: Running) -> None:
    """The state that belongs to the common prefix is found again, and the prefix is still warm."""
    messages = opening()
    history = [messages]
    for step in range(1, 6):
        send(gateway, "plain", messages)
        messages = grown(messages, step)
        history.append(messages)
    other = [*history[2], {"role": "assistant", "content": "So be it."}, {"role": "user", "content": "Another way."}]
    use = use_of(send(gateway, "plain", other))
    assert use.cause == ""
    assert use.predicted_read == pytest.approx(use.reported_read or 0, rel=0.02)


def test_another_answer_to_the_same_question_breaks_nothing(gateway: Running) -> None:
    messages = deep()
    send(gateway, "plain", grown(messages, 6))
    other = [*messages, {"role": "assistant", "content": "Otherwise."}, {"role": "user", "content": "Go on so."}]
    use = use_of(send(gateway, "plain", other))
    assert not use.broke
    assert (use.reported_read or 0) > 4000


def test_results_cleared_in_several_places_are_the_agents_doing(gateway: Running) -> None:
    messages = deep()
    cleared = [
        {**message, "content": "[cleared]"} if 0 < index < 8 and message["role"] == "assistant" else message
        for index, message in enumerate(messages)
    ]
    use = after(gateway, grown(cleared, 6), messages)
    assert (use.cause, use.part, use.message) == ("agent", "message", 2)


def test_going_far_back_is_no_break_either_and_is_predicted(gateway: Running) -> None:
    """The positions whose states are kept are few; what is still warm is then told by the messages themselves."""
    messages = opening()
    history = []
    for step in range(1, 12):
        send(gateway, "plain", messages)
        history.append(messages)
        messages = grown(messages, step)
    other = [*history[3], {"role": "assistant", "content": "So be it."}, {"role": "user", "content": "Another way."}]
    record = send(gateway, "plain", other)
    use = use_of(record)
    assert not use.broke
    assert use.predicted_read == pytest.approx(use.reported_read or 0, rel=0.1)
    again = use_of(send(gateway, "plain", grown(other, 20)))
    assert again.cause == ""
    assert again.predicted_read == pytest.approx(again.reported_read or 0, rel=0.02)


def test_a_provider_that_forgets_is_named(gateway: Running) -> None:
    messages = deep()
    send(gateway, "plain", messages)
    for transport in gateway.gateway.models._transports:
        if isinstance(transport, Script):
            transport.cache._until.clear()
    use = use_of(send(gateway, "plain", grown(messages, 6)))
    assert (use.cause, use.reported_read) == ("provider", 0)
    assert use.lost_tokens == use.predicted_read > 4000


def test_lanes_do_not_warm_one_another(gateway: Running) -> None:
    messages = deep()
    send(gateway, "plain", messages, session="a")
    use = use_of(send(gateway, "plain", grown(messages, 6), session="b"))
    assert use.cause == "first"
    assert use.predicted_read == 0
    assert (use.reported_read or 0) > 4000


def test_nothing_is_kept_of_short_prompts_nor_where_no_cache_is_known(gateway: Running) -> None:
    short = [{"role": "user", "content": "Hello."}]
    assert send(gateway, "plain", short).cache is None
    assert send(gateway, "unpriced", deep()).cache is None
    assert KEY not in send(gateway, "unpriced", grown(deep(), 6)).memory


def test_the_metrics_tell_predictions_from_reports_and_count_breaks(gateway: Running) -> None:
    messages = deep()
    send(gateway, "plain", messages)
    send(gateway, "plain", grown(messages, 6))
    send(gateway, "other", grown(grown(messages, 6), 7))
    with urlopen(f"{gateway.url}/metrics", timeout=10) as got:
        text = got.read().decode()
    assert 'turnout_cache_breaks_total{cause="switch",part="",route="other",target="other"} 1.0' in text
    values = {
        source: float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        for source in ("predicted", "reported")
        if line.startswith("turnout_cache_tokens_total{") and f'"{source}"' in line and 'target="plain"' in line
        if 'kind="read"' in line
    }
    assert values["predicted"] == pytest.approx(values["reported"], rel=0.02)
    assert values["reported"] > 4000
