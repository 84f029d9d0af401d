"""Keys that an upstream echoes, in whatever form and place, reach no client, ledger, log or page."""

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.served import BODIES, Served, served

UPSTREAM = "sk-proj-Qx7Vt2mNp9RzLw4K"
TENANT = "tn-Hy6Bd3cFj8GsXe1U"
FORWARDED = "sk-ant-oat01-Wk5Ya0uZo7MhTi2P"
SECRETS = (UPSTREAM, TENANT, FORWARDED)
FORMS = {
    "whole": lambda key: key,
    "half": lambda key: key[: len(key) // 2 + 2],
    "end": lambda key: "..." + key[-8:],
    "masked": lambda key: key[:8] + "*" * 12 + key[-4:],
    "escaped": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
}


class _Handler(BaseHTTPRequestHandler):
    """Echoes the credentials it was sent; the model name says in which form and place."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        form, _, place = body["model"].partition("-")
        sent = self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
        text = FORMS[form](sent)
        error = f'{{"error":{{"message":"bad key {text} here","type":"{text}","code":"c","param":"{text}"}}}}'.encode()
        if place == "headers":
            reply = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
            self.whole(200, json.dumps(reply).encode(), {"x-request-id": text, "x-upstream-key": text})
        elif place in ("stream", "split"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Some"}}]}
            self.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
            event = b"data: " + error + b"\n\n"
            cuts = (30, 38, 45) if place == "split" else ()
            for start, end in zip((0, *cuts), (*cuts, len(event)), strict=True):
                time.sleep(0.03)
                self.wfile.write(event[start:end])
            self.close_connection = True
        else:
            self.whole(int(place), error, {})

    def whole(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


CASES = [(form, place) for form in FORMS for place in ("401", "400", "500", "stream", "split", "headers")]


@pytest.fixture(scope="module", params=["signals", "full"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    toml = f'[server.tenants.t]\nkey_env = "TENANT"\n[upstreams.u]\nformat = "openai_chat"\nbase_url = "{url}"\n'
    toml += 'api_key_env = "KEY"\nmax_retries = 0\n'
    toml += f'[upstreams.f]\nformat = "openai_chat"\nbase_url = "{url}"\nforward_auth = true\nmax_retries = 0\n'
    for form, place in CASES:
        for upstream in "uf":
            name = f"{upstream}-{form}-{place}"
            toml += f'[targets.{name}]\nupstream = "{upstream}"\nmodel = "{form}-{place}"\n'
            toml += f'[routes.{name}]\ntype = "passthrough"\ntarget = "{name}"\n'
    folder = tmp_path_factory.mktemp("secrets")
    with served(toml, folder, env={"KEY": UPSTREAM, "TENANT": TENANT}, capture=request.param) as running:
        yield running
    server.shutdown()
    server.server_close()


def leaks(data: bytes | str) -> list[str]:
    """Runs of eight characters of any secret (beyond a vendor's own prefix) in `data`."""
    text = data if isinstance(data, str) else data.decode("latin-1")
    text += re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return [key[i : i + 8] for key in SECRETS for i in range(8, len(key) - 7) if key[i : i + 8] in text]


def ask(gateway: Served, path: str, model: str, stream: bool, key: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    body: dict[str, Any] = {**BODIES[path], "model": model, "stream": stream}
    connection.request("POST", path, json.dumps(body), {"authorization": f"Bearer {key}"})
    response = connection.getresponse()
    data = "\n".join(f"{k}: {v}" for k, v in response.getheaders()).encode() + b"\n\n" + response.read()
    connection.close()
    return data


@pytest.mark.parametrize("path", BODIES)
def test_no_key_comes_back(gateway: Served, path: str) -> None:
    found = {}
    for form, place in CASES:
        for upstream, key in (("u", TENANT), ("f", FORWARDED)):
            if upstream == "f" and "messages" in path:
                continue  # credentials for one vendor are not forwarded to another
            data = ask(gateway, path, f"{upstream}-{form}-{place}", place in ("stream", "split"), key)
            if leaks(data):
                found[upstream, form, place] = data[-400:]
    assert not found


def test_no_key_is_kept_or_shown(gateway: Served) -> None:
    for form, place in CASES:
        for upstream, key in (("u", TENANT), ("f", FORWARDED)):
            ask(gateway, "/v1/chat/completions", f"{upstream}-{form}-{place}", place in ("stream", "split"), key)
    gateway.wait_for_turns(0)
    turn = next(iter(gateway.turns()))
    for page in ("/metrics", "/v1/turns?limit=1000", f"/v1/turns/{turn}", "/v1/stats", "/ready", "/v1/models"):
        connection = gateway.connect()
        connection.request("GET", page)
        assert not leaks(connection.getresponse().read()), page
    for file in gateway.folder.iterdir():
        if file.name != "turnout.toml":
            assert not leaks(file.read_bytes()), file.name
