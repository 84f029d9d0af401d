"""Whatever a client sends, it gets a clear error in its own dialect, one record is kept, and nothing of ours breaks."""

import contextlib
import gzip
import http.client
import json
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.served import BODIES, Served, served

PATHS = list(BODIES)
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "replies.jsonl").write_text('{"text": "All is well."}\n')
    toml = "[server]\nmax_body_mib = 1\ndeadline_s = 3\n"
    for name, form in (("c", "openai_chat"), ("m", "anthropic_messages"), ("r", "openai_responses")):
        toml += f'[upstreams.{name}]\nformat = "{form}"\nscript = "replies.jsonl"\napi_key_env = "KEY"\n'
        toml += f'[targets.{name}]\nupstream = "{name}"\nmodel = "ok"\n'
        toml += f'[routes.to-{name}]\ntype = "passthrough"\ntarget = "{name}"\n'
    with served(toml, folder, env={"KEY": "sk-planted-secret-9876543210"}) as running:
        yield running
        log = running.log()
        assert "Traceback" not in log
        assert "internal error" not in log
        assert "planted" not in log


def good(path: str, **more: Any) -> bytes:
    return json.dumps({**BODIES[path], "model": "to-c", **more}).encode()


def post(
    gateway: Served, path: str, body: bytes, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    try:
        connection.request("POST", path, body, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def raw(gateway: Served, data: bytes) -> bytes:
    """What the gateway sends until it closes the connection or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", gateway.port), 20) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        received = b""
        connection.settimeout(2)
        with contextlib.suppress(ConnectionError, TimeoutError):
            while piece := connection.recv(65536):
                received += piece
        return received


def complaint(path: str, data: bytes) -> dict[str, Any]:
    """The error in the envelope of the path's dialect."""
    told = json.loads(data)
    error = told["error"]
    if "messages" in path:
        assert told["type"] == "error"
        assert set(told) <= {"type", "error", "request_id"}
    else:
        assert set(told) == {"error"}
        assert set(error) >= {"message", "type", "param", "code"}
    assert error["message"]
    assert isinstance(error["type"], str)
    return dict(error)


def broken(path: str) -> dict[str, tuple[bytes, dict[str, str], int, str]]:
    """Bodies by name: the bytes, headers, and the status and part of the message they must get."""
    body = good(path)
    small = body[:-1]
    text = b'"hi"'
    return {
        "empty": (b"", {}, 400, "not valid JSON"),
        "cut": (body[:-3], {}, 400, "not valid JSON"),
        "not an object": (b"[]", {}, 400, "JSON object"),
        "NUL bytes": (b"\0" * 64, {}, 400, "not valid JSON"),
        "NUL in a text": (body.replace(text, b'"h\0i"'), {}, 400, "not valid JSON"),
        "not UTF-8": (body.replace(text, b'"h\xff\xfei"'), {}, 400, "UTF-8"),
        "lone surrogate": (body.replace(text, b'"h\\ud800i"'), {}, 400, "not valid JSON"),
        "NaN": (small + b',"temperature":NaN}', {}, 400, "not valid JSON"),
        "brackets": (b"[" * 100_000, {}, 400, "JSON object"),
        "deep field": (small + b',"x":' + DEEP + b"}", {}, 400, "nested too deeply"),
        "deep content": (body.replace(text, DEEP), {}, 400, "nested too deeply"),
        "deep tools": (small + b',"tools":' + DEEP + b"}", {}, 400, "nested too deeply"),
        "model of a wrong type": (good(path, model=7), {}, 400, "model"),
        "stream of a wrong type": (good(path, stream="yes"), {}, 400, "stream"),
        "messages of a wrong type": (good(path, messages=7, input=7), {}, 400, "expected"),
        "number out of range": (small + b',"temperature":1e999}', {}, 400, "temperature"),
        "unknown role": (
            good(path, messages=[{"role": "elf", "content": "x"}], input=[{"role": "elf", "content": "x"}]),
            {},
            400,
            "[0].role",
        ),
        "no model": (good(path, model=""), {}, 400, "`model` is missing: it names a route, such as "),
        "unknown route": (good(path, model="to-cc"), {}, 404, "to-c"),
        "too large": (b" " * (1 << 20) + body, {}, 413, "max_body_mib"),
        "gzip bomb": (gzip.compress(b" " * (64 << 20)), {"content-encoding": "gzip"}, 413, "max_body_mib"),
        "not gzip": (body, {"content-encoding": "gzip"}, 400, "gzip"),
        "cut gzip": (gzip.compress(body)[:-12], {"content-encoding": "gzip"}, 400, "complete"),
        "zstd that is none": (body, {"content-encoding": "zstd"}, 0, "zstd"),
        "unknown encoding": (body, {"content-encoding": "br"}, 415, "br"),
        "two encodings": (body, {"content-encoding": "gzip, gzip"}, 415, "gzip, gzip"),
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", broken(PATHS[0]))
def test_a_bad_body_gets_a_clear_error_and_one_record(gateway: Served, path: str, name: str) -> None:
    body, headers, status, part = broken(path)[name]
    got, answer, data = post(gateway, path, body, headers)
    assert got == status or (not status and got in (400, 415)), data
    assert part.lower() in complaint(path, data)["message"].lower()
    gateway.wait_for_turns(0)
    turn = recorded(gateway, answer["x-turnout-turn"])
    assert (turn.ended, turn.status) == ("rejected", got)
    assert turn.calls == ()


def recorded(gateway: Served, turn: str) -> Any:
    """One turn of the ledger, waited for."""
    for _ in range(200):
        found = gateway.turn(turn)
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{turn} was not recorded")


@pytest.mark.parametrize("path", PATHS)
def test_good_bodies_in_odd_clothes_are_served(gateway: Served, path: str) -> None:
    body = good(path)
    assert post(gateway, path, gzip.compress(body), {"content-encoding": "gzip"})[0] == 200
    assert post(gateway, path, zlib.compress(body), {"content-encoding": "deflate"})[0] == 200
    assert post(gateway, path, b"  \n" + body + b"\n ")[0] == 200
    assert post(gateway, path, body[:-1] + b',"model":"to-c"}')[0] == 200
    assert post(gateway, path, body, {"x-turnout-session": "\xe9\xff" * 300})[0] == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_chunked_body_above_the_limit_is_refused(gateway: Served, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    answer = raw(gateway, head + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 20 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    complaint(path, answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_never_comes_times_out(gateway: Served, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{{".encode()
    with socket.create_connection(("127.0.0.1", gateway.port), 20) as connection:
        connection.sendall(head)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")
    complaint(path, answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_said_to_be_one(gateway: Served, path: str, method: str) -> None:
    answer = raw(gateway, f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 405")
    assert b"allow: POST" in answer
    complaint(path, answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("path", PATHS)
def test_a_websocket_is_refused_so_that_clients_fall_back(gateway: Served, path: str) -> None:
    head = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    answer = raw(gateway, f"GET {path} HTTP/1.1\r\nhost: x\r\n{head}sec-websocket-version: 13\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 405")
    assert "websocket" not in gateway.log().lower()


@pytest.mark.parametrize("path", [*(f"{path}/extra" for path in PATHS), "/v2/messages", "/v1/%00", "/v1/embeddings"])
def test_an_unknown_path_names_what_there_is(gateway: Served, path: str) -> None:
    status, _, data = post(gateway, path, b"{}")
    assert status == 404
    assert "/v1/chat/completions" in complaint(path, data)["message"]


def test_headers_without_end_are_refused(gateway: Served) -> None:
    answer = raw(gateway, b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 4_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
    assert gateway.in_flight() == 0


def test_what_is_not_http_is_refused(gateway: Served) -> None:
    for data in (b"\x16\x03\x01\x02\x00\x01\x00" * 20, b"GET /\xff HTTP/1.1\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n"):
        assert raw(gateway, data).startswith(b"HTTP/1.1 400")


def test_requests_in_line_are_answered_in_order(gateway: Served) -> None:
    one = good("/v1/chat/completions")
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(one), one)
    missing = b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    answer = raw(gateway, request + request + missing)
    statuses = [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    # The last body runs straight into the next status line.
    assert statuses[:1] == [200]
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"HTTP/1.1 404") == 1


BAD_PAGES = [
    ("GET", "/v1/turns?limit=nan"), ("GET", "/v1/turns?limit=1e99"), ("GET", "/v1/turns?before=%00"),
    ("GET", "/v1/turns?route[]=x"), ("GET", "/v1/stats?hours=x"), ("GET", "/v1/stats?since=nan"),
    ("GET", "/v1/turns/%00%ff"), ("GET", "/v1/models/%2e%2e%2f"), ("POST", "/v1/route"), ("POST", "/v1/outcomes"),
    ("POST", "/v1/messages/count_tokens"), ("POST", "/v1/responses/input_tokens"), ("POST", "/v1/responses/compact"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), BAD_PAGES)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b'{"request":' + DEEP + b"}", b'{"request":7,"format":[]}']
)
def test_pages_never_fail_either(gateway: Served, method: str, path: str, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    connection.request(method, path, body)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    assert response.status < 500, data
    if response.status >= 400:
        complaint(path, data)


scalars = st.sampled_from(
    [None, True, False, 0, -1, 2**70, 1e308, "", "x", "\x00", "é", [], {}, [[]], [{}], {"type": "x"}]
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A rich valid body with some of its values exchanged, doubled or taken away, or some of its bytes changed."""
    path = draw(st.sampled_from(PATHS))
    body = json.loads(json.dumps(RICH[path]))
    body["model"] = draw(st.sampled_from(["to-c", "to-m", "to-r"]))
    body["stream"] = draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        at, key = draw(st.sampled_from(places(body)))
        action = draw(st.sampled_from(["set", "set", "drop", "swap"]))
        if action == "drop":
            del at[key]
        elif action == "set":
            # A copy, since a later change inside it would change what every other example draws.
            at[key] = json.loads(json.dumps(draw(scalars)))
        else:
            other, name = draw(st.sampled_from(places(body)))
            if name in other if isinstance(other, dict) else name < len(other):
                at[key] = json.loads(json.dumps(other[name]))
        if not places(body):
            break
    data = bytearray(json.dumps(body).encode())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return path, bytes(data)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container within `value` with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += [(value, key), *places(inner)]
    return found


_CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
RICH: dict[str, Any] = {
    "/v1/chat/completions": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        ],
        "tools": [{"type": "function", "function": {"name": "ls", "description": "List.", "parameters": _SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "ls"}},
        "temperature": 0.5,
        "max_tokens": 9,
        "stop": ["x"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA}},
        "user": "u",
        "stream_options": {"include_usage": True},
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
    },
    "/v1/messages": {
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "a.py"}],
                        "is_error": True,
                    }
                ],
            },
        ],
        "tools": [{"name": "ls", "description": "List.", "input_schema": _SCHEMA}],
        "tool_choice": {"type": "tool", "name": "ls"},
        "temperature": 0.5,
        "stop_sequences": ["x"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": {"user_id": "u"},
    },
    "/v1/responses": {
        "instructions": "Be brief.",
        "store": False,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "abc",
            },
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": '{"path":"."}'},
            {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
        ],
        "tools": [
            {"type": "function", "name": "ls", "description": "List.", "parameters": _SCHEMA, "strict": False},
            {
                "type": "custom",
                "name": "patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
            },
        ],
        "tool_choice": {"type": "function", "name": "ls"},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA}},
        "max_output_tokens": 99,
        "metadata": {"a": "b"},
    },
}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutated())
def test_no_mutation_of_a_valid_body_is_our_fault(gateway: Served, case: tuple[str, bytes]) -> None:
    path, body = case
    status, _, data = post(gateway, path, body)
    assert status in (200, 400, 404), data
    if status != 200 and b'"error"' in data:
        complaint(path, data)
    assert "internal error" not in gateway.log()


def test_a_type_that_is_no_string_is_no_type_of_ours(gateway: Served) -> None:
    path = "/v1/messages"
    assert post(gateway, path, good(path, thinking={"type": {"type": None}}))[0] in (200, 400)
    said = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": {}, "thinking": "", "signature": ""}, {"type": "text", "text": "x"}],
        },
        {"role": "user", "content": "on"},
    ]
    for route in ("to-c", "to-m", "to-r"):
        assert post(gateway, path, good(path, messages=said, model=route))[0] in (200, 400)
