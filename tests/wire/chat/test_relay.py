"""What touches a relayed body or stream: patches, the request for usage, the watcher."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.chat.exchange import call, chunk, request, sse
from turnout.conversation import (
    DropForeignReasoning,
    Edit,
    Effort,
    Instruction,
    Note,
    Settings,
    Usage,
    apply,
    mark,
)
from turnout.errors import UpstreamError
from turnout.wire.chat import CHAT

USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
BODY = b'{ "model":"m", "messages" : [ {"role":"system","content":"s"} , {"role": "user", "content":"h\\u0069"}], "x": 1.50}'


def patched(body: bytes, *edits: Edit) -> Any:
    once = CHAT.patch(body, edits)
    assert CHAT.patch(once, edits) == once
    return msgspec.json.decode(once)


def test_a_note_extends_the_trailing_user_message() -> None:
    value = patched(BODY, Note("n"))
    assert value["messages"][1]["content"] == [{"type": "text", "text": "hi"}, {"type": "text", "text": "n"}]
    assert b'"x": 1.50' in CHAT.patch(BODY, [Note("n")])
    assert b'[ {"role":"system","content":"s"} , ' in CHAT.patch(BODY, [Note("n")])


def test_a_note_after_tool_results_is_a_message() -> None:
    tool = {"role": "tool", "tool_call_id": "c", "content": "x"}
    value = patched(msgspec.json.encode({"messages": [tool]}), Note("n"))
    assert value["messages"] == [tool, {"role": "user", "content": "n"}]


def test_an_instruction_goes_first() -> None:
    value = patched(BODY, Instruction("i"))
    assert [m["content"] for m in value["messages"]] == ["i", "s", "hi"]
    assert patched(b'{"messages":[]}', Instruction("i"))["messages"] == [{"role": "system", "content": "i"}]


def test_effort_goes_where_the_client_puts_it() -> None:
    assert patched(BODY, Effort("low"))["reasoning_effort"] == "low"
    body = b'{"messages":[],"reasoning":{"effort":"high","exclude":true}}'
    assert patched(body, Effort("low"))["reasoning"] == {"effort": "low", "exclude": True}


def test_opaque_reasoning_goes_and_readable_reasoning_stays() -> None:
    def turn(*details: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": "a", "reasoning": "r", "reasoning_details": list(details)}

    plain, signed = {"type": "reasoning.text", "text": "r"}, {"type": "reasoning.text", "text": "r", "signature": "s"}
    body = msgspec.json.encode({"messages": [turn(plain), turn(signed), turn(plain)]})
    found = patched(body, DropForeignReasoning())["messages"]
    assert ["reasoning_details" in m for m in found] == [True, False, True]
    assert all(m["reasoning"] == "r" for m in found)


def test_opaque_reasoning_of_ones_own_stays_byte_for_byte() -> None:
    def call(signature: str) -> dict[str, Any]:
        extra = {"google": {"thought_signature": signature}}
        return {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}

    def turn(mine: bool) -> dict[str, Any]:
        whose = "mine" if mine else "theirs"
        details = [{"type": "reasoning.encrypted", "data": whose}]
        return {"role": "assistant", "content": None, "reasoning_details": details, "tool_calls": [call(whose)]}

    edit = DropForeignReasoning((mark("mine"),))
    own = json.dumps({"messages": [turn(True)]}, indent=1).encode()
    assert CHAT.patch(own, [edit]) == own
    both = msgspec.json.encode({"messages": [turn(True), turn(False)]})
    found = patched(both, edit)["messages"]
    bare = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert found == [turn(True), {"role": "assistant", "content": None, "tool_calls": [bare]}]
    conversation, _ = apply(CHAT.read_request(both).conversation, Settings(), (edit,))
    assert conversation.messages[0] == CHAT.read_request(both).conversation.messages[0]
    assert conversation.messages[1].parts == CHAT.read_request(CHAT.patch(both, [edit])).conversation.messages[1].parts


@pytest.mark.parametrize(
    "options", [None, {"include_usage": False}, {"include_obfuscation": False}, {"include_usage": True}]
)
def test_asking_for_usage(options: Any) -> None:
    fields: dict[str, Any] = {"stream": True} if options is None else {"stream": True, "stream_options": options}
    read = request(**fields)
    out = CHAT.ask_usage(read, read.body)
    value = msgspec.json.decode(out)
    assert value.pop("stream_options") == {**(options or {}), "include_usage": True}
    assert CHAT.ask_usage(read, out) == out or options is None
    if read.settings.stream_usage:
        assert out == read.body


def watch(stream: bytes, size: int = 10_000, asks: bool = False) -> tuple[Any, bytes]:
    asked = request(stream=True, stream_options={"include_usage": True}) if asks else request(stream=True)
    tally = CHAT.tally(asked)
    out = b"".join(tally.feed(stream[i : i + size]) for i in range(0, len(stream), size))
    return tally, out + tally.close()


CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": 'say "usage": {"error": [DONE]'}),
    chunk(call(0, id="a", name="f", arguments='{"usage":{"prompt_tokens":99},"finish_reason":"stop"}')),
    chunk(finish="stop"),
]
ONLY_USAGE = {**chunk(), "choices": [], "usage": USAGE}


@given(st.integers(1, 400), st.booleans(), st.booleans())
def test_only_the_usage_event_nobody_asked_for_is_taken_out(size: int, asks: bool, crlf: bool) -> None:
    stream, without = sse(*CHUNKS, ONLY_USAGE), sse(*CHUNKS)
    if crlf:
        stream, without = stream.replace(b"\n", b"\r\n"), without.replace(b"\n", b"\r\n")
    tally, out = watch(stream, size, asks)
    assert out == (stream if asks else without)
    assert (tally.usage, tally.stop, tally.error) == (Usage(3, 4), "tool_calls", None)
    assert (tally.id, tally.model, tally.started, tally.ended) == ("c1", "m", True, True)


def test_usage_beside_a_finish_reason_stays() -> None:
    stream = sse(chunk({"content": "x"}), {**chunk(finish="stop"), "usage": USAGE})
    tally, out = watch(stream)
    assert out == stream
    assert tally.usage == Usage(3, 4)


def test_usage_that_is_null_in_every_chunk_is_no_usage() -> None:
    stream = sse({**chunk({"content": "x"}), "usage": None}, {**chunk(finish="stop"), "usage": None})
    tally, out = watch(stream)
    assert (out, tally.usage, tally.stop) == (stream, None, "end")


@pytest.mark.parametrize("size", [3, 10_000])
def test_a_cut_stream_can_be_ended_with_an_error(size: int) -> None:
    whole = sse(chunk({"content": "x"}), done=False)
    tally, out = watch(whole + b'data: {"id":"c1","cho', size)
    assert out == whole
    assert tally.error.kind == "malformed"
    last = tally.fault(UpstreamError("unavailable", "cut"))
    assert msgspec.json.decode(last.removeprefix(b"data: "))["error"]["message"] == "cut"
    assert tally.fault(UpstreamError("unavailable", "cut")) == b""


def test_a_last_event_without_its_blank_line_is_relayed() -> None:
    stream = sse(chunk({"content": "x"}), chunk(finish="stop")).removesuffix(b"\n\n")
    tally, out = watch(stream)
    assert out == stream
    assert (tally.ended, tally.error) == (True, None)


def test_an_error_event_is_seen_and_relayed() -> None:
    stream = sse(chunk({"content": "x"}), {"error": {"message": "maximum context length is 4"}}, done=False)
    tally, out = watch(stream)
    assert out == stream
    assert tally.error.kind == "overflow"
    assert tally.ended
    assert tally.fault(UpstreamError("unavailable", "x")) == b""


def test_content_has_not_started_before_there_is_any() -> None:
    tally, _ = watch(sse(chunk({"role": "assistant", "content": ""}), done=False))
    assert not tally.started
    tally, _ = watch(sse(chunk({"reasoning": "r"}), done=False))
    assert tally.started
