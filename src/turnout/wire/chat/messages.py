"""Messages of a Chat request, both ways, one for one."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from turnout.conversation import Message, Part, Reasoning, Refusal, Role, ToolCall, ToolResult
from turnout.errors import ClientError
from turnout.wire.chat.content import FORMAT, read_content, write_part, write_text
from turnout.wire.chat.fields import object_at, rest, text_or_none, wrong
from turnout.wire.names import alias

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

LEGACY = "function_call_"
"""Calls and results of the legacy function interface have no id: they are paired under this prefix and the position of
the call's message."""

_PLAIN = frozenset(("role", "content", "name"))
REPLY_FIELDS = frozenset(
    (
        "role",
        "content",
        "name",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "refusal",
        "tool_calls",
        "function_call",
    )
)
"""The fields of an assistant message that have a place of their own in the neutral form."""

_RESULT = frozenset(("role", "content", "name", "tool_call_id", "is_error"))
_CALL = frozenset(("id", "type", "function", "custom"))
_NAMED = {"function": frozenset(("name", "arguments")), "custom": frozenset(("name", "input"))}
_DECODE = msgspec.json.decode
_ENCODE = msgspec.json.encode


def message_reader(roles: Sequence[Role]) -> Callable[[Any, int], Message]:
    """A decoder of raw messages for `Lazy`, given the roles of all."""
    askers: list[int] = []

    def asker(index: int) -> int:
        if not askers:
            askers.extend(_askers(roles))
        return askers[index]

    def read(raw: msgspec.Raw, index: int) -> Message:
        path = f"messages[{index}]"
        try:
            value = _DECODE(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{path}: not valid JSON: {error}", param=path, code="invalid_json") from None
        return read_message(value, index, asker)

    return read


def _askers(roles: Sequence[Role]) -> list[int]:
    """By index, the assistant message before it; the index itself when there is none."""
    found: list[int] = []
    last = -1
    for index, role in enumerate(roles):
        found.append(last if last >= 0 else index)
        if role == "assistant":
            last = index
    return found


def read_message(value: Any, index: int, asker: Callable[[int], int]) -> Message:
    """The message at `index`, decoded JSON in. `asker(index)`: the assistant message whose call a legacy result answers."""
    path = f"messages[{index}]"
    message = object_at(value, path)
    role = read_role(message.get("role"), f"{path}.role")
    if role == "assistant":
        return _read_assistant(message, index, path)
    if role == "tool":
        return _read_result(message, index, path, asker)
    content = message.get("content")
    return Message(
        role,
        read_content(content, f"{path}.content"),
        name=text_or_none(message.get("name"), f"{path}.name"),
        flat=isinstance(content, str),
        extra=rest(message, _PLAIN) if len(message) > 2 else {},
    )


def read_role(value: Any, path: str) -> Role:
    """The neutral role. Raises ClientError for one that Chat does not know."""
    role = ROLES.get(value) if isinstance(value, str) else None
    if role is None:
        if isinstance(value, str):
            raise ClientError(f"{path}: unknown role {value[:40]!r}; known are {', '.join(ROLES)}", param=path)
        raise wrong(path, "a role", value)
    return role


def _read_assistant(message: dict[str, Any], index: int, path: str) -> Message:
    parts: list[Part] = []
    extra = rest(message, REPLY_FIELDS) if len(message) > 2 else {}
    thought = read_reasoning(message, extra)
    if thought is not None:
        parts.append(thought)
    content = message.get("content")
    parts.extend(read_content(content, f"{path}.content"))
    refusal = text_or_none(message.get("refusal"), f"{path}.refusal")
    if refusal is not None:
        parts.append(Refusal(refusal))
    calls = message.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list):
            raise wrong(f"{path}.tool_calls", "an array", calls)
        parts.extend([read_call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(calls)])
    legacy = message.get("function_call")
    if legacy is not None:
        at = f"{path}.function_call"
        parts.append(_read_function(object_at(legacy, at), f"{LEGACY}{index}", at))
    if not extra.get("annotations", True):
        del extra["annotations"]  # clients send back the empty list that a reply held
    name = text_or_none(message.get("name"), f"{path}.name")
    return Message("assistant", tuple(parts), name=name, flat=isinstance(content, str), extra=extra)


def read_reasoning(message: dict[str, Any], extra: dict[str, Any]) -> Reasoning | None:
    """The reasoning a message carries in any of the spellings of Chat-compatible servers; what does not fit goes to
    `extra`. `Reasoning.extra["field"]` names the spelling where it is not `reasoning_content`."""
    content, plain, details = (message.get(k) for k in ("reasoning_content", "reasoning", "reasoning_details"))
    if content is None and plain is None and details is None:
        return None
    if details is not None and not isinstance(details, list):
        extra["reasoning_details"], details = details, None
    if isinstance(content, str):
        if plain is not None and plain != content:
            extra["reasoning"] = plain
        elif plain is not None:
            return Reasoning(content, origin=FORMAT, details=details, extra={"field": "both"})
        return Reasoning(content, origin=FORMAT, details=details)
    if content is not None:
        extra["reasoning_content"] = content
    if isinstance(plain, str):
        return Reasoning(plain, origin=FORMAT, details=details, extra={"field": "reasoning"})
    if plain is not None:
        extra["reasoning"] = plain
    return None if details is None else Reasoning(origin=FORMAT, details=details, extra={"field": "details"})


def details_text(details: Sequence[Any]) -> str:
    """The readable text of `reasoning_details`: the text of each, or its summary where the text is empty."""
    pieces = []
    for detail in details:
        if isinstance(detail, dict):
            text = detail.get("text") or detail.get("summary")
            if isinstance(text, str):
                pieces.append(text)
    return "".join(pieces)


def read_call(value: Any, path: str) -> ToolCall:
    """One entry of `tool_calls`. Arguments given as an object (some servers do) become their JSON text."""
    call = object_at(value, path)
    style: Any = call.get("type")
    if style not in ("function", "custom"):
        if style is not None and style != "":
            raise ClientError(f"{path}.type: expected 'function' or 'custom', got {str(style)[:40]!r}", param=path)
        style = "custom" if "custom" in call else "function"
    inner = object_at(call.get(style), f"{path}.{style}")
    name = inner.get("name")
    if not isinstance(name, str):
        raise wrong(f"{path}.{style}.name", "a string", name)
    extra = rest(call, _CALL) if len(call) > 3 else {}
    if len(inner) > 2 and (more := rest(inner, _NAMED[style])):
        extra[style] = more
    return ToolCall(
        id=text_or_none(call.get("id"), f"{path}.id") or "",
        name=name,
        arguments=arguments_text(inner.get("arguments" if style == "function" else "input")),
        style=style,
        extra=extra,
    )


def _read_function(legacy: dict[str, Any], call_id: str, path: str) -> ToolCall:
    name = legacy.get("name")
    if not isinstance(name, str):
        raise wrong(f"{path}.name", "a string", name)
    return ToolCall(call_id, name, arguments_text(legacy.get("arguments")))


def arguments_text(value: Any) -> str:
    """Arguments as the text they should be: null is nothing, an object its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else _ENCODE(value).decode()


def _read_result(message: dict[str, Any], index: int, path: str, asker: Callable[[int], int]) -> Message:
    call_id = text_or_none(message.get("tool_call_id"), f"{path}.tool_call_id")
    name = text_or_none(message.get("name"), f"{path}.name")
    if call_id is None:
        if message["role"] != "function":
            raise ClientError(
                f"{path}.tool_call_id: this field is required",
                param=f"{path}.tool_call_id",
                code="missing_required_parameter",
            )
        call_id = f"{LEGACY}{asker(index)}"
    content, flag = message.get("content"), message.get("is_error")
    result = ToolResult(
        call_id,
        read_content(content, f"{path}.content"),
        is_error=flag if isinstance(flag, bool) else None,
        name=name,
        text_only=isinstance(content, str),
        extra=rest(message, _RESULT) if len(message) > 3 else {},
    )
    return Message("tool", (result,))


def write_message(message: Message) -> dict[str, Any]:
    """A message as it was read: `read_message(write_message(m)) == m`."""
    parts = message.parts
    if message.role == "assistant":
        return _write_assistant(message)
    if len(parts) == 1 and isinstance(parts[0], ToolResult):
        return write_result(parts[0], message)
    value: dict[str, Any] = {"role": message.role}
    value["content"] = write_text(parts) if message.flat else [write_part(p) for p in parts]
    if message.name is not None:
        value["name"] = message.name
    return {**value, **message.extra} if message.extra else value


def write_result(result: ToolResult, message: Message) -> dict[str, Any]:
    """The `tool` (or legacy `function`) message of a result."""
    content: Any = write_text(result.parts) if result.text_only else [write_part(p) for p in result.parts]
    value: dict[str, Any]
    if result.name is not None and result.call_id.startswith(LEGACY):
        value = {"role": "function", "name": result.name, "content": content}
    else:
        value = {"role": "tool", "tool_call_id": result.call_id, "content": content}
        if result.name is not None:
            value["name"] = result.name
    if result.is_error is not None:
        value["is_error"] = result.is_error
    return {**value, **result.extra, **message.extra}


def _write_assistant(message: Message) -> dict[str, Any]:
    value: dict[str, Any] = {"role": "assistant", "content": None}
    content: list[Part] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            if part.id.startswith(LEGACY):
                value["function_call"] = {"name": part.name, "arguments": part.arguments}
            else:
                calls.append(write_call(part))
        elif isinstance(part, Reasoning) and "part" not in part.extra:
            if part.origin in (FORMAT, None):
                write_reasoning(part, value)
        else:
            content.append(part)
    if message.flat:
        value["content"] = write_text(content)
        refusals = [p.text for p in content if isinstance(p, Refusal)]
        if refusals:
            value["refusal"] = "".join(refusals)
    elif content:
        value["content"] = [write_part(p) for p in content]
    if calls:
        value["tool_calls"] = calls
    if message.name is not None:
        value["name"] = message.name
    return {**value, **message.extra} if message.extra else value


def write_reasoning(part: Reasoning, value: dict[str, Any]) -> None:
    """Put reasoning into a message under the spelling it came in."""
    field = part.extra.get("field", "reasoning_content")
    if field in ("reasoning_content", "both"):
        value["reasoning_content"] = part.text
    if field in ("reasoning", "both"):
        value["reasoning"] = part.text
    if part.details is not None:
        value["reasoning_details"] = part.details


def write_call(call: ToolCall) -> dict[str, Any]:
    """One entry of `tool_calls`."""
    field = "arguments" if call.style == "function" else "input"
    inner: dict[str, Any] = {"name": alias(call.name, call.namespace) if call.namespace else call.name}
    inner[field] = call.arguments
    value: dict[str, Any] = {"id": call.id, "type": call.style, call.style: inner}
    for key, more in call.extra.items():
        if key == call.style:
            inner.update(more)
        else:
            value[key] = more
    return value


def merged(so_far: list[Any], more: list[Any]) -> list[Any]:
    """Details of a stream put together: fragments of one entry carry the same index and type."""
    merged = list(so_far)
    for detail in more:
        last = merged[-1] if merged else None
        if (
            isinstance(last, dict)
            and isinstance(detail, dict)
            and detail.get("index") is not None
            and last.get("index") == detail.get("index")
            and last.get("type") == detail.get("type")
        ):
            joined = dict(last)
            for key, value in detail.items():
                if key in ("text", "summary", "data") and isinstance(value, str):
                    joined[key] = (joined.get(key) or "") + value
                elif value is not None:
                    joined[key] = value
            merged[-1] = joined
        else:
            merged.append(detail)
    return merged
