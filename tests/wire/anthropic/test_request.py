"""Reading Messages requests: everything is kept, nothing is decoded early, errors name the path."""

from typing import Any

import msgspec
import pytest

from turnout.conversation import (
    Document,
    Image,
    Media,
    Opaque,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.anthropic import MESSAGES
from turnout.wire.codec import Request


def body(**fields: Any) -> bytes:
    base = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    return msgspec.json.encode({**base, **fields})


def read(**fields: Any) -> Request:
    return MESSAGES.read_request(body(**fields))


def assistant(*blocks: Any) -> list[Any]:
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": list(blocks)}]


def test_roles_are_known_without_decoding() -> None:
    request = MESSAGES.read_request(
        b'{"model":"m","messages":[{"role":"user","content":7},{"role":"system","content":"s"}]}'
    )
    assert request.conversation.roles == ("user", "system")
    with pytest.raises(ClientError, match=r"messages\[0\].content: expected a string or a list"):
        _ = request.conversation.messages[0]


def test_a_tool_input_keeps_its_json_text() -> None:
    raw = b'{"b" : 1,  "a":[1.50, 1e3]}'
    request = MESSAGES.read_request(
        b'{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":'
        + raw
        + b"}]}]}"
    )
    part = request.conversation.messages[0].parts[0]
    assert part == ToolCall("t1", "n", raw.decode())
    assert raw in MESSAGES.write_request(request).body


def test_every_block_type_becomes_its_part() -> None:
    cache = {"type": "ephemeral", "ttl": "1h"}
    blocks = [
        {"type": "text", "text": "t", "cache_control": cache, "new_field": [1]},
        {"type": "thinking", "thinking": "why", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}, "cache_control": cache},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "T"},
        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}, "context": "c"},
        {"type": "tool_use", "id": "t1", "name": "n", "input": {}, "caller": {"type": "direct"}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "is_error": True,
            "content": [
                {"type": "text", "text": "out"},
                {"type": "image", "source": {"type": "url", "url": "https://x/i.png"}},
                {"type": "tool_reference", "tool_name": "grep"},
            ],
        },
    ]
    message = read(messages=assistant(*blocks)).conversation.messages[1]
    own = "anthropic_messages"
    assert message.parts == (
        Text("t", cache=cache, extra={"new_field": [1]}),
        Reasoning("why", signature="s", origin=own),
        Reasoning(redacted=True, encrypted="d", origin=own),
        Image(Media("base64", "AA==", "image/png")),
        Image(Media("file_id", "f1", None, own), cache=cache),
        Document(Media("text", "x", "text/plain"), "T"),
        Document(Media("url", "https://x/y.pdf", "application/pdf"), context="c"),
        ToolCall("t1", "n", "{}", extra={"caller": {"type": "direct"}}),
        Opaque(own, "server_tool_use", blocks[8]),
        ToolResult(
            "t1",
            (
                Text("out"),
                Image(Media("url", "https://x/i.png")),
                Opaque(own, "tool_reference", blocks[9]["content"][2], "Tool available: grep"),  # type: ignore[index]
            ),
            True,
            text_only=False,
        ),
    )


def test_settings_are_read_by_name_and_the_rest_stays_native() -> None:
    settings = read(
        stream=True,
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
        output_config={
            "effort": "high",
            "format": {"type": "json_schema", "schema": {"b": 1, "a": 2}},
            "task_budget": 5,
        },
        metadata={"user_id": "u", "k": "v"},
        stop_sequences=["X"],
        service_tier="auto",
        context_management={"edits": []},
        brand_new={"x": None},
    ).settings
    assert settings.tool_choice == ToolChoice("required")
    assert settings.parallel is False
    assert settings.effort is not None
    assert (settings.effort.mode, settings.effort.budget_tokens, settings.effort.level) == ("enabled", 2000, "high")
    assert settings.output is not None
    assert list(settings.output.schema or ()) == ["b", "a"]
    assert (settings.user, settings.metadata) == ("u", {"k": "v"})
    assert settings.stop == ("X",)
    assert settings.stream_usage
    assert settings.extra == {
        "context_management": {"edits": []},
        "output_config": {"task_budget": 5},
        "brand_new": {"x": None},
    }


def test_the_current_output_field_wins_over_the_legacy_one() -> None:
    new, old = ({"type": "json_schema", "schema": {"title": t}} for t in ("new", "old"))
    both = read(output_config={"format": new}, output_format=old).settings.output
    assert both is not None
    assert both.schema == {"title": "new"}
    legacy = read(output_format=old).settings.output
    assert legacy is not None
    assert legacy.schema == {"title": "old"}


def test_tools_of_the_client_and_of_the_server() -> None:
    server = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    tools = read(
        tools=[
            {"name": "a", "input_schema": {"type": "object"}, "strict": True, "defer_loading": True},
            server,
        ]
    ).conversation.tools
    assert tools == (
        Tool("a", parameters={"type": "object"}, strict=True, extra={"defer_loading": True}),
        Tool("web_search", style="server", raw=server, format="anthropic_messages"),
    )


def test_null_system_and_max_tokens_0_are_accepted() -> None:
    request = read(system=None, max_tokens=0)
    assert request.conversation.system == ()
    assert request.settings.max_tokens == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"system": {"a": 1}}, "system"),
        ({"system": True}, "system"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "7"}, "max_tokens"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": [{"role": "owner", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"unknown": 1, "temperature": "warm"}, "temperature"),
        ({"tool_choice": {}}, "tool_choice.type"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        ({"thinking": {"type": "enabled", "budget_tokens": "many"}}, "thinking.budget_tokens"),
    ],
)
def test_a_malformed_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ClientError) as caught:
        read(**fields)
    assert caught.value.param == param
    assert caught.value.message.startswith(param)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("block", "param"),
    [
        ({"type": "tool_use", "id": "t", "name": "n", "input": None}, "messages[1].content[0].input"),
        ({"type": "tool_use", "id": "t", "name": "n", "input": True}, "messages[1].content[0].input"),
        ({"type": "text", "text": 7}, "messages[1].content[0].text"),
        ({"text": "x"}, "messages[1].content[0]"),
        ("text", "messages[1].content[0]"),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]},
            "messages[1].content[0].content[0].text",
        ),
    ],
)
def test_a_malformed_block_is_named_when_it_is_looked_at(block: Any, param: str) -> None:
    request = read(messages=assistant(block))
    with pytest.raises(ClientError) as caught:
        _ = request.conversation.messages[1]
    assert caught.value.param == param


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"model":"m","messages":[{]}', b'{"model":"\xff"}'])
def test_a_broken_body_is_a_clear_error(broken: bytes) -> None:
    with pytest.raises(ClientError):
        MESSAGES.read_request(broken)
