"""Which of an agent's calls cannot be taken back."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from turnout.conversation import Conversation, Lazy, Tool, ToolCall

_HINT = b"destructiveHint"


def irreversible(calls: Sequence[ToolCall], conversation: Conversation, patterns: Sequence[str]) -> str:
    """The name of the first call that cannot be taken back; "" when there is none.

    A call is one when its name, with or without its namespace, fits one of `patterns` (globs, any case), or when the client's
    definition of the tool is annotated as destructive.
    """
    for call in calls:
        if patterns and any(_fits(call.name, call.namespace, pattern) for pattern in patterns):
            return call.name
    if calls and _annotated(conversation):
        destructive = {(tool.name, tool.namespace) for tool in conversation.tools if destructive_hint(tool)}
        for call in calls:
            if (call.name, call.namespace) in destructive:
                return call.name
    return ""


def offers_irreversible(conversation: Conversation, patterns: Sequence[str]) -> bool:
    """Whether the client offers a tool whose calls cannot be taken back."""
    if patterns and any(
        _fits(tool.name, tool.namespace, pattern) for tool in conversation.tools for pattern in patterns
    ):
        return True
    return _annotated(conversation) and any(destructive_hint(tool) for tool in conversation.tools)


def destructive_hint(tool: Tool) -> bool:
    """Whether a tool's own annotations call it destructive."""
    return _hinted(tool.extra) or _hinted(tool.raw)


def _hinted(value: Any) -> bool:
    """Clients put `annotations` beside the schema; where exactly depends on the format."""
    if not isinstance(value, dict):
        return False
    annotations = value.get("annotations")
    if isinstance(annotations, dict) and annotations.get("destructiveHint") is True:
        return True
    return _hinted(value.get("function")) or _hinted(value.get("custom"))


def _annotated(conversation: Conversation) -> bool:
    """Whether any tool may carry the annotation, told without decoding them."""
    tools = conversation.tools
    return _HINT in source if isinstance(tools, Lazy) and (source := tools.source()) else bool(len(tools))


def _fits(name: str, namespace: str | None, pattern: str) -> bool:
    pattern, name = pattern.lower(), name.lower()
    return fnmatchcase(name, pattern) or (
        namespace is not None and fnmatchcase(f"{namespace.lower()}__{name}", pattern)
    )
