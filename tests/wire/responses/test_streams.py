"""Streams of Responses: order, gaps, contradictions, terminals, and the events the clients wait for."""

from typing import Any

import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests import strategies
from tests.recorded import captures, needs_recordings
from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Citation,
    Delta,
    End,
    Fault,
    Opaque,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Reply,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    fold,
    unfold,
)
from turnout.errors import UpstreamError
from turnout.wire.codec import Request
from turnout.wire.responses import RESPONSES
from turnout.wire.sse import SSEParser, event

EVENTS: Any = TypeAdapter(ResponseStreamEvent)


def asked(**body: Any) -> Request:
    return RESPONSES.read_request(msgspec.json.encode({"model": "m", "input": "hi", "stream": True, **body}))


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(event(msgspec.json.encode(e), e["type"].encode()) for e in events)


def deltas(data: bytes, request: Request | None = None) -> list[Delta]:
    reader = RESPONSES.reader(request)
    return [*reader.feed(data), *reader.close()]


def events(data: bytes) -> list[Any]:
    return [msgspec.json.decode(e.data) for e in SSEParser().feed(data)]


def written(reply: Reply, request: Request | None = None) -> bytes:
    writer = RESPONSES.writer(request or asked(), "served")
    return b"".join(writer.feed(d) for d in unfold(reply))


CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "created_at": 5, "output": []}}


def completed(*output: Any, **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "model": "m", "created_at": 5, "status": "completed", "output": list(output), **more}
    return {"type": "response.completed", "response": response}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def text(index: int, delta: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta}


def arguments(index: int, delta: str) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta}


def call(number: int, given: str = "", **more: Any) -> dict[str, Any]:
    names = {"id": f"fc_{number}", "call_id": f"c{number}", "name": "f"}
    return {"type": "function_call", **names, "arguments": given, **more}


def message(said: str = "") -> dict[str, Any]:
    content = [{"type": "output_text", "text": said, "annotations": []}] if said else []
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def faulty(data: bytes) -> UpstreamError:
    found = deltas(data)
    assert isinstance(found[-1], Fault)
    assert sum(isinstance(d, End | Fault) for d in found) == 1
    return found[-1].error


# Reading


def test_interleaved_items_come_one_after_the_other():
    found = deltas(
        stream(
            CREATED,
            added(0, call(0)),
            added(1, call(1)),
            arguments(1, '{"b"'),
            arguments(0, '{"a"'),
            arguments(1, ":2}"),
            arguments(0, ":1}"),
            done(1, call(1, '{"b":2}')),
            done(0, call(0, '{"a":1}')),
            completed(call(0, '{"a":1}'), call(1, '{"b":2}')),
        )
    )
    first, second = ToolCall("c0", "f", item_id="fc_0"), ToolCall("c1", "f", item_id="fc_1")
    assert found == [
        Begin("resp_1", "m", 5, format="openai_responses"),
        PartBegin(0, first),
        ArgumentsDelta(0, '{"a"'),
        ArgumentsDelta(0, ":1}"),
        PartEnd(0, msgspec.structs.replace(first, arguments='{"a":1}')),
        PartBegin(1, second),
        ArgumentsDelta(1, '{"b":2}'),
        PartEnd(1, msgspec.structs.replace(second, arguments='{"b":2}')),
        End("tool_calls"),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        [completed(message("hello"), call(1, "{}"))],
        [added(0, message()), text(0, "hel"), completed(message("hello"), call(1, "{}"))],
        [added(0, message()), text(0, "hello"), done(0, message("hello")), completed(message("hello"), call(1, "{}"))],
        [text(0, "hello"), added(1, call(1)), completed(message("hello"), call(1, "{}"))],
        [added(0, message()), text(0, "hello"), added(1, call(1)), arguments(1, "{}"), completed()],
        [done(0, message("hello")), done(1, call(1, "{}")), completed()],
        [
            added(0, message()),
            text(0, "hello"),
            done(0, message("hello")),
            added(1, {"type": "function_call"}),
            arguments(1, "{"),
            done(1, call(1, "{}")),
            completed(),
        ],
    ],
)
def test_snapshots_fill_exactly_what_the_deltas_left_out(pieces):
    reply = fold(deltas(stream(CREATED, *pieces)))
    assert (reply.text, [(c.id, c.name, c.arguments) for c in reply.calls]) == ("hello", [("c1", "f", "{}")])
    assert reply.stop == "tool_calls"


@pytest.mark.parametrize(
    "pieces",
    [
        [added(0, message()), text(0, "hello"), done(0, message("goodbye"))],
        [added(0, message()), text(0, "hello"), completed(message("goodbye"))],
        [added(0, call(0)), arguments(0, '{"a":1}'), done(0, call(0, '{"a":2}')), completed()],
        [added(0, call(0)), arguments(0, '{"a":1}'), completed(call(0, '{"a":2}'))],
    ],
)
def test_a_contradiction_breaks_the_stream(pieces):
    error = faulty(stream(CREATED, *pieces))
    assert error.kind == "malformed"
    assert "contradicts" in error.message


def test_the_same_arguments_in_other_white_space_are_no_contradiction():
    pieces = [added(0, call(0)), arguments(0, '{"a":1}'), done(0, call(0, '{ "a": 1 }')), completed()]
    assert fold(deltas(stream(CREATED, *pieces))).calls[0].arguments == '{"a":1}'


@pytest.mark.parametrize(
    ("pieces", "kind", "words"),
    [
        ([], "malformed", "without a terminal"),
        ([text(0, "x")], "malformed", "without a terminal"),
        (
            [added(0, {"type": "function_call", "id": "fc"}), arguments(0, "{}"), completed()],
            "malformed",
            "function_call",
        ),
        ([{"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}], "rate_limit", "slow down"),
        ([{"type": "error", "error": {"message": "it broke"}}], "unavailable", "it broke"),
        (
            [
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "context_length_exceeded", "message": "too long"}},
                }
            ],
            "overflow",
            "too long",
        ),
        ([{"type": "response.failed", "response": {}}], "unavailable", "response.failed"),
        ([{"type": "response.completed"}], "malformed", "without its response"),
        ([added(0, call(0)), text(0, "x")], "malformed", "function_call"),
    ],
)
def test_a_broken_stream_ends_in_one_fault(pieces, kind, words):
    error = faulty(stream(CREATED, *pieces))
    assert (error.kind, words in error.message) == (kind, True), error.message


def test_what_is_no_json_is_a_fault_and_nothing_follows():
    assert faulty(b"data: {oops\n\n" + stream(completed())).kind == "malformed"


def test_an_incomplete_response_is_no_failure():
    last = completed(message("hal"), incomplete_details={"reason": "max_output_tokens"}, status="incomplete")
    reply = fold(deltas(stream(CREATED, text(0, "hal"), {**last, "type": "response.incomplete"})))
    assert (reply.stop, reply.text) == ("length", "hal")


def test_reasoning_is_decoded_once_wherever_it_appears():
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz"}
    parts = [{"type": "summary_text", "text": t} for t in ("one", "two")]
    summary = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "one"},
        {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 0, "text": "one"},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "two"},
    ]
    last = {**item, "summary": parts}
    reply = fold(deltas(stream(CREATED, added(0, {**item, "summary": []}), *summary, done(0, last), completed(last))))
    assert reply.parts == (
        Reasoning("one\n\ntwo", ("one", "two"), encrypted="xyz", id="rs_1", origin="openai_responses"),
    )


@needs_recordings
def test_every_recorded_stream_folds_to_its_own_last_word():
    for row in captures():
        if row["protocol"] != "openai_responses" or not (row["response_sse"] or row.get("response_chunks")):
            continue
        raw = (row["response_sse"] or "").encode() or stream(*map(msgspec.json.decode, row["response_chunks"]))
        last = [e["response"] for e in events(raw) if e["type"] == "response.completed"]
        if len(last) != 1 or not last[0].get("output"):
            continue
        whole, reply = RESPONSES.read_reply(msgspec.json.encode(last[0])), fold(deltas(raw))
        assert (reply.usage, reply.stop, reply.id, reply.extra) == (whole.usage, whole.stop, whole.id, whole.extra)

        def bare(parts: Any) -> list[Any]:  # a server may encrypt the same anew for its last word
            plain = [msgspec.structs.replace(p, encrypted=None) if isinstance(p, Reasoning) else p for p in parts]
            return [(p.type, p.value["id"]) if isinstance(p, Opaque) else p for p in plain]

        assert bare(reply.parts) == bare(whole.parts), row["id"]


# Writing


FULL = Reply(
    (
        Reasoning("thinking", signature="s", origin="anthropic_messages"),
        Text("see é", (Citation("https://a.b", "t", 0, 3),)),
        Text("more"),
        ToolCall("c1", "f", '{"a":1}', namespace="agents"),
        ToolCall("c2", "apply_patch", "*** Begin\n", style="custom"),
        ToolCall("c3", "f", ""),
    ),
    "tool_calls",
    Usage(10, 5, 3, None, None, 2),
    id="chatcmpl-1",
    created=7,
)


def test_the_events_come_as_the_api_sends_them():
    found = events(written(FULL))
    assert [e["type"].removeprefix("response.") for e in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    last = found[-1]["response"]
    assert [e["item"] for e in found if e["type"] == "response.output_item.done"] == last["output"]
    assert last["usage"]["input_tokens"] == 13
    assert last["output"][2]["namespace"] == "agents"
    assert last["output"][3]["input"] == "*** Begin\n"
    assert last["output"][4]["arguments"] == "{}"


@given(strategies.replies().flatmap(lambda r: st.tuples(st.just(r), strategies.streams(r))))
def test_every_event_is_one_the_official_client_knows_and_numbers_rise(drawn):
    reply, growing = drawn
    writer = RESPONSES.writer(asked(), "served")
    found = events(b"".join(writer.feed(d) for d in growing))
    assert [e["sequence_number"] for e in found] == list(range(len(found)))
    for value in found:
        EVENTS.validate_python(value, strict=True)
    open_items: list[int] = []
    for value in found:
        if value["type"] == "response.output_item.added":
            open_items.append(value["output_index"])
        elif value["type"] == "response.output_item.done":
            assert open_items == [value["output_index"]]
            open_items.clear()
    assert [e["type"] for e in found[-1:]] == [f"response.{found[-1]['response']['status']}"]
    assert len(found[-1]["response"]["output"]) == sum(e["type"] == "response.output_item.done" for e in found)
    assert fold(deltas(b"".join(event(msgspec.json.encode(e)) for e in found))).usage is not None
    assert reply.stop in ("end", "length", "tool_calls")


def test_the_official_client_takes_the_stream():
    import httpx

    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=written(FULL))
    )
    client = openai.OpenAI(
        api_key="unused", base_url="http://upstream.test/v1", http_client=httpx.Client(transport=transport)
    )
    with client.responses.stream(model="m", input="hi") as opened:
        response = opened.get_final_response()
    assert response.output_text == "see émore"
    assert response.usage is not None
    assert response.usage.total_tokens == 18


@pytest.mark.parametrize(
    ("stop", "kind", "reason"),
    [
        ("end", "completed", None),
        ("stop_sequence", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("refusal", "incomplete", "content_filter"),
        ("pause", "incomplete", "pause_turn"),
    ],
)
def test_the_terminal_says_why_it_ended(stop, kind, reason):
    last = events(written(Reply((Text("x"),), stop)))[-1]
    assert last["type"] == f"response.{kind}"
    assert (last["response"]["incomplete_details"] or {}).get("reason") == reason
    assert last["response"]["output"][0]["status"] == kind


def test_a_refusal_in_words_completes():
    found = events(written(Reply((Refusal("no"),), "refusal")))
    assert [e["type"] for e in found if "refusal" in e["type"]] == ["response.refusal.delta", "response.refusal.done"]
    assert found[-1]["type"] == "response.completed"


def test_reasoning_that_says_nothing_is_left_out_and_a_payload_opens_no_summary():
    types = [e["type"] for e in events(written(Reply((Reasoning(origin="openai_chat"), Text("x")))))]
    assert types.count("response.output_item.added") == 1
    payload = Reasoning(encrypted="xyz", id="rs_1", origin="openai_responses")
    found = events(written(Reply((payload,))))
    assert [e["type"] for e in found[2:4]] == ["response.output_item.added", "response.output_item.done"]
    assert found[3]["item"] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


@pytest.mark.parametrize("begun", [True, False])
def test_a_fault_is_a_failed_response_and_the_last_event(begun):
    writer = RESPONSES.writer(asked(), "m")
    data = (
        writer.feed(Begin("x")) + writer.feed(PartBegin(0, Text(""))) + writer.feed(TextDelta(0, "a")) if begun else b""
    )
    data += writer.feed(Fault(UpstreamError("overflow", "too long")))
    found = events(data)
    assert found[0]["type"] == "response.created"
    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["error"] == {"code": "context_length_exceeded", "message": "too long"}
    assert writer.feed(End("end")) + writer.feed(TextDelta(0, "b")) == b""


def test_tools_on_several_lines_stay_one_line_of_the_stream():
    body = b'{"model":"m","input":"hi","tools":[\n {"type":"function",\n  "name":"f"}\n]}'
    request = RESPONSES.read_request(body)
    last = events(written(Reply((Text("x"),)), request))[-1]
    assert last["response"]["tools"] == [{"type": "function", "name": "f"}]


# Watching a relay


def test_words_about_events_inside_a_text_do_not_confuse_the_tally():
    tally = RESPONSES.tally(asked())
    pieces = [CREATED, text(0, 'say "response": {"type":"response.completed"} "error"'), text(0, "x")]
    for piece in pieces:
        assert tally.feed(stream(piece)) == stream(piece)
    assert (tally.started, tally.ended, tally.error, tally.id) == (True, False, None, "resp_1")
    last = stream(completed(message("x"), usage={"input_tokens": 3, "output_tokens": 4}))
    assert tally.feed(last) + tally.close() == last
    assert (tally.ended, tally.stop, tally.error) == (True, "end", None)
    assert tally.usage == Usage(3, 4)


def test_a_relay_that_fails_goes_on_with_ids_and_numbers():
    data = written(FULL)
    cut = data[: len(data) // 2]
    tally = RESPONSES.tally(asked())
    relayed = tally.feed(cut)
    assert data.startswith(relayed)
    found = events(relayed + tally.ping() + tally.fault(UpstreamError("timeout", "too slow")))
    assert [e["sequence_number"] for e in found] == list(range(len(found)))
    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["id"] == found[0]["response"]["id"]
    assert tally.fault(UpstreamError("timeout", "again")) == b""
