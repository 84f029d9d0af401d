"""Requests and streams the tests of this folder are written in."""

from typing import Any

import msgspec
from msgspec.structs import replace

from turnout.conversation import Delta, Reply, fold
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request


def request(messages: list[Any] | None = None, **fields: Any) -> Request:
    """A Chat request as a client would send it."""
    body = {"model": "m", "messages": messages if messages is not None else [{"role": "user", "content": "hi"}]}
    return CHAT.read_request(msgspec.json.encode({**body, **fields}))


def loose(read: Request) -> Request:
    """The request with everything decoded, so that writing it encodes everything anew."""
    conversation = read.conversation
    decoded = replace(conversation, messages=tuple(conversation.messages), tools=tuple(conversation.tools))
    return replace(read, conversation=decoded)


def written(read: Request, **options: Any) -> dict[str, Any]:
    """The JSON a request is written as."""
    value: dict[str, Any] = msgspec.json.decode(CHAT.write_request(read, **options).body)
    return value


def sse(*chunks: Any, done: bool = True) -> bytes:
    """A stream of these chunks."""
    frames = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    return b"".join(frames) + (b"data: [DONE]\n\n" if done else b"")


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One streamed chunk."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice], **top}


def call(index: int | str | None = 0, **fields: Any) -> dict[str, Any]:
    """A delta with one fragment of a tool call."""
    function = {k: fields.pop(k) for k in ("name", "arguments") if k in fields}
    fragment = {**({} if index is None else {"index": index}), **fields, "function": function}
    return {"tool_calls": [fragment]}


def deltas(stream: bytes, asked: Request | None = None, size: int = 0) -> list[Delta]:
    """What the reader makes of a stream, fed whole or in pieces of `size` bytes."""
    reader = CHAT.reader(asked)
    out: list[Delta] = []
    for at in range(0, len(stream), size or len(stream) or 1):
        out += reader.feed(stream[at : at + (size or len(stream))])
    return out + reader.close()


def reply(stream: bytes, asked: Request | None = None) -> Reply:
    """The reply a stream amounts to."""
    return fold(deltas(stream, asked))
