"""Signed thinking goes back to the model that made it, byte for byte, and to no other."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.running import Running, running

THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}
ROUTES = """
[upstreams.u]
format = "anthropic_messages"
base_url = "{url}"
[upstreams.beta]
format = "anthropic_messages"
base_url = "{url}"
betas = ["known-1"]
[targets.one]
upstream = "u"
model = "model-one"
[targets.two]
upstream = "u"
model = "model-two"
[targets.short]
upstream = "beta"
model = "model-short"
cache_ttl = "5m"
thinking = "none"
[routes.one]
type = "passthrough"
target = "one"
[routes.two]
type = "passthrough"
target = "two"
[routes.short]
type = "passthrough"
target = "short"
"""


class Upstream:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None: ...

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                owner.bodies.append(raw)
                owner.headers.append({k.lower(): v for k, v in self.headers.items()})
                reply = {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": json.loads(raw)["model"],
                    "content": [THINKING, {"type": "text", "text": "Done."}],
                    "stop_reason": "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 3, "output_tokens": 2},
                }
                data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture
def gateway(upstream: Upstream, tmp_path: Path) -> Iterator[Running]:
    with running(ROUTES.format(url=upstream.url), tmp_path) as served:
        yield served


def send(gateway: Running, route: str, messages: list[Any], session: str = "s", **more: Any) -> Any:
    headers = {"content-type": "application/json", "x-turnout-session": session, **more.pop("headers", {})}
    body = json.dumps({"model": route, "max_tokens": 5000, "messages": messages, **more}, indent=1).encode()
    with urlopen(Request(f"{gateway.url}/v1/messages", body, headers), timeout=10) as response:
        return json.loads(response.read())


def grown(messages: list[Any], reply: Any) -> list[Any]:
    return [*messages, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "And now?"}]


def test_the_model_that_thought_gets_its_thinking_back_untouched(gateway: Running, upstream: Upstream):
    first = [{"role": "user", "content": "Hello"}]
    second = grown(first, send(gateway, "one", first))
    send(gateway, "one", second)
    sent = json.dumps({"model": "one", "max_tokens": 5000, "messages": second}, indent=1).encode()
    assert upstream.bodies[1] == sent.replace(b'"model": "one"', b'"model": "model-one"')


def test_another_model_does_not_see_it(gateway: Running, upstream: Upstream):
    first = [{"role": "user", "content": "Hello"}]
    second = grown(first, send(gateway, "one", first))
    send(gateway, "two", second)
    assert b"signature" not in upstream.bodies[1]
    assert json.loads(upstream.bodies[1])["messages"][1]["content"] == [{"type": "text", "text": "Done."}]
    # Both have thought by now, and nobody can tell whose thinking is whose: it stays out for either.
    third = grown(second, {"content": [THINKING, {"type": "text", "text": "Done."}]})
    send(gateway, "one", third)
    assert b"signature" not in upstream.bodies[2]


def test_sessions_do_not_taint_one_another(gateway: Running, upstream: Upstream):
    first = [{"role": "user", "content": "Hello"}]
    send(gateway, "one", first, session="a")
    second = grown(first, send(gateway, "two", first, session="b"))
    send(gateway, "two", second, session="b")
    assert b"c2lnbmVk" in upstream.bodies[-1]


def test_unsigned_thinking_of_a_translation_never_reaches_a_messages_server(gateway: Running, upstream: Upstream):
    unsigned = {"type": "thinking", "thinking": "hm", "signature": ""}
    history = grown([{"role": "user", "content": "x"}], {"content": [unsigned, {"type": "text", "text": "y"}]})
    body = json.dumps({"model": "one", "max_tokens": 9, "messages": history}, separators=(",", ":")).encode()
    with urlopen(Request(f"{gateway.url}/v1/messages", body, {"x-turnout-session": "z"}), timeout=10):
        pass
    assert b"thinking" not in upstream.bodies[-1]


def test_a_target_gets_only_what_it_is_said_to_take(gateway: Running, upstream: Upstream):
    block = {"type": "text", "text": 'say "ttl": "1h"', "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    send(
        gateway,
        "short",
        [{"role": "user", "content": [block]}],
        thinking={"type": "adaptive"},
        headers={"anthropic-beta": "known-1, new-2", "anthropic-version": "2023-06-01"},
    )
    sent = json.loads(upstream.bodies[-1])
    assert sent["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert sent["messages"][0]["content"][0]["text"] == block["text"]
    assert "thinking" not in sent
    assert upstream.headers[-1]["anthropic-beta"] == "known-1"
    turn = gateway.settled()[0]
    assert {d["path"] for d in turn.drop_report} == {"cache_control.ttl", "thinking"}
