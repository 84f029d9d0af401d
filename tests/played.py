"""An upstream that plays raw bytes: each request is answered with the steps that a test's function returns."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Step = bytes | float | str
"""Bytes to send, seconds to wait, or how to end the connection: `close` or `reset`."""


class Seen(NamedTuple):
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


class Played:
    """A server on a free port of this machine. `play(seen, n)` gives the steps that answer the request number n."""

    def __init__(self, play: Callable[[Seen, int], Sequence[Step]]) -> None:
        self.play = play
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Played":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more."""
        if self._listening.fileno() >= 0:
            self._listening.shutdown(socket.SHUT_RDWR)  # else the thread that accepts would keep it open
            self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while (line := stream.readline()) and self._answer(connection, stream, line.decode().split()[1]):
                    pass
            except OSError:
                return

    def _answer(self, connection: socket.socket, stream: Any, path: str) -> bool:
        headers = {}
        while line := stream.readline().strip():
            name, value = line.decode("latin-1").split(":", 1)
            headers[name.lower()] = value.strip()
        seen = Seen(path, headers, stream.read(int(headers.get("content-length", "0"))))
        with self._lock:
            number = len(self.seen)
            self.seen.append(seen)
        for step in self.play(seen, number):
            if isinstance(step, bytes):
                connection.sendall(step)
            elif isinstance(step, str):
                if step == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            else:
                time.sleep(step)
        return True


def whole(status: int, body: Any, content_type: str = "application/json", **headers: str) -> list[Step]:
    """A whole response; `body` is bytes or a JSON value."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n{lines}content-length: {len(data)}\r\n\r\n"
    return [head.encode() + data]


def stream(*parts: Step, end: bool = True) -> list[Step]:
    """A chunked event stream; `end`: whether HTTP ends it as it should."""
    steps: list[Step] = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
    for part in parts:
        steps.append(b"%x\r\n%s\r\n" % (len(part), part) if isinstance(part, bytes) else part)
    return [*steps, b"0\r\n\r\n"] if end else steps


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    """An event of a Chat stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    )


def completion(text: str = "hi", usage: dict[str, Any] | None = None) -> dict[str, Any]:
    """A whole Chat reply."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = usage or {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
