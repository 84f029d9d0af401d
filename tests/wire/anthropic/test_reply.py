"""Buffered replies and errors of Messages."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from tests.strategies import replies
from tests.wire.laws import answered, asked
from turnout.conversation import (
    Citation,
    Image,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Reply,
    Stop,
    Text,
    ToolCall,
    Usage,
)
from turnout.errors import ClientError, RouterError, TurnoutError, UpstreamError
from turnout.wire import CODECS
from turnout.wire.anthropic import MESSAGES

ASKED = asked(MESSAGES)
CHAT = CODECS["openai_chat"]


def write(reply: Reply) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(MESSAGES.write_reply(reply, ASKED, "served").body)
    return value


def native(**fields: Any) -> bytes:
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_sequence": None}
    return msgspec.json.encode({**base, "stop_reason": "end_turn", **fields})


@given(replies())
@settings(deadline=None)
def test_any_reply_means_the_same_when_it_is_read_again(reply: Reply) -> None:
    written = MESSAGES.write_reply(reply, ASKED, reply.model)
    again = MESSAGES.read_reply(written.body)
    assert answered(again) == answered(
        msgspec.structs.replace(
            reply,
            usage=msgspec.structs.replace(
                reply.usage or Usage(),
                input_tokens=(reply.usage and reply.usage.input_tokens) or 0,
                output_tokens=(reply.usage and reply.usage.output_tokens) or 0,
            ),
        )
    )
    assert again.model == reply.model


@pytest.mark.parametrize(
    ("reason", "stop", "detail"),
    [
        ("end_turn", "end", None),
        ("max_tokens", "length", None),
        ("stop_sequence", "stop_sequence", None),
        ("tool_use", "tool_calls", None),
        ("refusal", "refusal", None),
        ("pause_turn", "pause", None),
        ("model_context_window_exceeded", "length", "model_context_window_exceeded"),
    ],
)
def test_stop_reasons_there_and_back(reason: str, stop: Stop, detail: str | None) -> None:
    content = [{"type": "tool_use", "id": "t", "name": "n", "input": {}}] if reason == "tool_use" else []
    reply = MESSAGES.read_reply(native(stop_reason=reason, content=content))
    assert (reply.stop, reply.stop_detail) == (stop, detail)
    assert write(reply)["stop_reason"] == reason


def test_a_stop_reason_never_contradicts_the_calls() -> None:
    assert write(Reply((ToolCall("t", "n"),), "end"))["stop_reason"] == "tool_use"
    assert write(Reply((Text("x"),), "tool_calls"))["stop_reason"] == "end_turn"
    assert write(Reply((ToolCall("t", "n"),), "length"))["stop_reason"] == "max_tokens"


def test_a_refusal_keeps_its_category() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    reply = MESSAGES.read_reply(native(stop_reason="refusal", stop_details=details))
    assert reply.stop_detail == "cyber"
    assert write(reply)["stop_details"] == details
    foreign = write(Reply((Refusal("I will not."),), "refusal", stop_detail="violence"))
    assert foreign["content"] == [{"type": "text", "text": "I will not."}]
    assert foreign["stop_details"]["category"] == "violence"


def test_usage_there_and_back() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
        "output_tokens_details": {"thinking_tokens": 3},
        "server_tool_use": {"web_search_requests": 1},
        "service_tier": "standard",
    }
    reply = MESSAGES.read_reply(native(usage=usage))
    extra = {"server_tool_use": {"web_search_requests": 1}, "service_tier": "standard"}
    assert reply.usage == Usage(10, 5, 70, 20, 15, 3, extra)
    assert reply.usage.prompt_tokens == 100
    assert write(reply)["usage"] == usage


def test_missing_usage_is_unknown_but_written_in_full_shape() -> None:
    reply = MESSAGES.read_reply(native())
    assert reply.usage is None
    assert set(write(reply)["usage"]) >= {"input_tokens", "output_tokens", "cache_read_input_tokens"}


def test_parts_of_other_models() -> None:
    parts = (
        Reasoning("thoughts", encrypted="x", origin="openai_responses"),
        Reasoning(encrypted="only", origin="openai_responses"),
        Text("", annotations=(Citation("https://x", "X", 0, 1),)),
        ToolCall("call_1", "f", ""),
        Image(Media("base64", "AA==", "image/png")),
    )
    written = MESSAGES.write_reply(Reply(parts, "tool_calls", id="chatcmpl-1"), ASKED, "served")
    value = msgspec.json.decode(written.body)
    assert value["content"] == [
        {"type": "thinking", "thinking": "thoughts", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {}},
    ]
    assert (value["model"], value["id"]) == ("served", "msg_chatcmpl-1")
    assert {d.path for d in written.drops} == {
        "content[0].encrypted_content",
        "content[1].encrypted_content",
        "content[4]",
    }


def test_an_action_messages_cannot_express_is_an_error() -> None:
    action = Opaque("openai_responses", "local_shell_call", {"type": "local_shell_call"})
    with pytest.raises(ClientError, match="local_shell_call"):
        write(Reply((Text("x"), action)))


def test_names_and_styles_are_restored_for_a_client_of_another_format() -> None:
    tools = [
        {"type": "custom", "custom": {"name": "patch"}},
        {"type": "function", "function": {"name": "x" * 70}},
    ]
    request = asked(CHAT, tools=tools)
    sent = MESSAGES.read_request(MESSAGES.write_request(request).body)
    names = [t.name for t in sent.conversation.tools]
    content = [
        {"type": "tool_use", "id": "1", "name": names[0], "input": {"input": "*** Begin"}},
        {"type": "tool_use", "id": "2", "name": names[1], "input": {}},
    ]
    calls = MESSAGES.read_reply(native(content=content, stop_reason="tool_use"), request).calls
    assert (calls[0].name, calls[0].style, calls[0].arguments) == ("patch", "custom", "*** Begin")
    assert calls[1].name == "x" * 70


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"content":"x","stop_reason":"end_turn"}',
        b'{"content":[7],"stop_reason":"end_turn"}',
        b'{"content":[]}',
        b'{"content":[{"type":"text","text":"cut',
        b"[" * 100_000,
    ],
)
def test_a_broken_reply_is_malformed(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        MESSAGES.read_reply(body)
    assert caught.value.kind == "malformed"


def test_an_error_inside_a_200_is_that_error() -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    with pytest.raises(UpstreamError) as caught:
        MESSAGES.read_reply(body)
    assert caught.value.kind == "unavailable"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ClientError("bad", param="messages"), 400, "invalid_request_error"),
        (ClientError("who", status=401), 401, "authentication_error"),
        (ClientError("no such route", status=404, code="model_not_found"), 404, "not_found_error"),
        (ClientError("large", status=413), 413, "request_too_large"),
        (ClientError("slow down", status=429), 429, "rate_limit_error"),
        (ClientError("odd", status=418), 418, "invalid_request_error"),
        (UpstreamError("timeout", "t"), 504, "timeout_error"),
        (UpstreamError("unavailable", "u"), 502, "api_error"),
        (UpstreamError("unavailable", "u", status=529), 529, "overloaded_error"),
        (UpstreamError("rate_limit", "r"), 429, "rate_limit_error"),
        (UpstreamError("overflow", "o", status=500), 400, "invalid_request_error"),
        (UpstreamError("refused", "r"), 400, "invalid_request_error"),
        (UpstreamError("auth", "a", status=403), 403, "permission_error"),
        (UpstreamError("malformed", "m"), 502, "api_error"),
        (UpstreamError("request", "q", status=422), 422, "invalid_request_error"),
        (RouterError("bug"), 500, "api_error"),
    ],
)
def test_errors_in_this_envelope(error: TurnoutError, status: int, kind: str) -> None:
    written = MESSAGES.write_error(error)
    value = msgspec.json.decode(written.body)
    assert written.status == status
    assert value["type"] == "error"
    assert value["error"]["type"] == kind
    assert value["error"]["message"]
    assert (b"content-type", b"application/json") in written.headers


def test_retry_after_is_rounded_up_and_overflow_is_said_in_words_clients_know() -> None:
    limited = MESSAGES.write_error(UpstreamError("rate_limit", "r", retry_after_s=1.2))
    assert (b"retry-after", b"2") in limited.headers
    overflow = msgspec.json.decode(MESSAGES.write_error(UpstreamError("overflow", "too much")).body)
    assert overflow["error"]["message"] == "too much"
    assert "prompt is too long" in str(overflow)
    assert overflow["error"]["code"] == "context_length_exceeded"
