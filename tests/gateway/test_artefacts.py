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


def thinking(number: int) -> dict[str, str]:
    """What the upstream thinks in its answer to the request of this number, from 1."""
    return {"type": "thinking", "thinking": "Let me see.", "signature": f"c2lnbmVk/{number}+=="}


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
                    "content": [thinking(len(owner.bodies)), {"type": "text", "text": "Done."}],
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


def test_the_first_model_gets_its_own_thinking_back_after_another_has_served(gateway: Running, upstream: Upstream):
    first = [{"role": "user", "content": "Hello"}]
    second = grown(first, send(gateway, "one", first))
    third = grown(second, send(gateway, "two", second))
    fourth = grown(third, send(gateway, "one", third))
    for route, expected in (("two", ["c2lnbmVk/2+=="]), ("one", ["c2lnbmVk/1+==", "c2lnbmVk/3+=="])):
        send(gateway, route, fourth)
        blocks = [
            b for m in json.loads(upstream.bodies[-1])["messages"] if m["role"] == "assistant" for b in m["content"]
        ]
        assert [b["signature"] for b in blocks if b["type"] == "thinking"] == expected
        assert [b["text"] for b in blocks if b["type"] == "text"] == ["Done."] * 3
    dropped = [drop["why"] for drop in gateway.settled()[0].drop_report]
    assert dropped == ["opaque reasoning: only target two can read it"]
    assert all("marks" not in state or not state["marks"] for t in gateway.turns() for state in t.memory.values())


def test_thinking_that_crossed_a_translation_goes_back_to_its_maker_alone(gateway: Running, upstream: Upstream):
    items: list[Any] = [{"type": "message", "role": "user", "content": "Hello"}]
    for route in ("one", "two", "one", "two"):
        headers = {"content-type": "application/json", "x-turnout-session": "sealed"}
        body = json.dumps({"model": route, "store": False, "input": items}).encode()
        with urlopen(Request(f"{gateway.url}/v1/responses", body, headers), timeout=10) as response:
            items = [*items, *json.loads(response.read())["output"], {"role": "user", "content": "And now?"}]
    for number, expected in enumerate(([], [], ["c2lnbmVk/1+=="], ["c2lnbmVk/2+=="])):
        messages = json.loads(upstream.bodies[number])["messages"]
        blocks = [b for m in messages if m["role"] == "assistant" for b in m["content"]]
        assert [b["signature"] for b in blocks if b["type"] == "thinking"] == expected


def test_a_tool_loop_that_another_model_began_goes_on_without_thinking(gateway: Running, upstream: Upstream):
    fixed = {"type": "enabled", "budget_tokens": 2000}
    first: list[Any] = [{"role": "user", "content": "Hello"}]
    began = grown(first, send(gateway, "one", first))
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
    # The loop's own turn has no thinking: it was made by a model that shows none.
    loop = [*began, {"role": "assistant", "content": [call]}, result]
    send(gateway, "one", loop, thinking=fixed)
    assert json.loads(upstream.bodies[-1])["thinking"] == fixed  # nobody else has served this history
    send(gateway, "two", began)
    send(gateway, "one", loop, thinking=fixed)
    assert json.loads(upstream.bodies[-1])["thinking"] == {"type": "disabled"}


def test_sessions_do_not_taint_one_another(gateway: Running, upstream: Upstream):
    first = [{"role": "user", "content": "Hello"}]
    send(gateway, "one", first, session="a")
    second = grown(first, send(gateway, "two", first, session="b"))
    send(gateway, "two", second, session="b")
    assert b"c2lnbmVk/2" in upstream.bodies[-1]


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
