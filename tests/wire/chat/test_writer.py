"""Replies written for Chat clients: buffered, streamed, failed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.wire.chat.exchange import deltas, request
from turnout.conversation import (
    Begin,
    Citation,
    End,
    Fault,
    Opaque,
    Part,
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
from turnout.errors import ClientError, RouterError, TurnoutError, UpstreamError
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request

ASKED = request(stream=True, stream_options={"include_usage": True})
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
counts = st.integers(0, 1000)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    parts: list[Part] = []
    if draw(st.booleans()):
        parts.append(Reasoning(draw(words), origin="openai_chat"))
    if draw(st.booleans()):
        parts.append(Text(draw(words)))
    if draw(st.booleans()):
        parts.append(Refusal(draw(words)))
    for i in range(draw(st.integers(0, 2))):
        parts.append(ToolCall(f"c{i}", draw(st.sampled_from(["f", "g"])), draw(st.sampled_from(['{"a":1}', "{}"]))))
    called = any(isinstance(p, ToolCall) for p in parts)
    usage = draw(
        st.none()
        | st.builds(Usage, counts, counts, st.none() | counts, st.none() | counts, st.none(), st.none() | counts)
    )
    stop = draw(st.sampled_from(["tool_calls", "length"] if called else ["end", "length", "refusal"]))
    return Reply(tuple(parts), stop, usage, "id1", "m", created=5)


@given(replies())
def test_a_buffered_reply_is_read_again(reply: Reply) -> None:
    out = CHAT.write_reply(reply, ASKED, "m")
    assert out.drops == ()
    assert replace(CHAT.read_reply(out.body, ASKED), frames=None, format=None) == reply


@given(replies(), st.integers(1, 50))
def test_a_streamed_reply_is_read_again(reply: Reply, size: int) -> None:
    writer = CHAT.writer(ASKED, "m")
    stream = b"".join(writer.feed(d) for d in unfold(reply))
    assert stream.endswith(b"data: [DONE]\n\n")
    assert stream.count(b"[DONE]") == 1
    assert replace(fold(deltas(stream, ASKED, size)), format=None) == reply


def test_nothing_follows_a_terminal() -> None:
    writer = CHAT.writer(ASKED, "m")
    writer.feed(Begin("i"))
    writer.feed(End("end"))
    assert writer.feed(TextDelta(0, "x")) == writer.feed(End("end")) == writer.ping() == b""


def test_usage_goes_only_to_who_asked() -> None:
    writer = CHAT.writer(request(stream=True), "m")
    assert b'"usage"' not in b"".join(writer.feed(d) for d in unfold(Reply((Text("x"),), "end", Usage(1, 2))))


def test_a_fault_is_an_error_event_and_no_success_follows() -> None:
    for before in ([], [Begin("i"), PartBegin(0, Text("")), TextDelta(0, "x")]):
        writer = CHAT.writer(ASKED, "m")
        for delta in before:
            writer.feed(delta)
        out = writer.feed(Fault(UpstreamError("timeout", "too slow")))
        assert msgspec.json.decode(out.removeprefix(b"data: "))["error"]["code"] == "upstream_timeout"
        assert b"[DONE]" not in out
        assert writer.feed(End("end")) == b""


def test_the_index_of_calls_counts_calls_only() -> None:
    reply = Reply((Text("x"), ToolCall("a", "f", ""), ToolCall("b", "g", '{"a":1}')), "tool_calls")
    writer = CHAT.writer(ASKED, "m")
    stream = b"".join(writer.feed(d) for d in unfold(reply))
    assert b'"tool_calls":[{"index":0,"id":"a"' in stream
    assert b'"tool_calls":[{"index":1,"id":"b"' in stream
    assert [c.arguments for c in fold(deltas(stream)).calls] == ["{}", '{"a":1}']


def test_text_that_only_the_end_of_a_part_states_is_not_lost() -> None:
    writer = CHAT.writer(ASKED, "m")
    events = [Begin("i"), PartBegin(0, Text("")), PartEnd(0, Text("late")), End("end")]
    assert fold(deltas(b"".join(writer.feed(e) for e in events))).text == "late"


def test_a_custom_call_and_a_namespaced_one() -> None:
    reply = Reply((ToolCall("a", "p", "raw", "custom"), ToolCall("b", "g", "{}", namespace="ns")), "tool_calls")
    custom = {"type": "custom", "custom": {"name": "p"}}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [custom], "stream": True}
    asked = CHAT.read_request(msgspec.json.encode(body))
    value = msgspec.json.decode(CHAT.write_reply(reply, asked, "m").body)
    first, second = value["choices"][0]["message"]["tool_calls"]
    assert first == {"id": "a", "type": "custom", "custom": {"name": "p", "input": "raw"}}
    assert second["function"]["name"] == "ns__g"
    writer = CHAT.writer(asked, "m")
    assert fold(deltas(b"".join(writer.feed(d) for d in unfold(reply)))).calls[0] == reply.parts[0]


def test_a_client_that_offered_no_custom_tool_gets_a_function_with_one_argument() -> None:
    reply = Reply((ToolCall("a", "p", 'raw "é"\n', "custom"),), "tool_calls")
    value = msgspec.json.decode(CHAT.write_reply(reply, ASKED, "m").body)
    called = value["choices"][0]["message"]["tool_calls"][0]
    assert called["type"] == "function"
    assert msgspec.json.decode(called["function"]["arguments"]) == {"input": 'raw "é"\n'}
    for events in (
        list(unfold(reply)),
        [Begin("i"), PartBegin(0, ToolCall("a", "p", "", "custom")), PartEnd(0, reply.parts[0]), End("tool_calls")],
    ):
        writer = CHAT.writer(ASKED, "m")
        (streamed,) = fold(deltas(b"".join(writer.feed(e) for e in events))).calls
        assert (streamed.style, msgspec.json.decode(streamed.arguments)) == ("function", {"input": 'raw "é"\n'})


def test_a_client_of_legacy_functions_gets_a_function_call() -> None:
    asked = request(functions=[{"name": "f"}])
    reply = Reply((ToolCall("a", "f", "{}"),), "tool_calls")
    choice = msgspec.json.decode(CHAT.write_reply(reply, asked, "m").body)["choices"][0]
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert choice["finish_reason"] == "function_call"
    writer = CHAT.writer(asked, "m")
    stream = b"".join(writer.feed(d) for d in unfold(reply))
    assert b'"function_call":{"name":"f"' in stream
    assert b"tool_calls" not in stream


def test_citations_shift_with_the_text_before_them() -> None:
    cited = Text("bc", (Citation("https://example.org", "t", 0, 2),))
    reply = Reply((Text("é"), cited), "end", format="openai_responses")
    expected = {"url": "https://example.org", "title": "t", "start_index": 1, "end_index": 3}
    message = msgspec.json.decode(CHAT.write_reply(reply, ASKED, "m").body)["choices"][0]["message"]
    assert message["annotations"] == [{"type": "url_citation", "url_citation": expected}]
    writer = CHAT.writer(ASKED, "m")
    stream = b"".join(writer.feed(d) for d in unfold(reply))
    assert fold(deltas(stream)).parts[0] == Text("ébc", (Citation("https://example.org", "t", 1, 3),))


def test_a_reply_of_messages_reports_what_it_loses() -> None:
    reply = Reply(
        (
            Reasoning("why", signature="s", origin="anthropic_messages"),
            Text("x"),
            Opaque("anthropic_messages", "server_tool_use", {}),
        ),
        "pause",
        Usage(1, 2, extra={"server_tool_use": {}}),
        format="anthropic_messages",
        extra={"container": {}},
    )
    out = CHAT.write_reply(reply, ASKED, "m")
    assert [d.path for d in out.drops] == [
        "content[0].signature",
        "content[2]",
        "stop_reason",
        "usage.server_tool_use",
        "container",
    ]
    value = msgspec.json.decode(out.body)
    assert value["choices"][0]["message"]["reasoning_content"] == "why"
    assert "container" not in value


def test_output_only_a_responses_client_can_act_on_is_a_typed_error() -> None:
    part = Opaque("openai_responses", "apply_patch_call", {})
    with pytest.raises(ClientError) as caught:
        CHAT.write_reply(Reply((Text("x"), part), format="openai_responses"), ASKED, "m")
    assert caught.value.code == "unsupported_capability"
    writer = CHAT.writer(ASKED, "m")
    writer.feed(Begin("i"))
    assert b'"unsupported_capability"' in writer.feed(PartBegin(0, part))
    assert writer.feed(End("end")) == b""


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (ClientError("no", status=404, code="model_not_found"), 404, "not_found_error", "model_not_found"),
        (UpstreamError("timeout", "x"), 504, "timeout_error", "upstream_timeout"),
        (UpstreamError("unavailable", "x", status=503), 503, "server_error", "upstream_unavailable"),
        (UpstreamError("unavailable", "x"), 502, "server_error", "upstream_unavailable"),
        (
            UpstreamError("overflow", "x", status=500, code="odd"),
            400,
            "invalid_request_error",
            "context_length_exceeded",
        ),
        (UpstreamError("rate_limit", "x", status=413), 429, "rate_limit_error", "rate_limit_exceeded"),
        (UpstreamError("auth", "x", status=403), 403, "permission_error", "upstream_authentication_failed"),
        (UpstreamError("request", "x", status=422, code="c", type="t"), 422, "t", "c"),
        (UpstreamError("refused", "x"), 400, "invalid_request_error", "content_policy_violation"),
        (UpstreamError("malformed", "x", status=200), 502, "server_error", "upstream_malformed"),
        (RouterError("secret inner words"), 500, "server_error", "internal_error"),
    ],
)
def test_errors(error: TurnoutError, status: int, kind: str, code: str) -> None:
    out = CHAT.write_error(error)
    value: Any = msgspec.json.decode(out.body)["error"]
    assert (out.status, value["type"], value["code"]) == (status, kind, code)
    assert "secret" not in value["message"]
    assert (b"content-type", b"application/json") in out.headers


def test_an_error_says_when_to_come_back() -> None:
    out = CHAT.write_error(UpstreamError("rate_limit", "x", retry_after_s=1.2))
    assert (b"retry-after", b"2") in out.headers


def test_replies_that_are_no_replies() -> None:
    for body, kind in (
        (b"<html>", "malformed"),
        (b"[]", "malformed"),
        (b"{}", "malformed"),
        (b'{"choices":[{}]}', "malformed"),
        (b'{"error":{"message":"maximum context length is 3"}}', "overflow"),
        (b'{"detail":"rate limit exceeded"}', "rate_limit"),
    ):
        with pytest.raises(UpstreamError) as caught:
            CHAT.read_reply(body)
        assert caught.value.kind == kind


def test_what_a_reply_echoes_survives() -> None:
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "system_fingerprint": "fp",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a"},
                "finish_reason": "stop",
                "logprobs": {"content": []},
            },
            {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop"},
        ],
    }
    asked: Request = request(n=2)
    value = msgspec.json.decode(CHAT.write_reply(CHAT.read_reply(msgspec.json.encode(body)), asked, "m").body)
    assert value["system_fingerprint"] == "fp"
    assert value["choices"][0]["logprobs"] == {"content": []}
    assert value["choices"][1]["message"]["content"] == "b"
