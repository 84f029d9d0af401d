"""Items of Responses -> neutral messages and parts; the same for input items and for the output of a reply."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from turnout.conversation import Message, Opaque, Part, Reasoning, Role, ToolCall, ToolResult
from turnout.wire.responses.content import FORMAT, as_json, decoded, fault, read_content, rest, text_or_none
from turnout.wire.responses.sealed import unseal

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer"}

_ROLE_OF_TYPE: dict[str, Role] = {
    "reasoning": "assistant",
    "compaction": "assistant",
    "item_reference": "assistant",
    "mcp_list_tools": "assistant",
    "mcp_approval_request": "assistant",
    "program": "assistant",
    "mcp_approval_response": "user",
    "compaction_trigger": "user",
    "additional_tools": "developer",
}


def kind_of(type_: str | None, role: str | None, has_id: bool, path: str) -> str:
    """The type of an item; those that leave it out are told by their shape. Raises ClientError for what has no shape."""
    if type_ is not None:
        return type_
    if role is not None:
        return "message"
    if has_id:
        return "item_reference"
    raise fault(path, "an input item needs a type, or a role and content")


def role_of(kind: str, role: str | None, path: str) -> Role:
    """Whose turn an item belongs to. Raises ClientError for a message with an unknown role."""
    known = ROLES.get(role) if role is not None else None
    if known is not None:
        return known
    if kind == "message":
        raise fault(f"{path}.role", f"expected user, assistant, system or developer, got {role!r}")
    found = _ROLE_OF_TYPE.get(kind)
    if found is not None:
        return found
    if kind.endswith("_output"):
        return "tool"
    return "assistant" if kind.endswith("_call") else "user"


_MESSAGE = frozenset({"type", "role", "content", "id", "status"})


def read_item(raw: msgspec.Raw, index: int) -> Message:
    """The message of one input item. Raises ClientError with the path of what is malformed."""
    path = f"input[{index}]"
    return message_of(decoded(raw, path), path)


def message_of(value: dict[str, Any], path: str) -> Message:
    """The message of a decoded item."""
    kind = kind_of(value.get("type"), value.get("role"), "id" in value, path)
    role = role_of(kind, value.get("role"), path)
    if kind == "message":
        content = value.get("content")
        parts = read_content(content, f"{path}.content")
        extra = rest(value, _MESSAGE) if len(value) > 3 else {}
        if len(parts) == 1 and isinstance(parts[0], Opaque):
            extra = {"type": kind, **extra}  # tells the unknown content part of a message from an unknown item
        return Message(
            role,
            parts,
            None,
            text_or_none(value.get("id")),
            text_or_none(value.get("status")),
            isinstance(content, str),
            extra,
        )
    return Message(role, (part_of(kind, value, path),), status=_status(kind, value))


def _status(kind: str, value: dict[str, Any]) -> str | None:
    return text_or_none(value.get("status")) if kind in _READERS else None


def part_of(kind: str, value: dict[str, Any], path: str) -> Part:
    """The part that an item other than a message is."""
    read = _READERS.get(kind)
    if read is not None:
        return read(value, path)
    return Opaque(FORMAT, kind, value, visible(kind, value))


_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})


def _reasoning(value: dict[str, Any], path: str) -> Part:
    encrypted = value.get("encrypted_content")
    if isinstance(encrypted, str):
        foreign = unseal(encrypted)
        if foreign is not None:
            return foreign
    summary = _texts(value.get("summary"))
    content = _texts(value.get("content"))
    extra = rest(value, _REASONING)
    if summary and content:
        extra["content"] = value["content"]
    pieces = summary or content
    return Reasoning(
        "\n\n".join(pieces),
        pieces if len(pieces) > 1 else (),
        encrypted=encrypted if isinstance(encrypted, str) and encrypted else None,
        id=text_or_none(value.get("id")),
        origin=FORMAT,
        extra=extra,
    )


def _texts(pieces: Any) -> tuple[str, ...]:
    if isinstance(pieces, str):
        return (pieces,) if pieces else ()
    if not isinstance(pieces, list):
        return ()
    return tuple(p["text"] for p in pieces if isinstance(p, dict) and isinstance(p.get("text"), str) and p["text"])


_CALL = frozenset({"type", "id", "call_id", "name", "arguments", "input", "namespace", "status"})


def _call(value: dict[str, Any], path: str, style: Literal["function", "custom"], field: str) -> Part:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise fault(f"{path}.name", "a tool call needs the name of the tool")
    arguments = value.get(field)
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = as_json(arguments)
    return ToolCall(
        _call_id(value, path),
        name,
        arguments,
        style,
        text_or_none(value.get("namespace")),
        text_or_none(value.get("id")),
        extra=rest(value, _CALL),
    )


def _call_id(value: dict[str, Any], path: str) -> str:
    call_id = value.get("call_id")
    if not isinstance(call_id, str):
        call_id = value.get("id")
    if not isinstance(call_id, str):
        raise fault(f"{path}.call_id", "expected a string")
    return call_id


def _function_call(value: dict[str, Any], path: str) -> Part:
    return _call(value, path, "function", "arguments")


def _custom_call(value: dict[str, Any], path: str) -> Part:
    return _call(value, path, "custom", "input")


_OUTPUT = frozenset({"type", "id", "call_id", "output", "name", "status"})


def _result(value: dict[str, Any], path: str, style: Literal["function", "custom"]) -> Part:
    output = value.get("output")
    if not isinstance(output, list | str):
        output = "" if output is None else as_json(output)
    return ToolResult(
        _call_id(value, path),
        read_content(output, f"{path}.output"),
        None,
        style,
        text_or_none(value.get("name")),
        isinstance(output, str),
        text_or_none(value.get("id")),
        extra=rest(value, _OUTPUT),
    )


def _function_output(value: dict[str, Any], path: str) -> Part:
    return _result(value, path, "function")


def _custom_output(value: dict[str, Any], path: str) -> Part:
    return _result(value, path, "custom")


_READERS: dict[str, Callable[[dict[str, Any], str], Part]] = {
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "function_call_output": _function_output,
    "custom_tool_call_output": _custom_output,
}

_SILENT = frozenset({"additional_tools", "compaction_trigger", "compaction", "item_reference", "mcp_list_tools"})


def visible(kind: str, value: dict[str, Any]) -> str:
    """What a person could read in place of an item: "" for those that say nothing to a person, else its JSON."""
    if kind in _SILENT:
        return ""
    if kind == "web_search_call":
        action = value.get("action")
        query = action.get("query") if isinstance(action, dict) else None
        return f"[web search: {query}]" if query else ""
    return as_json(value)
