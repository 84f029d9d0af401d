"""Counts the input tokens of a request locally: an estimate, flagged as one, without any call."""

import msgspec

from turnout.conversation import (
    Audio,
    Document,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from turnout.pricing.tokens import estimate_tokens
from turnout.wire.codec import Request

MESSAGE_OVERHEAD = 4
"""Tokens a message costs beyond its text (role and separators)."""
IMAGE_TOKENS = 1500
"""Taken for an image whose size is not looked at."""
TOOLS_OVERHEAD = 300
"""Tokens of the provider's own instructions when tools are offered."""
TOOL_OVERHEAD = 12


def count(request: Request) -> int:
    """Estimated prompt tokens of a request: instructions, tools and messages."""
    conversation = request.conversation
    total = sum(part_tokens(part) for part in conversation.system)
    if len(conversation.tools):
        total += TOOLS_OVERHEAD + sum(tool_tokens(tool) for tool in conversation.tools)
    return total + sum(message_tokens(message) for message in conversation.messages)


def message_tokens(message: Message) -> int:
    """Estimated tokens of one message."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part) for part in message.parts)


def tool_tokens(tool: Tool) -> int:
    """Estimated tokens of one tool's definition."""
    text = f"{tool.name} {tool.description or ''}"
    schema = tool.parameters if tool.parameters is not None else tool.raw or tool.grammar
    if schema:
        text += msgspec.json.encode(schema).decode()
    return TOOL_OVERHEAD + estimate_tokens(text)


def part_tokens(part: Part) -> int:
    """Estimated tokens of one part."""
    match part:
        case Text() | Refusal():
            return estimate_tokens(part.text)
        case Reasoning():
            # Earlier reasoning is mostly left out of the prompt by the providers that issued it.
            return 0 if part.signature or part.encrypted else estimate_tokens(part.text)
        case ToolCall():
            return TOOL_OVERHEAD + estimate_tokens(part.name) + estimate_tokens(part.arguments)
        case ToolResult():
            return TOOL_OVERHEAD + sum(part_tokens(inner) for inner in part.parts)
        case Image():
            return IMAGE_TOKENS
        case Document() | Audio():
            if part.source.kind == "text":
                return estimate_tokens(part.source.data)
            # About 3/4 of base64 is bytes, and a page of a document is some 3 KB and 2,000 tokens.
            return max(IMAGE_TOKENS, len(part.source.data) // 2) if part.source.kind == "base64" else IMAGE_TOKENS
        case Opaque():
            return estimate_tokens(part.visible or msgspec.json.encode(part.value).decode())
