"""Chat requests: read by name, indexed only, malformed fields named, written back whole."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.wire.chat.exchange import loose, request, written
from turnout.conversation import (
    Audio,
    Conversation,
    Document,
    Effort,
    Image,
    Lazy,
    Media,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Settings,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text("abcdefghij_-", min_size=1, max_size=12)
extras = st.dictionaries(names.map("x_{}".format), st.one_of(st.integers(), words, st.booleans()), max_size=2)
caches = st.sampled_from([None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])

texts = st.builds(Text, words, cache=caches, extra=extras)
media = st.one_of(
    st.builds(lambda d: Media("base64", d.hex(), "image/png"), st.binary(max_size=9)),
    st.builds(lambda w: Media("url", "https://example.org/" + w), names),
)
images = st.builds(Image, media, st.sampled_from([None, "low", "high"]), caches, extras)
clips = st.builds(lambda d: Audio(Media("base64", d.hex(), "audio/wav")), st.binary(max_size=9))
files = st.one_of(
    st.builds(lambda d, n: Document(Media("base64", d.hex(), "application/pdf"), n), st.binary(max_size=9), names),
    st.builds(lambda t: Document(Media("text", t, "text/plain"), "notes.txt"), words),
    st.builds(lambda i: Document(Media("file_id", i, origin="openai_chat")), names),
)
content = st.lists(st.one_of(texts, images, clips, files), min_size=1, max_size=4).map(tuple)
calls = st.builds(
    ToolCall, names.map("call_{}".format), names, words, st.sampled_from(["function", "custom"]), extra=extras
)
thoughts = st.builds(
    lambda text, field: Reasoning(text, origin="openai_chat", extra={} if field is None else {"field": field}),
    words,
    st.sampled_from([None, "reasoning", "both"]),
)
users = st.one_of(
    st.builds(lambda t, n: Message("user", (Text(t),), name=n, flat=True), words, st.none() | names),
    st.builds(lambda p, e: Message("user", p, extra=e), content, extras),
)
instructions = st.builds(
    lambda r, t: Message(r, (Text(t),), flat=True), st.sampled_from(["system", "developer"]), words
)


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    parts: list[Any] = draw(st.lists(thoughts, max_size=1))
    flat = draw(st.booleans())
    parts += [Text(draw(words))] if flat else draw(st.lists(texts, max_size=2))
    parts += draw(st.lists(calls, max_size=3))
    return Message("assistant", tuple(parts), flat=flat, extra=draw(extras))


@st.composite
def results(draw: st.DrawFn) -> Message:
    text_only = draw(st.booleans())
    parts = (Text(draw(words)),) if text_only else draw(content)
    flag = draw(st.sampled_from([None, True, False]))
    result = ToolResult(
        draw(names.map("call_{}".format)), parts, flag, name=draw(st.none() | names), text_only=text_only
    )
    return Message("tool", (replace(result, extra=draw(extras)),))


conversations = st.lists(st.one_of(users, instructions, assistants(), results()), max_size=6).map(
    lambda messages: Conversation(tuple(messages), format="openai_chat")
)


@given(conversations)
def test_what_is_written_is_read_again(conversation: Conversation) -> None:
    body = CHAT.write_request(Request("openai_chat", conversation, Settings("m"))).body
    assert CHAT.read_request(body).conversation == conversation


@given(conversations)
def test_an_untouched_conversation_goes_out_as_the_bytes_it_came_in(conversation: Conversation) -> None:
    body = CHAT.write_request(Request("openai_chat", conversation, Settings("m"))).body
    assert CHAT.write_request(CHAT.read_request(body)).body == body


SETTINGS: dict[str, Any] = {
    "stream": True,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    "max_completion_tokens": 7,
    "temperature": 0.5,
    "top_p": 0.25,
    "top_k": 3,
    "n": 2,
    "stop": ["a", "b"],
    "parallel_tool_calls": False,
    "reasoning_effort": "low",
    "verbosity": "high",
    "metadata": {"a": "b"},
    "safety_identifier": "s",
    "user": "u",
    "service_tier": "flex",
    "store": False,
    "prompt_cache_key": "k",
    "seed": 3,
    "logprobs": True,
    "top_logprobs": 2,
    "logit_bias": {"1": 2},
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "prediction": {"type": "content", "content": "x"},
    "modalities": ["text"],
    "audio": {"voice": "alloy", "format": "wav"},
    "web_search_options": {},
    "moderation": {"x": 1},
    "prompt_cache_retention": "24h",
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object", "b": 1, "a": 2}, "strict": True, "description": "d"},
    },
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"z": 1, "a": 2}, "strict": True}},
    {"type": "function", "function": {"name": "g"}, "cache_control": {"type": "ephemeral"}},
    {
        "type": "custom",
        "custom": {
            "name": "patch",
            "description": "d",
            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}},
        },
    },
    {"type": "web_search", "web_search": {"depth": 1}},
]


def test_every_setting_survives() -> None:
    read = request(**SETTINGS, tools=TOOLS)
    assert written(loose(read)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        **SETTINGS,
        "tools": TOOLS,
    }


def test_settings_shared_with_other_formats_are_read_by_name() -> None:
    settings = request(**SETTINGS, tools=TOOLS).settings
    assert (settings.max_tokens, settings.stop, settings.parallel) == (7, ("a", "b"), False)
    assert settings.effort == Effort("low")
    assert (settings.user, settings.user_field) == ("s", "safety_identifier")
    assert settings.stream_usage
    assert settings.extra["seed"] == 3
    assert list(settings.output.schema or ()) == ["type", "b", "a"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("choice", "mode"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "f"}}, "named"),
        ({"type": "custom", "custom": {"name": "patch"}}, "named"),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            "allowed",
        ),
        ({"type": "new"}, "raw"),
    ],
)
def test_tool_choice(choice: Any, mode: str) -> None:
    read = request(tools=TOOLS, tool_choice=choice)
    assert read.settings.tool_choice is not None
    assert read.settings.tool_choice.mode == mode
    assert written(loose(read))["tool_choice"] == choice


def test_the_effort_of_a_router_s_reasoning_object_is_read_and_kept() -> None:
    read = request(reasoning={"effort": "low", "exclude": True})
    assert read.settings.effort == Effort("low")
    assert written(read)["reasoning"] == {"effort": "low", "exclude": True}
    assert "reasoning_effort" not in written(read)


def test_legacy_functions() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
    ]
    functions = [{"name": "f", "parameters": {"type": "object"}}]
    read = request(messages, functions=functions, function_call={"name": "f"})
    call, result = read.conversation.messages[1].parts[0], read.conversation.messages[2].parts[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert call.id == result.call_id
    assert read.conversation.roles == ("user", "assistant", "tool")
    assert [t.name for t in read.conversation.tools] == ["f"]
    out = written(loose(read))
    assert out["messages"] == messages
    assert (out["functions"], out["function_call"]) == (functions, {"name": "f"})


def test_reading_decodes_no_message() -> None:
    body = b'{"model":"m","messages":[{"content":[{"type":7}],"role":"user"},{ "role" : "assistant","content":3}]}'
    read = CHAT.read_request(body)
    assert read.conversation.roles == ("user", "assistant")
    assert isinstance(read.conversation.messages, Lazy)
    with pytest.raises(ClientError) as caught:
        read.conversation.messages[0]
    assert caught.value.param == "messages[0].content[0].type"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": 3}, "messages"),
        ({}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [], "max_tokens": "x"}, "max_tokens"),
        ({"messages": [], "max_tokens": -1}, "max_tokens"),
        ({"messages": [], "max_tokens": True}, "max_tokens"),
        ({"messages": [], "stop": 3, "unknown": 1}, "stop"),
        ({"messages": [], "stop": [3]}, "stop[0]"),
        ({"messages": [], "response_format": {"type": "yaml"}}, "response_format.type"),
        ({"messages": [], "tool_choice": {"type": "function"}}, "tool_choice.function.name"),
        ({"messages": [], "tool_choice": 4}, "tool_choice"),
    ],
)
def test_a_malformed_body_is_named(body: Any, param: str) -> None:
    with pytest.raises(ClientError) as caught:
        CHAT.read_request(msgspec.json.encode({"model": "m", **body}))
    assert caught.value.param == param
    assert param in caught.value.message


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "user", "content": 3}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0].image_url"),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, "messages[0].content[0].file"),
        ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "assistant", "tool_calls": 3}, "messages[0].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"type": "function"}]}, "messages[0].tool_calls[0].function"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "messages[0].tool_calls[0].function.name"),
    ],
)
def test_a_malformed_message_is_named(message: Any, param: str) -> None:
    with pytest.raises(ClientError) as caught:
        list(request([message]).conversation.messages)
    assert caught.value.param == param


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"messages":[]', b'\xff{"messages":[]}'])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ClientError):
        CHAT.read_request(body)


def test_parts_of_every_kind() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;name=x;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,%3Csvg%3E"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "a.txt"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/v"}},
    ]
    read = request([{"role": "user", "content": parts}]).conversation.messages[0].parts
    assert read[0] == Text("a", cache={"type": "ephemeral"})
    assert read[1] == Image(Media("base64", "AAAA", "image/png"), "low")
    assert read[2] == Image(Media("url", "data:image/svg+xml,%3Csvg%3E"))
    assert read[3] == Audio(Media("base64", "AAAA", "audio/wav"))
    assert read[4] == Document(Media("text", "hi", "text/plain"), "a.txt")
    assert read[5] == Opaque("openai_chat", "video_url", parts[5])


def test_reasoning_in_every_spelling() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    messages: list[Any] = [
        {"role": "assistant", "content": "a", "reasoning_content": "r"},
        {"role": "assistant", "content": "a", "reasoning": "r", "reasoning_details": details},
        {"role": "assistant", "content": "a", "reasoning_details": details},
        {"role": "assistant", "content": "a", "reasoning": "r", "reasoning_content": "r"},
        {"role": "assistant", "content": None, "refusal": "no"},
    ]
    read = loose(request(messages))
    first = [m.parts[0] for m in read.conversation.messages]
    assert [p.text for p in first if isinstance(p, Reasoning)] == ["r", "r", "", "r"]
    assert first[4] == Refusal("no")
    assert written(read)["messages"][:4] == messages[:4]


def test_flags_of_recorded_tool_results_are_read() -> None:
    message = {"role": "tool", "tool_call_id": "c", "content": "x", "is_error": True, "returncode": 2}
    part = request([message]).conversation.messages[0].parts[0]
    assert part == ToolResult("c", (Text("x"),), True, extra={"returncode": 2})


def test_what_a_router_adds_from_another_format_stays_legal() -> None:
    parts = (Reasoning("secret", signature="s", origin="anthropic_messages"), ToolCall("c", "f", "{}", namespace="ns"))
    conversation = Conversation((Message("assistant", parts),), format="openai_chat")
    message = written(Request("openai_chat", conversation, Settings("m")))["messages"][0]
    assert "secret" not in str(message)
    assert message["tool_calls"][0]["function"]["name"] == "ns__f"
