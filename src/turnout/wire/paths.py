"""Where a part of the neutral form stood in its source: the paths that drop reports and errors name."""

from turnout.conversation import Format, Message, Opaque, Reasoning, Refusal, ToolCall, ToolResult

_ITEMS = (Reasoning, ToolCall, ToolResult, Opaque)  # whole items of Responses


def root(source: Format | None, index: int) -> str:
    """The message or item number `index`."""
    return f"input[{index}]" if source == "openai_responses" else f"messages[{index}]"


def part_path(source: Format | None, message: Message, index: int, part: int) -> str:
    """Part number `part` of `message`, which is number `index`."""
    at = root(source, index)
    parts = message.parts
    if source == "openai_chat":
        return _chat(at, message, part)
    if source == "openai_responses" and len(parts) == 1 and isinstance(parts[0], _ITEMS):
        return at
    return f"{at}.content" if message.flat else f"{at}.content[{part}]"


def _chat(at: str, message: Message, part: int) -> str:
    parts = message.parts
    it = parts[part]
    if isinstance(it, Reasoning):
        field = it.extra.get("field")
        if field == "details" or (it.details is not None and not it.text):
            return f"{at}.reasoning_details"
        return f"{at}.reasoning" if field == "reasoning" else f"{at}.reasoning_content"
    if isinstance(it, ToolCall):
        return f"{at}.tool_calls[{sum(isinstance(p, ToolCall) for p in parts[:part])}]"
    if isinstance(it, ToolResult):
        return at
    if isinstance(it, Refusal):
        return f"{at}.refusal"
    if message.flat:
        return f"{at}.content"
    return f"{at}.content[{sum(not isinstance(p, Reasoning | ToolCall) for p in parts[:part])}]"


def inner_path(source: Format | None, result: ToolResult, at: str, part: int) -> str:
    """Part number `part` of a tool result that stands at `at`."""
    field = "output" if source == "openai_responses" else "content"
    return f"{at}.{field}" if result.text_only else f"{at}.{field}[{part}]"
