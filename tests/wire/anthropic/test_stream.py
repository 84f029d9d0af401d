"""Streams of Messages: reading, writing, and watching them pass."""

from typing import Any

import msgspec
import pytest
from anthropic.types import RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.strategies import chunked, replies, streams
from tests.wire.laws import answered, asked, one_terminal, read_all, streamed, written
from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
    End,
    Fault,
    Opaque,
    PartBegin,
    PartEnd,
    Reasoning,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    fold,
    unfold,
)
from turnout.errors import UpstreamError
from turnout.wire import CODECS
from turnout.wire.anthropic import MESSAGES

ASKED = asked(MESSAGES)
OFFICIAL: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
USAGE = {"input_tokens": 7, "output_tokens": 1}


def sse(*values: Any) -> bytes:
    frames = [v if isinstance(v, str) else msgspec.json.encode(v).decode() for v in values]
    return "".join(f"event: x\ndata: {frame}\n\n" for frame in frames).encode()


def start(**message: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": USAGE, **message}}


def block(index: int, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": value}


def grow(index: int, kind: str, **value: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **value}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def last(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage or None}


DONE = {"type": "message_stop"}
TEXT = {"type": "text", "text": ""}


def events(stream: bytes) -> list[Any]:
    """The data of every event; its name must say its type."""
    found = []
    for frame in stream.decode().split("\n\n"):
        if frame and not frame.startswith(":"):
            name, data = frame.split("\n")
            value = msgspec.json.decode(data.removeprefix("data: "))
            assert name == f"event: {value['type']}"
            found.append(value)
    return found


def check_order(values: list[Any]) -> None:
    """Blocks are strictly sequential, every start has a stop, exactly one terminal ends it all."""
    open_block, count = None, 0
    assert values[0]["type"] == "message_start"
    assert [v["type"] for v in values[-2:]] == ["message_delta", "message_stop"]
    for value in values[1:-2]:
        match value["type"]:
            case "content_block_start":
                assert open_block is None
                assert value["index"] == count
                open_block, count = count, count + 1
            case "content_block_delta":
                assert value["index"] == open_block
            case "content_block_stop":
                assert value["index"] == open_block
                open_block = None
            case other:
                assert other == "ping"
    assert open_block is None


@given(st.data())
@settings(deadline=None)
def test_a_written_stream_is_legal_and_folds_to_the_reply(data: st.DataObject) -> None:
    reply = data.draw(replies())
    stream = written(MESSAGES, data.draw(streams(reply)), ASKED, reply.model)
    values = events(stream)
    check_order(values)
    for value in values:
        OFFICIAL.validate_python(value)
    again = streamed(MESSAGES, stream)
    want, have = answered(reply), answered(again)
    want.pop("usage"), have.pop("usage")
    assert have == want


@given(st.data())
@settings(deadline=None)
def test_rich_streams_end_in_one_terminal_wherever_they_are_cut(data: st.DataObject) -> None:
    reply = data.draw(replies(rich=True))
    stream = written(MESSAGES, data.draw(streams(reply)), ASKED, reply.model)
    check_order(events(stream))
    whole = read_all(MESSAGES.reader(), [stream])
    assert one_terminal(whole)
    assert read_all(MESSAGES.reader(), data.draw(chunked(stream))) == whole
    cut = stream[: data.draw(st.integers(0, len(stream)))]
    assert one_terminal(read_all(MESSAGES.reader(), [cut]))


@given(st.binary(max_size=200), st.data())
@settings(deadline=None)
def test_noise_never_raises_and_always_ends_in_a_fault(noise: bytes, data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([noise, sse(start()) + noise, b"data: " + noise + b"\n\n"]))
    deltas = read_all(MESSAGES.reader(), data.draw(chunked(stream)))
    assert one_terminal(deltas)
    assert isinstance(deltas[-1], Fault)


def test_every_kind_of_growth() -> None:
    place = {"type": "char_location", "cited_text": "c", "document_index": 0}
    stream = sse(
        start(),
        block(0, {"type": "thinking", "thinking": "", "signature": ""}),
        grow(0, "thinking_delta", thinking="hm"),
        grow(0, "signature_delta", signature="sig"),
        stop(0),
        {"type": "ping"},
        block(1, {"type": "redacted_thinking", "data": "d"}),
        stop(1),
        block(2, TEXT),
        grow(2, "text_delta", text="he"),
        grow(2, "citations_delta", citation=place),
        grow(2, "text_delta", text="llo"),
        stop(2),
        block(3, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        grow(3, "input_json_delta", partial_json='{"query":'),
        grow(3, "input_json_delta", partial_json='"q"}'),
        stop(3),
        block(4, {"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        grow(4, "input_json_delta", partial_json=""),
        grow(4, "input_json_delta", partial_json='{"a": 1}'),
        stop(4),
        {"type": "a_future_event", "x": 1},
        last("tool_use", output_tokens=9),
        DONE,
    )
    reply = streamed(MESSAGES, stream)
    own = "anthropic_messages"
    assert reply.parts[0] == Reasoning("hm", signature="sig", origin=own)
    assert reply.parts[1] == Reasoning(redacted=True, encrypted="d", origin=own)
    assert isinstance(reply.parts[2], Text)
    assert reply.parts[2].text == "hello"
    assert reply.parts[2].annotations[0].extra == place
    assert isinstance(reply.parts[3], Opaque)
    assert reply.parts[3].value["input"] == {"query": "q"}
    assert reply.parts[4] == ToolCall("t", "f", '{"a": 1}')
    assert reply.usage == Usage(7, 9)
    assert reply.stop == "tool_calls"


@pytest.mark.parametrize(
    ("initial", "pieces", "arguments"),
    [
        ({}, [], "{}"),
        ({}, [""], "{}"),
        ({"a": 1}, [], '{"a":1}'),
        ({"a": 1}, ['{"b"', ":2}"], '{"b":2}'),
        ({}, ['{"cut": "of'], '{"cut": "of'),
    ],
)
def test_tool_input_is_said_once(initial: Any, pieces: list[str], arguments: str) -> None:
    stream = sse(
        start(),
        block(0, {"type": "tool_use", "id": "t", "name": "f", "input": initial}),
        *[grow(0, "input_json_delta", partial_json=piece) for piece in pieces],
        stop(0),
        last("tool_use"),
        DONE,
    )
    assert streamed(MESSAGES, stream).calls == (ToolCall("t", "f", arguments),)


def test_blocks_that_overlap_are_put_in_order() -> None:
    stream = sse(
        start(),
        block(0, TEXT),
        block(1, {"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        grow(1, "input_json_delta", partial_json='{"a"'),
        grow(0, "text_delta", text="x"),
        grow(1, "input_json_delta", partial_json=":1}"),
        stop(1),
        grow(0, "text_delta", text="y"),
        stop(0),
        last("tool_use"),
        DONE,
    )
    deltas = read_all(MESSAGES.reader(), [stream])
    indices = [d.index for d in deltas if isinstance(d, PartBegin | TextDelta | ArgumentsDelta | PartEnd)]
    assert indices == sorted(indices)
    assert fold(deltas).parts == (Text("xy"), ToolCall("t", "f", '{"a":1}'))


def test_a_custom_tool_is_unwrapped_for_its_client() -> None:
    request = asked(CODECS["openai_chat"], tools=[{"type": "custom", "custom": {"name": "patch"}}])
    stream = sse(
        start(),
        block(0, {"type": "tool_use", "id": "t", "name": "patch", "input": {}}),
        grow(0, "input_json_delta", partial_json='{"input": "*** B'),
        grow(0, "input_json_delta", partial_json='egin"}'),
        stop(0),
        last("tool_use"),
        DONE,
    )
    assert streamed(MESSAGES, stream, request).calls == (ToolCall("t", "patch", "*** Begin", "custom"),)


def test_counts_are_cumulative_and_what_a_later_event_leaves_out_stays() -> None:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1, "service_tier": "standard"}
    stream = sse(start(usage=usage), last("end_turn", input_tokens=None, output_tokens=20), DONE)
    assert streamed(MESSAGES, stream).usage == Usage(7, 20, 3, extra={"service_tier": "standard"})


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (sse(start(), {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "unavailable"),
        (sse(start(), {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 2 > 1"}}), "overflow"),  # noqa: E501
        (sse({"error": {"message": "Rate limit reached", "code": 429}}), "rate_limit"),
        (sse(start(), block(0, TEXT), grow(0, "text_delta", text="half")), "malformed"),
        (sse(start(), DONE), "malformed"),
        (sse(start(), last(None), DONE), "malformed"),
        (sse(start(), "{broken"), "malformed"),
        (sse(start(), grow(3, "text_delta", text="x")), "malformed"),
        (sse(start(), block(0, TEXT), block(0, TEXT)), "malformed"),
        (sse(start(), {"type": "content_block_start"}), "malformed"),
        (b'{"not":"a stream"}', "malformed"),
        (b"", "malformed"),
    ],
)  # fmt: skip
def test_a_broken_stream_is_one_fault(stream: bytes, kind: str) -> None:
    deltas = read_all(MESSAGES.reader(), [stream])
    assert one_terminal(deltas)
    assert isinstance(deltas[-1], Fault)
    assert deltas[-1].error.kind == kind


def test_a_finished_reply_without_its_last_event_is_still_finished() -> None:
    stream = sse(start(), block(0, TEXT), grow(0, "text_delta", text="all"), stop(0), last())
    assert streamed(MESSAGES, stream).text == "all"
    assert (
        streamed(MESSAGES, stream.replace(b"\n", b"\r\n") + sse(DONE).rstrip() + b"\n\ndata: [DONE]\n\n").text == "all"
    )


def test_nothing_follows_a_terminal() -> None:
    reader = MESSAGES.reader()
    reader.feed(sse(start(), last(), DONE))
    assert reader.feed(sse(block(0, TEXT))) == []
    assert reader.close() == []
    for terminal in (End("end"), Fault(UpstreamError("timeout", "late"))):
        writer = MESSAGES.writer(ASKED, "m")
        assert writer.feed(terminal)
        assert writer.feed(PartBegin(0, Text(""))) == b""
        assert writer.feed(TextDelta(0, "x")) == b""
        assert writer.feed(End("end")) == b""
        assert writer.ping() == b""


def test_text_then_two_calls_the_second_without_arguments() -> None:
    deltas: list[Delta] = [
        Begin("chatcmpl-1", "up"),
        PartBegin(0, Text("")),
        TextDelta(0, "I look"),
        PartEnd(0),
        PartBegin(1, ToolCall("a", "f")),
        ArgumentsDelta(1, '{"x"'),
        ArgumentsDelta(1, ":1}"),
        PartEnd(1),
        PartBegin(2, ToolCall("b", "g")),
        PartEnd(2),
        End("end", Usage(3, 4)),
    ]
    values = events(written(MESSAGES, deltas, ASKED, "served"))
    check_order(values)
    assert values[0]["message"]["model"] == "served"
    assert values[0]["message"]["usage"].keys() >= {"input_tokens", "output_tokens", "cache_read_input_tokens"}
    pieces = [v["delta"]["partial_json"] for v in values if v.get("delta", {}).get("type") == "input_json_delta"]
    assert "".join(pieces) == '{"x":1}'
    assert values[-2]["delta"]["stop_reason"] == "tool_use"
    assert values[-2]["usage"]["output_tokens"] == 4


def test_reasoning_of_other_models_is_shown_unsigned_and_empty_reasoning_not_at_all() -> None:
    foreign = Reasoning(encrypted="x", origin="openai_responses")
    deltas: list[Delta] = [
        Begin("r"),
        PartBegin(0, Reasoning()),
        PartEnd(0, foreign),
        PartBegin(1, Reasoning()),
        TextDelta(1, "hm"),
        PartEnd(1),
        PartBegin(2, Text("")),
        TextDelta(2, "ok"),
        PartEnd(2),
        End("end"),
    ]
    reply = streamed(MESSAGES, written(MESSAGES, deltas, ASKED))
    assert [type(p) for p in reply.parts] == [Reasoning, Text]
    assert reply.parts[0] == Reasoning("hm", signature="", origin="anthropic_messages")


def test_signed_thinking_with_empty_text_survives() -> None:
    signed = Reasoning("", signature="sig", origin="anthropic_messages")
    deltas: list[Delta] = [Begin("msg_1"), PartBegin(0, Reasoning()), PartEnd(0, signed), End("end")]
    assert streamed(MESSAGES, written(MESSAGES, deltas, ASKED)).parts == (signed,)


def test_a_native_action_of_another_format_ends_the_stream_in_an_error() -> None:
    writer = MESSAGES.writer(ASKED, "m")
    action = Opaque("openai_responses", "apply_patch_call", {})
    out = writer.feed(Begin("r")) + writer.feed(PartBegin(0, action)) + writer.feed(End("end"))
    assert [v["type"] for v in events(out)] == ["message_start", "error"]


def test_a_fault_is_an_error_event_and_never_a_stop() -> None:
    for kind, expected in (
        ("timeout", "timeout_error"),
        ("rate_limit", "rate_limit_error"),
        ("malformed", "api_error"),
    ):
        deltas: list[Delta] = [
            Begin("r"),
            PartBegin(0, Text("")),
            TextDelta(0, "half"),
            Fault(UpstreamError(kind, "broke")),  # type: ignore[arg-type]
        ]
        values = events(written(MESSAGES, deltas, ASKED))
        assert values[-1] == {"type": "error", "error": {"type": expected, "message": "broke"}}
        assert "message_stop" not in [v["type"] for v in values]


def test_a_ping_is_a_comment_before_the_message_and_an_event_in_it() -> None:
    writer = MESSAGES.writer(ASKED, "m")
    assert writer.ping().startswith(b":")
    writer.feed(Begin("r"))
    assert events(writer.ping()) == [{"type": "ping"}]


def test_a_native_reply_played_back_is_whole() -> None:
    stream = sse(
        start(container=None, diagnostics={"x": 1}),
        block(0, {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "y"}]}),
        stop(0),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "refusal", "stop_details": {"category": "bio", "z": 1}, "container": {"id": "c"}},
            "context_management": {"applied_edits": []},
        },
        DONE,
    )
    reply = streamed(MESSAGES, stream)
    assert streamed(MESSAGES, written(MESSAGES, list(unfold(reply)), ASKED)) == msgspec.structs.replace(
        reply, model="m"
    )


# Watching a relayed stream

RELAYED = sse(
    start(),
    {"type": "ping"},
    block(0, TEXT),
    grow(0, "text_delta", text='say "error" and message_stop'),
    stop(0),
    last("max_tokens", output_tokens=5),
    DONE,
)


@given(st.data())
@settings(deadline=None)
def test_a_watched_stream_passes_unchanged_however_it_comes(data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from([RELAYED, RELAYED.replace(b"\n", b"\r\n"), RELAYED.rstrip(b"\n")]))
    tally = MESSAGES.tally(ASKED)
    assert b"".join([*map(tally.feed, data.draw(chunked(stream))), tally.close()]) == stream
    assert (tally.id, tally.model, tally.usage, tally.stop) == ("msg_1", "m", Usage(7, 5), "length")
    assert tally.started
    assert tally.ended
    assert tally.error is None
    assert tally.fault(UpstreamError("timeout", "late")) == b""


def test_content_has_started_with_the_first_delta_or_call() -> None:
    tally = MESSAGES.tally(ASKED)
    tally.feed(sse(start(), {"type": "ping"}, block(0, TEXT)))
    assert not tally.started
    tally.feed(sse(grow(0, "text_delta", text="x")))
    assert tally.started
    tally = MESSAGES.tally(ASKED)
    tally.feed(sse(start(), block(0, {"type": "tool_use", "id": "t", "name": "f", "input": {}})))
    assert tally.started


def test_a_relayed_error_event_is_seen() -> None:
    tally = MESSAGES.tally(ASKED)
    tally.feed(sse(start(), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}))
    assert tally.ended
    assert tally.error is not None
    assert tally.error.kind == "unavailable"


@given(st.integers(0, len(RELAYED)))
@settings(deadline=None)
def test_a_cut_stream_can_always_be_ended_with_an_error_event(at: int) -> None:
    tally = MESSAGES.tally(ASKED)
    out = tally.feed(RELAYED[:at])
    out += tally.ping()
    out += tally.close()
    if not tally.error:
        assert one_terminal(read_all(MESSAGES.reader(), [out]))
        return
    out += tally.fault(UpstreamError("unavailable", "the upstream hung up"))
    deltas = read_all(MESSAGES.reader(), [out])
    assert isinstance(deltas[-1], Fault)
    assert deltas[-1].error.message == "the upstream hung up"
    assert tally.fault(UpstreamError("timeout", "twice")) == b""
