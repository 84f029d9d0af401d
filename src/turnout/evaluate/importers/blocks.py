"""Content in the shapes that wire formats and harnesses give it, as messages in chat form."""

from typing import Any

from turnout.evaluate.importers.events import call
from turnout.evaluate.importers.values import items, json_text, table, text


def flat(content: Any) -> str:
    """The text of a content field: a string, or a list of blocks; media are named."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text(content.get("text")) or json_text(content)
    parts = []
    for block in items(content):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            kind = text(block.get("type"))
            said = text(block.get("text")) or text(block.get("content"))
            parts.append(
                said or (f"[{kind}]" if kind in ("image", "image_url", "input_image", "document", "file") else "")
            )
    return "\n".join(part for part in parts if part)


def of_anthropic(role: str, content: Any) -> list[dict[str, Any]]:
    """The messages of chat form that one message of the Messages API is: results first, then what was said."""
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    texts, calls, results = [], [], []
    for block in items(content):
        block = {"type": "text", "text": block} if isinstance(block, str) else table(block)
        match block.get("type"):
            case "text":
                texts.append(text(block.get("text")))
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                calls.append(call(text(block.get("id")), text(block.get("name")), json_text(block.get("input") or {})))
            case "tool_result":
                results.append(tool_result(block))
            case "image" | "document" as kind:
                texts.append(f"[{kind}]")
    said = "\n".join(one for one in texts if one)
    if role == "assistant":
        message: dict[str, Any] = {"role": "assistant", "content": said}
        return [{**message, "tool_calls": calls} if calls else message]
    return results + ([{"role": role, "content": said}] if said or not results else [])


def tool_result(block: dict[str, Any]) -> dict[str, Any]:
    """A `tool_result` block as a tool message. Without a flag of failure it says nothing of one."""
    message: dict[str, Any] = {
        "role": "tool",
        "tool_call_id": text(block.get("tool_use_id")),
        "content": flat(block.get("content")),
    }
    if isinstance(block.get("is_error"), bool):
        message["is_error"] = block["is_error"]
    return message


def chat_message(value: Any) -> dict[str, Any] | None:
    """A message of chat form with fields of the expected types only; None when it is none."""
    row = table(value)
    role = text(row.get("role"))
    if role in ("function", "tool"):
        message: dict[str, Any] = {"role": "tool", "tool_call_id": text(row.get("tool_call_id"))}
        message["content"] = flat(row.get("content"))
        if text(row.get("name")):
            message["name"] = text(row.get("name"))
        if isinstance(row.get("is_error"), bool):
            message["is_error"] = row["is_error"]
        if isinstance(row.get("returncode"), int) and not isinstance(row.get("returncode"), bool):
            message["returncode"] = row["returncode"]
        return message
    if role in ("user", "system", "developer"):
        return {"role": role, "content": flat(row.get("content"))}
    if role not in ("assistant", "ai"):
        return None
    message = {"role": "assistant", "content": flat(row.get("content"))}
    calls = [made for one in items(row.get("tool_calls")) if (made := _chat_call(one)) is not None]
    if not calls and isinstance(row.get("function_call"), dict):
        calls = [made for made in [_chat_call({"function": row["function_call"]})] if made is not None]
    return {**message, "tool_calls": calls} if calls else message


def _chat_call(value: Any) -> dict[str, Any] | None:
    row = table(value)
    function = table(row.get("function")) or table(row.get("custom")) or row
    name = text(function.get("name"))
    arguments = function.get("arguments", function.get("input", ""))
    return call(text(row.get("id")), name, json_text(arguments or "")) if name else None
