"""What the laws compare: the essence of conversations and replies, free of what formats spell differently."""

from collections.abc import Callable
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from turnout.conversation import (
    Conversation,
    Delta,
    End,
    Fault,
    Format,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    ToolResult,
    fold,
)
from turnout.errors import TurnoutError
from turnout.wire.codec import Codec, Reader, Request
from turnout.wire.names import alias, custom_arguments

T = TypeVar("T")

MINIMAL: dict[Format, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai_responses": {"input": "hi"},
    "anthropic_messages": {"max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]},
}


def asked(codec: Codec, *, stream: bool = True, usage: bool = True, **more: Any) -> Request:
    """A small request of a client of this format."""
    body = {"model": "m", **MINIMAL[codec.format], "stream": stream, **more}
    if codec.format == "openai_chat" and stream and usage:
        body["stream_options"] = {"include_usage": True}
    return codec.read_request(msgspec.json.encode(body))


def attempt(action: Callable[[], T], *refusals: type[TurnoutError]) -> tuple[T | None, Any]:
    """What `action` gives, or the typed refusal it raised; any other exception is a failure of the test."""
    try:
        return action(), None
    except refusals as refusal:
        return None, refusal


def arguments(call: ToolCall) -> Any:
    """What a call's arguments mean, whether as a function's or as raw input."""
    text = call.arguments if call.style == "function" else custom_arguments(call.arguments)
    return msgspec.json.decode(text) if text else {}


def said(conversation: Conversation) -> list[tuple[Any, ...]]:
    """Who said, called and answered what, in order, whatever the messages it was put in.

    Instructions are left out (see `instructions`). Of parallel calls, all calls come before all results: formats differ in
    whether a result stands right behind its call.
    """
    found: list[tuple[Any, ...]] = []
    for message in conversation.messages:
        if message.role in ("system", "developer"):
            continue
        for part in message.parts:
            if isinstance(part, Text):
                found.append((message.role, part.text))
            elif isinstance(part, ToolCall):
                found.append(("call", part.id, part.name, arguments(part)))
            elif isinstance(part, ToolResult):
                found.append(("result", part.call_id, part.text))
    return [x for _, group in groupby(found, _kind) for x in sorted(group, key=lambda x: x[0] == "result")]


def _kind(entry: tuple[Any, ...]) -> bool:
    return entry[0] in ("call", "result")


def instructions(conversation: Conversation) -> list[str]:
    """The instructions, wherever the format puts them."""
    inline = [m.text for m in conversation.messages if m.role in ("system", "developer")]
    return [
        t
        for t in "\n\n".join([*(p.text for p in conversation.system if isinstance(p, Text)), *inline]).split("\n\n")
        if t
    ]


def answered(reply: Reply) -> dict[str, Any]:
    """What a reply amounts to in every format."""
    usage = reply.usage
    return {
        "reasoning": "".join(p.text for p in reply.parts if isinstance(p, Reasoning)),
        "text": reply.text,
        "calls": [(c.id, alias(c.name, c.namespace), arguments(c)) for c in reply.calls],
        "stop": reply.stop,
        "usage": None
        if usage is None
        else (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens or 0,
            usage.cache_write_tokens or 0,
            usage.reasoning_tokens or 0,
        ),
    }


def read_all(reader: Reader, chunks: list[bytes]) -> list[Delta]:
    """All deltas of a stream that came in these chunks and then closed."""
    return [*(delta for chunk in chunks for delta in reader.feed(chunk)), *reader.close()]


def one_terminal(deltas: list[Delta]) -> bool:
    """Whether exactly one terminal is there, and is last."""
    terminals = [isinstance(delta, End | Fault) for delta in deltas]
    return terminals.count(True) == 1 and terminals[-1]


def written(codec: Codec, deltas: list[Delta], request: Request, model: str = "m") -> bytes:
    """The stream of these deltas in a format."""
    writer = codec.writer(request, model)
    return b"".join(writer.feed(delta) for delta in deltas)


def streamed(codec: Codec, stream: bytes, request: Request | None = None) -> Reply:
    """The reply that a stream amounts to."""
    return fold(read_all(codec.reader(request), [stream]))
