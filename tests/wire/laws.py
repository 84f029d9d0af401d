"""What the laws compare: the essence of conversations and replies, free of what formats spell differently."""

from typing import Any

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
from turnout.wire.codec import Codec, Reader, Request

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


def arguments(text: str) -> Any:
    """What a call's arguments mean."""
    return msgspec.json.decode(text) if text else {}


def said(conversation: Conversation) -> list[tuple[Any, ...]]:
    """Who said, called and answered what, in order, whatever the messages it was put in."""
    found: list[tuple[Any, ...]] = []
    for message in conversation.messages:
        for part in message.parts:
            if isinstance(part, Text):
                found.append((message.role, part.text))
            elif isinstance(part, ToolCall):
                found.append(("call", part.id, part.name, part.style, arguments(part.arguments)))
            elif isinstance(part, ToolResult):
                found.append(("result", part.call_id, part.text))
    return found


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
        "calls": [(c.id, c.name, c.style, arguments(c.arguments)) for c in reply.calls],
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
