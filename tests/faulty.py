"""A real server on a real socket that misbehaves on demand: the model name of a request says how.

`ok` answers well, `vote` and `decline` as a judge who votes. Others: `begun` (the beginning of a stream, then closes), `reset`
(before the head), `nothing` (closes without a byte), `stall-head`, `stall-body` (first events, then silence), `cut` (first
events, then closes), `cut-length` (a body shorter than promised), `drip` (byte by byte), `html`, `half-event`, `utf8` (invalid
bytes), `empty` (200, no body),
`s429`, `s429-forever`, `s500`, `s400`, `s401` (echoes the key it was sent), `overflow`, `overflow-stream` (inside a 200
stream), `flaky` (fails every other request), `slow` (2 s of silence), `silent-N` (N seconds of silence, then ok), `error-late`
(an error event after content), `json-stream` (one body though a stream was asked for), `linger` (a whole stream whose
end is never told).
A `#` and what follows it is ignored: it makes targets of one kind that do not share a breaker.
"""

import json
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = "All is well."
VOTES = {
    "vote": '{"reason": "it goes in circles", "escalate": true}',
    "decline": '{"reason": "it gets on", "escalate": false}',
}


class FaultyUpstream:
    """Serves until closed. `requests` holds what came in; `hung_up` maps a request's index to when its client went."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up: dict[int, float] = {}
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> "FaultyUpstream":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: FaultyUpstream
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw)
        owner, model = self.owner, body["model"]
        with owner.lock:
            owner.requests.append(body)
            owner.headers.append({k.lower(): v for k, v in self.headers.items()})
            self.index = len(owner.requests) - 1
            owner.counts[model] += 1
            nth = owner.counts[model]
        kind = model.partition("#")[0]
        self.text = TEXT
        if kind in VOTES:
            kind, self.text = "ok", VOTES[kind]
        stream = bool(body.get("stream"))
        if kind == "flaky":
            kind = "reset" if nth % 2 else "ok"
        if kind.startswith("silent-"):
            if not self.wait_for_client(float(kind.removeprefix("silent-"))):
                return
            kind = "ok"
        if kind == "slow":
            if not self.wait_for_client(2.0):
                return
            kind = "ok"
        status = {"s429": 429, "s429-forever": 429, "s500": 500, "s400": 400, "s401": 401, "overflow": 400}.get(kind)
        if kind == "s429" and nth % 2 == 0:
            kind, status = "ok", None
        if status is not None:
            self.refuse(kind, status)
        elif kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif kind == "nothing":
            self.close_connection = True
        elif kind == "stall-head":
            self.wait_for_client(30)
            self.close_connection = True
        elif kind == "html":
            self.whole(200, b"<html><body><h1>502 Bad Gateway</h1></body></html>", "text/html")
        elif kind == "empty":
            self.whole(200, b"", "application/json")
        elif kind == "cut-length":
            data = self.reply()
            self.start(200, "application/json", len(data))
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif not stream or kind == "json-stream":
            if kind == "utf8":
                self.whole(200, self.reply().replace(b"well", b"we\xff\xfel"), "application/json")
            else:
                self.whole(200, self.reply(), "application/json")
        else:
            self.events(kind)

    def events(self, kind: str) -> None:
        events = self.stream_events()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if kind == "overflow-stream":
            self.chunk(
                b'data: {"error":{"message":"maximum context length is 8192 tokens","code":"context_length_exceeded"}}\n\n'
            )
            self.chunk(b"")
            return
        if kind == "drip":
            for byte in b"".join(events):
                self.chunk(bytes([byte]))
            self.chunk(b"")
            return
        if kind == "begun":
            self.chunk(events[0])
            time.sleep(0.15)
            self.close_connection = True
            return
        if kind == "half-event":
            self.chunk(b"".join(events[:2]) + events[2][:20])
            self.chunk(b"")
            return
        for event in events[:2]:
            self.chunk(event)
        if kind != "ok":
            time.sleep(0.15)  # so that the content above has gone on to the client before the fault comes
        if kind == "stall-body":
            self.wait_for_client(30)
            self.close_connection = True
            return
        if kind == "cut":
            self.close_connection = True
            return
        if kind == "error-late":
            self.chunk(
                b'data: {"error":{"message":"the engine broke, key sk-test-secret-0123456789","type":"server_error"}}\n\n'
            )
            self.chunk(b"")
            return
        if kind == "utf8":
            self.chunk(events[2].replace(b"well", b"we\xff\xfel"))
        for event in events[2:]:
            self.chunk(event)
        if kind == "linger":
            self.wait_for_client(30)
            return
        self.chunk(b"")

    def wait_for_client(self, seconds: float) -> bool:
        """Wait; False (and a note of when) if the client hung up meanwhile."""
        until = time.monotonic() + seconds
        self.connection.settimeout(0.05)
        try:
            while time.monotonic() < until:
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        raise ConnectionError
                except TimeoutError:
                    continue
                except ConnectionError:
                    with self.owner.lock:
                        self.owner.hung_up[self.index] = time.monotonic()
                    self.close_connection = True
                    return False
            return True
        finally:
            self.connection.settimeout(None)

    def refuse(self, kind: str, status: int) -> None:
        sent = self.headers.get("authorization") or self.headers.get("x-api-key") or ""
        message = {
            "overflow": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "s401": f"Incorrect API key provided: {sent}",
            "s400": "temperature must be below 2",
        }.get(kind, "try later")
        code = {"overflow": "context_length_exceeded", "s401": "invalid_api_key"}.get(kind)
        data = json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()
        headers = {"retry-after": "0" if kind == "s429" else "120"} if status == 429 else {}
        self.whole(status, data, "application/json", headers)

    def start(self, status: int, content_type: str, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def whole(self, status: int, data: bytes, content_type: str, headers: dict[str, str] | None = None) -> None:
        self.start(status, content_type, len(data), headers)
        self.wfile.write(data)

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def reply(self) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", "content": self.text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
        reply = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        return json.dumps(reply).encode()

    def stream_events(self) -> list[bytes]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            data = {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [choice],
            }
            return f"data: {json.dumps(data)}\n\n".encode()

        usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
        last = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": usage,
        }
        return [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": self.text[:4]}),
            chunk({"content": self.text[4:]}),
            chunk({}, "stop"),
            f"data: {json.dumps(last)}\n\n".encode(),
            b"data: [DONE]\n\n",
        ]
