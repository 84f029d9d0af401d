"""A fast upstream that speaks all three formats and misbehaves at a set rate, for benchmarks.

    python benchmarks/mock_upstream.py --faults 0.02 --seed 1        # prints its port, serves until its stdin closes

The model `judge` answers with a verdict, one time in three to move up. Which requests go wrong, and how, follows from the seed
and the order of requests. `GET /state` tells what it has seen: requests, faults by kind, connections open now, and those of them
in the middle of an exchange.
"""

import argparse
import asyncio
import json
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httptools
import uvloop

SENTENCE = "The parser keeps a cursor into the token list and advances it only when a rule matches the next token."
WORDS = SENTENCE.split()
FAULTS = (
    "reset", "nothing", "cut", "cut-length", "stall-head", "stall-body", "429", "429-wait", "500", "503", "overflow",
    "overflow-in-200", "html-200", "html-502", "half-event", "utf8", "error-late", "empty",
)  # fmt: skip
JSON = b"application/json"
SSE = b"text/event-stream"


def dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def event(value: Any, name: str = "") -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + dumped(value) + b"\n\n"


def chat_events(reply_id: str, words: list[str]) -> Iterator[bytes]:
    """A Chat Completions stream."""
    base = {"id": reply_id, "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    usage = {"prompt_tokens": 900, "completion_tokens": len(words), "total_tokens": 900 + len(words)}
    for delta in [{"role": "assistant", "content": ""}, *({"content": word + " "} for word in words)]:
        yield event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield event({**base, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def chat_reply(reply_id: str, words: list[str]) -> Any:
    """A whole Chat Completions reply."""
    message = {"role": "assistant", "content": " ".join(words)}
    usage = {"prompt_tokens": 900, "completion_tokens": len(words), "total_tokens": 900 + len(words)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": reply_id,
        "object": "chat.completion",
        "created": 1,
        "model": "mock",
        "choices": [choice],
        "usage": usage,
    }


def messages_reply(reply_id: str, words: list[str]) -> Any:
    """A whole Messages reply."""
    return {
        "id": reply_id, "type": "message", "role": "assistant", "model": "mock", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": " ".join(words)}],
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 800, "output_tokens": len(words)},
    }  # fmt: skip


def messages_events(reply_id: str, words: list[str]) -> Iterator[bytes]:
    """A Messages stream."""
    start = {**messages_reply(reply_id, []), "content": [], "stop_reason": None}
    yield event({"type": "message_start", "message": start}, "message_start")
    block = {"type": "text", "text": ""}
    yield event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
    for word in words:
        delta = {"type": "text_delta", "text": word + " "}
        yield event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": len(words)}}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")


def responses_reply(reply_id: str, words: list[str], status: str = "completed") -> Any:
    """A whole Responses reply."""
    text = {"type": "output_text", "text": " ".join(words), "annotations": []}
    item = {"id": "msg_" + reply_id, "type": "message", "role": "assistant", "status": status, "content": [text]}
    usage = {
        "input_tokens": 900, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": len(words),
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 900 + len(words),
    }  # fmt: skip
    done = status == "completed"
    return {
        "id": reply_id, "object": "response", "created_at": 1, "status": status, "model": "mock", "error": None,
        "incomplete_details": None, "output": [item] if done else [], "usage": usage if done else None,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def responses_events(reply_id: str, words: list[str]) -> Iterator[bytes]:
    """A Responses stream."""
    whole = responses_reply(reply_id, words)
    item = whole["output"][0]
    text = item["content"][0]
    opening = responses_reply(reply_id, [], "in_progress")
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    steps: list[dict[str, Any]] = [
        {"type": "response.created", "response": opening},
        {"type": "response.in_progress", "response": opening},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **at, "part": {**text, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": w if i == 0 else " " + w} for i, w in enumerate(words)),
        {"type": "response.output_text.done", **at, "text": text["text"]},
        {"type": "response.content_part.done", **at, "part": text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    for number, step in enumerate(steps):
        yield event({**step, "sequence_number": number}, step["type"])


FORMATS = {
    b"chat/completions": ("chatcmpl-", chat_reply, chat_events),
    b"messages": ("msg_", messages_reply, messages_events),
    b"responses": ("resp_", responses_reply, responses_events),
}


class Upstream:
    """What all connections share."""

    def __init__(self, faults: float, seed: int) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.requests = 0
        self.by_fault: Counter[str] = Counter()
        self.connections: set[Connection] = set()
        self.hung_up = 0

    def fault(self) -> str:
        """How the next request goes wrong; "" = it does not."""
        self.requests += 1
        if self.random.random() >= self.faults:
            return ""
        kind = self.random.choice(FAULTS)
        self.by_fault[kind] += 1
        return kind

    def state(self) -> dict[str, Any]:
        """Counts so far, and connections now."""
        return {
            "requests": self.requests,
            "faults": dict(self.by_fault),
            "open": len(self.connections),
            "busy": sum(c.answering is not None for c in self.connections),
            "hung_up": self.hung_up,
        }


class Connection(asyncio.Protocol):
    """One connection of the gateway."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.parser = httptools.HttpRequestParser(self)
        self.answering: asyncio.Task[None] | None = None
        self.url, self.body = b"", bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.upstream.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.upstream.connections.discard(self)
        if self.answering is not None:
            self.upstream.hung_up += 1
            self.answering.cancel()
            self.answering = None

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.url, self.body = b"", bytearray()

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if self.url == b"/state":
            self.whole(dumped({**self.upstream.state(), "open": len(self.upstream.connections) - 1}))
            return
        self.answering = asyncio.create_task(self.answer(self.upstream.fault()))

    async def answer(self, fault: str) -> None:
        """Answer the request, or fail to."""
        draw = self.upstream.random
        prefix, reply, events = next(v for k, v in FORMATS.items() if self.url.endswith(k))
        words = (WORDS * 4)[: draw.randint(5, 60)]
        if b'"model":"judge"' in self.body:
            words = [
                '{"reason":',
                '"The',
                "same",
                'again.",',
                '"escalate":',
                ("true" if draw.random() < 1 / 3 else "false"),
                "}",
            ]
        reply_id = f"{prefix}{self.upstream.requests:08d}"
        pause = draw.random()
        await asyncio.sleep(0.6 if pause < 0.02 else pause * 0.01)
        if fault in ("reset", "nothing"):
            self.drop(reset=fault == "reset")
        elif fault == "stall-head":
            await asyncio.sleep(3600)
        elif fault and fault[0].isdigit():
            extra = b"retry-after: 1\r\n" if fault == "429-wait" else b""
            self.whole(dumped({"error": {"message": "try later", "type": "x"}}), int(fault[:3]), extra=extra)
        elif fault == "overflow":
            message = (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
            )
            error = {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}
            self.whole(dumped({"error": error}), 400)
        elif fault.startswith("html"):
            self.whole(b"<html><body><h1>Bad Gateway</h1></body></html>", int(fault[-3:]), b"text/html")
        elif fault == "empty":
            self.whole(b"")
        elif b'"stream":true' in self.body:
            await self.stream(list(events(reply_id, words)), fault)
        else:
            data = dumped(reply(reply_id, words))
            if fault == "overflow-in-200":
                data = dumped({"error": {"message": "context window exceeded", "code": "context_length_exceeded"}})
            elif fault == "utf8":
                data = data.replace(b"parser", b"par\xff\xfeser")
            elif fault == "stall-body":
                self.head(200, JSON, len(data))
                await asyncio.sleep(3600)
            elif fault in ("cut", "cut-length", "half-event", "error-late"):
                self.head(200, JSON, len(data))
                self.transport.write(data[: len(data) // 2])
                self.drop()
                return
            self.whole(data)
        self.answering = None

    async def stream(self, events: list[bytes], fault: str) -> None:
        """Send a stream, some of it in pieces that respect no border."""
        draw = self.upstream.random
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        if fault == "overflow-in-200":
            self.chunk(event({"error": {"message": "context window exceeded", "code": "context_length_exceeded"}}))
            self.chunk(b"")
            return
        if fault == "utf8":
            events = [e.replace(b"parser", b"par\xff\xfeser") for e in events]
        until = len(events) if fault in ("", "utf8") else draw.randint(0, len(events) - 2)
        at = 0
        slow = draw.random() < 0.03
        while at < until:
            count = draw.choice((1, 2, 5, 20))
            data = b"".join(events[at : min(until, at + count)])
            cut = draw.randint(1, len(data))
            self.chunk(data[:cut])
            await asyncio.sleep(0.15 if slow else draw.random() * 0.004)
            if data[cut:]:
                self.chunk(data[cut:])
            at += count
        if not fault or fault == "utf8":
            self.chunk(b"")
        elif fault == "stall-body":
            await asyncio.sleep(3600)
        elif fault == "half-event":
            self.chunk(events[until][: len(events[until]) // 2])
            self.chunk(b"")
        elif fault == "error-late":
            self.chunk(
                event({"type": "error", "error": {"type": "server_error", "message": "the engine broke"}}, "error")
            )
            self.chunk(b"")
        else:
            self.drop()

    def head(self, status: int, kind: bytes, length: int, extra: bytes = b"") -> None:
        self.transport.write(
            b"HTTP/1.1 %d X\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n" % (status, kind, length, extra)
        )

    def whole(self, body: bytes, status: int = 200, kind: bytes = JSON, extra: bytes = b"") -> None:
        self.head(status, kind, len(body), extra)
        self.transport.write(body)

    def chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def drop(self, reset: bool = False) -> None:
        """Close the connection, by a reset if asked."""
        self.answering = None
        if reset:
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        else:
            self.transport.close()


async def serve(faults: float, seed: int, port: int) -> None:
    """Serve until stdin closes."""
    upstream = Upstream(faults, seed)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(upstream), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--faults", type=float, default=0.0, help="share of requests that go wrong")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--port", type=int, default=0)
    given = arguments.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(given.faults, given.seed, given.port))
