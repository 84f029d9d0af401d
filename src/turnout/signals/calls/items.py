"""Calls and results of tools that only one provider's format defines, in the neutral form the rest is read in."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from turnout.conversation import Opaque, Text, ToolCall, ToolResult

Value: TypeAlias = Mapping[str, Any]


def call_of(part: Opaque) -> ToolCall | None:
    """The call that a native item is; None for items that are no call of a tool."""
    read = _CALLS.get(part.type)
    return read(part.value) if read is not None and isinstance(part.value, dict) else None


def result_of(part: Opaque) -> ToolResult | None:
    """The result that a native item is; None for items that are no result. Exit codes stand in `extra`."""
    value = part.value
    if not isinstance(value, dict):
        return None
    read = _RESULTS.get(part.type)
    if read is not None:
        return read(value)
    return _server_result(value, part.type) if part.type.endswith("_tool_result") else None


def _call(value: Value, name: str, arguments: Any) -> ToolCall:
    return ToolCall(_id(value), name, arguments if isinstance(arguments, str) else _json(arguments))


def _id(value: Value) -> str:
    """Calls and their results are paired by it; items that are both have one id."""
    for key in ("call_id", "tool_use_id", "id"):
        if isinstance(found := value.get(key), str):
            return found
    return ""


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, UnicodeEncodeError, RecursionError):
        return ""


def _result(value: Value, text: str, failed: bool | None = None, name: str | None = None, **extra: Any) -> ToolResult:
    return ToolResult(_id(value), (Text(text),) if text else (), failed, name=name, extra=extra)


def _action(value: Value) -> dict[str, Any]:
    action = value.get("action")
    return action if isinstance(action, dict) else {}


def _shell_call(value: Value) -> ToolCall:
    commands = _action(value).get("commands")
    lines = [c for c in commands if isinstance(c, str)] if isinstance(commands, list) else []
    return _call(value, "shell", {"command": "\n".join(lines)})


def _patch_call(value: Value) -> ToolCall:
    operation = value.get("operation")
    return _call(value, "apply_patch", operation if isinstance(operation, dict) else {})


def _local_shell_output(value: Value) -> ToolResult:
    """One string, which is what the client printed: JSON with an exit code, or plain text."""
    return _result(value, _text(value.get("output")), _failed(value), "local_shell")


def _shell_output(value: Value) -> ToolResult:
    """A list of chunks, one per command, each with its outcome; the worst of them is the result's."""
    chunks = value.get("output")
    if not isinstance(chunks, list):
        return _result(value, _text(chunks), _failed(value), "shell")
    texts: list[str] = []
    extra: dict[str, Any] = {}
    for chunk in chunks:
        if not isinstance(chunk, dict):
            continue
        texts += [text for key in ("stdout", "stderr") if isinstance(text := chunk.get(key), str) and text]
        outcome = chunk.get("outcome")
        if not isinstance(outcome, dict):
            continue
        if outcome.get("type") == "timeout":
            extra["timed_out"] = True
        code = outcome.get("exit_code")
        if isinstance(code, int) and not extra.get("exit_code"):
            extra["exit_code"] = code
    return _result(value, "\n".join(texts), _failed(value), "shell", **extra)


def _patch_output(value: Value) -> ToolResult:
    status = value.get("status")
    failed = True if status == "failed" else False if status == "completed" else None
    return _result(value, _text(value.get("output")), failed, "apply_patch")


def _mcp_result(value: Value) -> ToolResult | None:
    error, output = value.get("error"), value.get("output")
    if error is None and output is None:
        return None
    if error is not None:
        return _result(value, _text(error), True)
    return _result(value, _text(output), value.get("status") == "failed")


def _interpreter_result(value: Value) -> ToolResult | None:
    outputs = value.get("outputs")
    if not isinstance(outputs, list):
        return None
    logs = [text for one in outputs if isinstance(one, dict) and isinstance(text := one.get("logs"), str)]
    return _result(value, "\n".join(logs), _failed(value), "code_interpreter")


def _server_result(value: Value, kind: str) -> ToolResult:
    """Results of tools that Anthropic's servers ran: an error block, output with a return code, or content."""
    content = value.get("content")
    flag = value.get("is_error")
    failed = flag if isinstance(flag, bool) else None
    name = kind.removesuffix("_tool_result")
    if not isinstance(content, dict):
        return _result(value, _text(content), failed, name)
    if str(content.get("type", "")).endswith("_error"):
        told = [text for key in ("error_code", "error_message") if isinstance(text := content.get(key), str)]
        return _result(value, ": ".join(told), True, name)
    texts = [text for key in ("stdout", "stderr") if isinstance(text := content.get(key), str) and text]
    code = content.get("return_code")
    extra = {"exit_code": code} if isinstance(code, int) else {}
    return _result(value, "\n".join(texts) or _text(content.get("content")), failed, name, **extra)


def _failed(value: Value) -> bool | None:
    return True if value.get("status") in ("failed", "incomplete") else None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(
            text for one in value if isinstance(one, dict) and isinstance(text := one.get("text"), str) and text
        )
    if isinstance(value, dict):
        text = value.get("message", value.get("content"))
        return text if isinstance(text, str) else _json(value)
    return ""


_CALLS: dict[str, Callable[[Value], ToolCall]] = {
    "local_shell_call": lambda v: _call(v, "local_shell", _action(v)),
    "shell_call": _shell_call,
    "apply_patch_call": _patch_call,
    "mcp_call": lambda v: _call(v, f"{v.get('server_label', 'mcp')}__{v.get('name', '')}", v.get("arguments") or ""),
    "code_interpreter_call": lambda v: _call(v, "code_interpreter", v.get("code") or ""),
    "server_tool_use": lambda v: _call(v, str(v.get("name", "")), v.get("input") or {}),
    "mcp_tool_use": lambda v: _call(v, f"{v.get('server_name', 'mcp')}__{v.get('name', '')}", v.get("input") or {}),
}

_RESULTS: dict[str, Callable[[Value], ToolResult | None]] = {
    "local_shell_call_output": _local_shell_output,
    "shell_call_output": _shell_output,
    "apply_patch_call_output": _patch_output,
    "mcp_call": _mcp_result,
    "code_interpreter_call": _interpreter_result,
}
