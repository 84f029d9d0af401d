"""Who made what: any sequence of targets in a lane, against a plain record of which target made which payload."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.played import Played, event, stream
from tests.running import running

from turnout.conversation import FORMATS, Format, mark
from turnout.gateway.artefacts import KEY, MARKS_AT_MOST, NOBODY, Makers, Served, hygiene, made_in, makers, served
from turnout.upstream.models import Model, Models
from turnout.upstream.prepare import prepare
from turnout.upstream.target import Target, Upstream
from turnout.wire import CODECS

TARGETS = {"one": ("here", "m1"), "two": ("here", "m2"), "three": ("there", "m1"), "one-again": ("here", "m1")}
"""By name, the account and the model; `one` and `one-again` are one model under two names."""
formats = pytest.mark.parametrize("form", FORMATS)


def opened(form: Format) -> Models:
    accounts = {name: Upstream(form, base_url=f"http://{name}.example") for name in ("here", "there")}
    models = {
        name: Model(name, Target(account, model), accounts[account], None, None)  # type: ignore[arg-type]
        for name, (account, model) in TARGETS.items()
    }
    return Models(models, ())  # type: ignore[arg-type]


def issuer(target: str) -> tuple[str, str]:
    return TARGETS[target]


def answered(form: Format, payloads: Sequence[str]) -> list[dict[str, Any]]:
    """What a client keeps of an answer: a unit or several of its history, with these payloads."""
    if form == "anthropic_messages":
        blocks = [
            {"type": "redacted_thinking", "data": p}
            if p.endswith("r")
            else {"type": "thinking", "thinking": "t", "signature": p}
            for p in payloads
        ]
        return [{"role": "assistant", "content": [*blocks, {"type": "text", "text": "said"}]}]
    if form == "openai_chat":
        details = [{"type": "reasoning.encrypted", "data": p} for p in payloads]
        return [{"role": "assistant", "content": "said", **({"reasoning_details": details} if details else {})}]
    items = [{"type": "reasoning", "id": f"rs_{p}", "summary": [], "encrypted_content": p} for p in payloads]
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "said"}]}
    return [*items, said]


def request_of(form: Format, history: list[dict[str, Any]]) -> bytes:
    field = "input" if form == "openai_responses" else "messages"
    return json.dumps({"model": "route", "max_tokens": 5000, field: history}, indent=1).encode()


def asked(form: Format) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": "go on"} if form == "openai_responses" else {
        "role": "user", "content": "go on"
    }  # fmt: skip


turns = st.lists(st.tuples(st.sampled_from(sorted(TARGETS)), st.integers(0, 2), st.booleans()), min_size=1, max_size=8)
"""Of each turn: who serves it, how many payloads it makes, and whether one of them is redacted."""


def payloads_of(number: int, count: int, redacted: bool) -> list[str]:
    return [f"pay/{number}-{i}+={'r' if redacted and not i else ''}" for i in range(count)]


@formats
@given(turns=turns)
def test_every_model_is_sent_its_own_and_nobody_elses(form: Format, turns: list[tuple[str, int, bool]]):
    models, state, owner = opened(form), NOBODY, dict[str, str]()
    history: list[dict[str, Any]] = [asked(form)]
    for number, (target, count, redacted) in enumerate(turns):
        raw = request_of(form, history)
        request = CODECS[form].read_request(raw)
        conversation = request.conversation
        clean = hygiene(request, conversation, models[target], state, models)
        sent = prepare(request, models[target], clean.edits).body
        shown = {p for p in owner if p.encode() in sent}
        assert shown == {p for p in owner if issuer(owner[p]) == issuer(target)}
        foreign = {owner[p] for p in owner} - {t for t in TARGETS if issuer(t) == issuer(target)}
        if not foreign:
            # Byte for byte, but for the name of the model.
            assert sent == raw.replace(b'"model": "route"', b'"model": ' + models[target].model_json)
        assert bool(clean.drops) == bool(foreign)
        assert all(f"target {name}" in " ".join(d.why for d in clean.drops) for name in foreign)
        assert prepare(request, models[target], clean.edits).body == sent
        made = payloads_of(number, count, redacted)
        reply = answered(form, made)
        event = served(target, made_in(json.dumps(reply).encode(), form), state, conversation, True)
        state = state if event is None else state.after(event.event)
        owner |= dict.fromkeys(made, target)
        history = [*history, *reply, asked(form)]
        assert makers({KEY: state}) is state
        assert state.last == target


@formats
@given(turns=turns, lost=st.sets(st.integers(0, 7)))
def test_what_a_lost_memory_forgot_is_shown_to_nobody_where_several_have_made_something(
    form: Format, turns: list[tuple[str, int, bool]], lost: set[int]
):
    models, state, owner = opened(form), NOBODY, dict[str, str]()
    history: list[dict[str, Any]] = [asked(form)]
    for number, (target, count, redacted) in enumerate(turns):
        request = CODECS[form].read_request(request_of(form, history))
        clean = hygiene(request, request.conversation, models[target], state, models)
        sent = prepare(request, models[target], clean.edits).body
        shown = {p for p in owner if p.encode() in sent}
        if any(issuer(name) != issuer(target) for name in state.targets):
            known = {one for names in state.marks.values() for one in names}
            assert {mark(p) for p in shown} <= known
        made = payloads_of(number, count, redacted)
        event = served(target, map(mark, made), state, request.conversation, True)
        if event is not None and number not in lost:
            state = state.after(event.event)
        owner |= dict.fromkeys(made, target)
        history = [*history, *answered(form, made), asked(form)]


def test_a_lane_of_one_maker_keeps_no_marks_and_tells_nothing_new():
    state = NOBODY.after(Served("one", ("a",)))
    assert state == Makers("one", False, ("one",))
    conversation = CODECS["openai_chat"].read_request(request_of("openai_chat", [asked("openai_chat")])).conversation
    assert served("one", ["b"], state, conversation, True) is None
    assert served("one", [], NOBODY, conversation, False) is None
    assert served("one", [], NOBODY, conversation, True) is not None


def test_marks_are_bounded_and_the_oldest_go():
    state = NOBODY.after(Served("one", ("a",))).after(Served("two", ("b",), "one", ("a",)))
    for i in range(MARKS_AT_MOST):
        state = state.after(Served("two", (f"m{i}",)))
    assert len(state.marks["two"]) == MARKS_AT_MOST
    assert "b" not in state.marks["two"]
    assert state.marks["one"] == ("a",)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_payload_is_known_again_however_it_is_spelled(text: str):
    for spelled in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        for colon in (":", " : "):
            body = f'{{"type":"thinking","signature"{colon}{spelled}}}'.encode()
            assert list(made_in(body, "anthropic_messages")) == [mark(text)]


SIGNED = "c2ln/" + "x" * 300
EVENTS = [
    ("message_start", {"message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": SIGNED}}),
    ("content_block_stop", {"index": 0}),
    ("content_block_start", {"index": 1, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "Done."}}),
    ("content_block_stop", {"index": 1}),
    ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
    ("message_stop", {}),
]
STREAM = b"".join(event({"type": name, **more}, name) for name, more in EVENTS)
CONFIG = """
[upstreams.u]
format = "anthropic_messages"
base_url = "{url}"
[targets.one]
upstream = "u"
model = "m1"
[targets.two]
upstream = "u"
model = "m2"
[routes.one]
type = "passthrough"
target = "one"
[routes.two]
type = "passthrough"
target = "two"
"""


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
def test_a_streamed_payload_is_known_however_the_stream_was_cut(path: str, tmp_path: Path):
    pieces = [STREAM[i : i + 97] for i in range(0, len(STREAM), 97)]
    with (
        Played(lambda seen, n: stream(*pieces)) as upstream,
        running(CONFIG.format(url=upstream.url), tmp_path) as gateway,
    ):
        first = (
            {"input": "hi", "store": False}
            if "responses" in path
            else {"messages": [{"role": "user", "content": "hi"}]}
        )
        headers = {"content-type": "application/json", "x-turnout-session": "s"}
        body = json.dumps({"model": "one", "max_tokens": 50, "stream": True, **first}).encode()
        with urlopen(Request(gateway.url + path, body, headers), timeout=10) as response:
            response.read()
        gateway.settled()
        (lane,) = gateway.gateway.sessions._lanes.values()
        assert lane.snapshots[-1].states[KEY] == Makers("one", False, ("one",))
