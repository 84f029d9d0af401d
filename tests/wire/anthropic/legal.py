"""What Messages demands of a request, checked as its API does."""

import re
from typing import Any

import msgspec

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_legal(body: bytes) -> dict[str, Any]:
    """The decoded body. Fails when Messages would refuse it."""
    request: dict[str, Any] = msgspec.json.decode(body)
    assert request["max_tokens"] >= 0
    messages = request["messages"]
    assert messages
    assert messages[0]["role"] == "user"
    used: set[str] = set()
    for i, message in enumerate(messages):
        assert message["role"] == ("user" if i % 2 == 0 else "assistant"), "turns alternate"
        assert message["content"], "no empty turn"
        for block in message["content"]:
            _check_block(block)
        calls = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        assert not used & set(calls)
        assert len(set(calls)) == len(calls)
        used |= set(calls)
        after = messages[i + 1]["content"] if i + 1 < len(messages) else []
        results = [b["tool_use_id"] for b in after if b["type"] == "tool_result"]
        assert sorted(results) == sorted(calls), "every call is answered in the next turn"
        assert all(b["type"] == "tool_result" for b in after[: len(results)]), "results come first"
    _check_tools(request)
    assert str(request).count("'cache_control'") <= 4
    return request


def _check_block(block: dict[str, Any]) -> None:
    if block["type"] == "text":
        assert block["text"].strip(), "no blank text"
    if block["type"] == "tool_use":
        assert isinstance(block["input"], dict)
        assert _ID.fullmatch(block["id"])
        assert _NAME.fullmatch(block["name"])
    if block["type"] == "thinking":
        assert block["signature"]


def _check_tools(request: dict[str, Any]) -> None:
    tools = request.get("tools")
    if tools is None:
        assert "tool_choice" not in request
        return
    assert tools
    names = [t["name"] for t in tools]
    assert len(set(names)) == len(names)
    for tool in tools:
        assert _NAME.fullmatch(tool["name"])
        assert "type" in tool["input_schema"]
