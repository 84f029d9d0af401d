"""The shape of a streamed chunk. Typed, since decoding chunks is most of the work of reading a stream."""

from typing import Any

import msgspec
from msgspec import Struct


class FunctionDelta(Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class CustomDelta(Struct, gc=False):
    name: str | None = None
    input: str | None = None


class CallDelta(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None
    custom: CustomDelta | None = None
    extra_content: Any = None


class MessageDelta(Struct, gc=False):
    content: Any = None
    reasoning_content: str | None = None
    reasoning: Any = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[CallDelta] | None = None
    refusal: str | None = None
    function_call: FunctionDelta | None = None
    annotations: list[Any] | None = None


class ChoiceDelta(Struct, gc=False):
    delta: MessageDelta | None = None
    message: MessageDelta | None = None
    index: int | None = 0
    finish_reason: str | None = None
    logprobs: Any = None
    stop_reason: Any = None
    error: Any = None


class Chunk(Struct, gc=False):
    choices: list[ChoiceDelta] | None = None
    id: str | None = None
    model: str | None = None
    created: Any = None
    usage: dict[str, Any] | None = None
    error: Any = None
    object: Any = None
    x_groq: Any = None


DECODER = msgspec.json.Decoder(Chunk)


def usage_of(chunk: Chunk) -> dict[str, Any] | None:
    """The usage a chunk carries (Groq wraps it)."""
    if chunk.usage is not None:
        return chunk.usage
    groq = chunk.x_groq
    if isinstance(groq, dict) and isinstance(groq.get("usage"), dict):
        return groq["usage"]  # type: ignore[no-any-return]  # checked
    return None
