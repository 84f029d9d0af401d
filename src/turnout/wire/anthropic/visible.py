"""What a person could read in place of a block that only Messages knows."""

from typing import Any


def visible(kind: str, value: Any) -> str:
    """Readable text of a native block, "" when it has none (payloads, encrypted content, ids)."""
    if not isinstance(value, dict):
        return ""
    if kind == "document":
        return _document(value)
    if kind == "search_result":
        head = "\n".join(s for k in ("title", "source") if isinstance(s := value.get(k), str) and s)
        return "\n".join(s for s in (head, _texts(value.get("content"))) if s)
    if kind == "web_search_tool_result":
        return _hits(value.get("content"))
    if kind in ("mcp_tool_result", "compaction"):
        return _texts(value.get("content"))
    if kind.endswith("code_execution_tool_result"):
        return _output(value.get("content"))
    if kind == "tool_reference":
        name = value.get("tool_name")
        return f"Tool available: {name}" if isinstance(name, str) else ""
    return ""


def _document(value: dict[str, Any]) -> str:
    source = value.get("source")
    return _texts(source.get("content")) if isinstance(source, dict) else ""


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(b["text"] for b in content if isinstance(b, dict) and isinstance(b.get("text"), str))


def _hits(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    lines = []
    for hit in content:
        if isinstance(hit, dict) and isinstance(hit.get("url"), str):
            title = hit.get("title")
            lines.append(f"{title} ({hit['url']})" if isinstance(title, str) else hit["url"])
    return "\n".join(lines)


def _output(content: Any) -> str:
    if not isinstance(content, dict):
        return ""
    return "\n".join(s for k in ("stdout", "stderr") if isinstance(s := content.get(k), str) and s)
