"""A chat server on a socket that takes facts out by a rule, and counts what it was asked."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SHOWN = re.compile(r"<passage (\w+)>\n(.*)\n</passage \1>", re.DOTALL)


class Server:
    """`asked`: how often each passage was. `faults`: what is answered instead: a status, or a text in place of the facts, by how
    often the passage was asked before. `delay_s`: of every reply. `most`: requests in flight at once, at most."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.faults: dict[str, list[int | str]] = {}
        self.delay_s = 0.0
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.url = ""

    def reply(self, request: Any) -> tuple[int, Any]:
        text = "\n".join(str(message["content"]) for message in request["messages"])
        passage = _SHOWN.search(text)
        assert passage
        with self.lock:
            before = self.asked[passage[2]]
            self.asked[passage[2]] += 1
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.delay_s)
        with self.lock:
            self.now -= 1
        faults = self.faults.get(passage[2], [])
        fault = faults[before] if before < len(faults) else None
        if isinstance(fault, int):
            return fault, {"error": {"message": "no", "type": "x"}}
        names = re.findall(r"[A-Z]\w+ [A-Z]\w+ \d+", passage[2])
        said = fault or json.dumps({"facts": [{"sentence": f"A model says: {passage[2]}", "entities": names}]})
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 400, "completion_tokens": 50, "total_tokens": 450}
        return 200, {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": "served",
            "choices": [choice],
            "usage": usage,
        }


@contextmanager
def serving() -> Iterator[Server]:
    """The server, at `url`."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, body = server.reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            data = json.dumps(body).encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client was killed

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_address[1]}/v1"
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
