"""A gateway in front of a server that misbehaves on a real socket: every fault has one clear outcome, told in the client's
dialect, recorded, and leaving nothing behind."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.faulty import TEXT, FaultyUpstream
from tests.running import Running, running

KINDS = """ok reset nothing stall-head stall-body cut cut-length drip html half-event utf8 empty s429 s429-forever s500 s400
s401 overflow overflow-stream flaky slow error-late json-stream""".split()  # noqa: SIM905 - reads better than 23 quoted words
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
BEGUN = [f"begun#{path}{i}" for path in PATHS for i in range(2)]  # one each, or their breaker opens
SECRET = "sk-test-secret-0123456789"


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultyUpstream]:
    with FaultyUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultyUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = [
        f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\napi_key_env = "KEY"\nmax_retries = 1\n'
        "first_byte_s = 1.0\nidle_s = 1.0\n[server]\nkeepalive_after_s = 1.4\ndeadline_s = 20\n"
    ]
    for kind in (*KINDS, "silent-3", *BEGUN):
        toml.append(f'[targets."{kind}"]\nupstream = "u"\nmodel = "{kind}"\n')
        toml.append(f'[routes."{kind}"]\ntype = "passthrough"\ntarget = "{kind}"\n')
        if kind != "ok":
            toml.append(f'[routes."{kind}+ok"]\ntype = "passthrough"\ntarget = "{kind}"\nfallbacks = ["ok"]\n')
    slow = f'[upstreams.patient]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\nfirst_byte_s = 30\n'
    for name, model in (("patient", "silent-3"), ("late", "stall-head"), ("stalled", "stall-body")):
        slow += f'[targets.{name}]\nupstream = "patient"\nmodel = "{model}"\n'
        slow += f'[routes.{name}]\ntype = "passthrough"\ntarget = "{name}"\n'
    with running("".join(toml) + slow, tmp_path_factory.mktemp("faults"), env={"KEY": SECRET}) as served:
        yield served


def ask(
    gateway: Running, route: str, *, stream: bool = False, path: str = "/v1/chat/completions"
) -> tuple[int, bytes, dict[str, str]]:
    host, port = gateway.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    body: dict[str, Any] = {
        "model": route,
        "messages": [{"role": "user", "content": f"hello {time.time()}"}],
        "stream": stream,
    }
    if "messages" in path:
        body["max_tokens"] = 10
    if "responses" in path:
        body["input"] = body.pop("messages")
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    data = response.read()
    headers = {k.lower(): v for k, v in response.getheaders()}
    connection.close()
    return response.status, data, headers


def last_turn(gateway: Running) -> Any:
    return gateway.settled()[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        ("reset", {502}),
        ("nothing", {502}),
        ("stall-head", {504}),
        ("html", {502}),
        ("empty", {502}),
        ("s429-forever", {429}),
        ("s500", {500, 502}),
        ("s400", {400}),
        ("s401", {401}),
        ("overflow", {400}),
    ],
)
def test_a_fault_before_content_is_a_status_in_the_clients_envelope(
    gateway: Running, kind: str, statuses: set[int], stream: bool
):
    for path in ("/v1/chat/completions", "/v1/messages"):
        status, data, headers = ask(gateway, kind, stream=stream, path=path)
        assert status in statuses, data
        error = json.loads(data)["error"]
        assert error["message"]
        assert headers["x-turnout-turn"]
        assert (json.loads(data).get("type") == "error") == (path == "/v1/messages")
        turn = last_turn(gateway)
        assert (turn.id, turn.ended, turn.status) == (headers["x-turnout-turn"], "error", status)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "kind", ["reset", "nothing", "html", "empty", "s429-forever", "s500", "overflow", "s401", "stall-head"]
)
def test_another_target_takes_over_before_content(gateway: Running, kind: str, stream: bool):
    status, _, headers = ask(gateway, f"{kind}+ok", stream=stream)
    assert status == 200
    assert headers["x-turnout-target"] == "ok"
    assert headers["x-turnout-source"] == "fallback"
    turn = last_turn(gateway)
    assert turn.ended == "ok"
    assert turn.calls[-1].served
    assert turn.calls[0].error
    assert turn.why.source == "fallback"


def test_a_request_that_is_wrong_anywhere_is_not_sent_elsewhere(gateway: Running, upstream: FaultyUpstream):
    before = upstream.counts["ok"]
    status, _, _ = ask(gateway, "s400+ok")
    assert status == 400
    assert upstream.counts["ok"] == before


def test_an_overflow_inside_a_stream_falls_through_before_content(gateway: Running):
    status, data, headers = ask(gateway, "overflow-stream+ok", stream=True)
    assert status == 200
    assert headers["x-turnout-target"] == "ok"
    assert b"is well." in data
    status, data, _ = ask(gateway, "overflow-stream", stream=True)
    assert status == 400
    assert json.loads(data)["error"]["code"] == "context_length_exceeded"


def test_what_may_be_retried_is_retried_on_the_same_target(gateway: Running, upstream: FaultyUpstream):
    before = upstream.counts["s429"]
    status, _, _ = ask(gateway, "s429")
    assert (status, upstream.counts["s429"] - before) == (200, 2)
    assert last_turn(gateway).calls[0].retries == 1
    assert ask(gateway, "flaky", stream=True)[0] == 200


@pytest.mark.parametrize("kind", ["cut", "stall-body", "half-event", "error-late"])
def test_a_stream_that_breaks_after_content_ends_in_one_error_event(gateway: Running, kind: str):
    for path in ("/v1/chat/completions", "/v1/messages"):
        status, data, _ = ask(gateway, f"{kind}+ok", stream=True, path=path)
        assert status == 200
        assert b"All " in data
        assert data.count(b'"error"') >= 1
        assert b"[DONE]" not in data
        assert b"message_stop" not in data
        assert b'"finish_reason":"stop"' not in data
        assert SECRET.encode() not in data
        turn = last_turn(gateway)
        assert turn.ended == "cut"
        assert len(turn.calls) == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_has_only_begun_is_taken_over(gateway: Running, path: str):
    status, data, _ = ask(gateway, f"begun#{path}0+ok", stream=True, path=path)
    assert status == 200
    assert b"is well." in data
    assert not any(end in data for end in (b"event: error", b"response.failed", b'data: {"error"'))
    assert data.count(b"event: message_start") == ("messages" in path)
    assert data.count(b"event: response.created") == ("responses" in path)
    turn = last_turn(gateway)
    assert (turn.ended, turn.target, turn.why.source) == ("ok", "ok", "fallback")


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_has_only_begun_ends_in_an_error_where_nobody_takes_over(gateway: Running, path: str):
    status, data, _ = ask(gateway, f"begun#{path}1", stream=True, path=path)
    assert status == 200
    assert b"error" in data
    assert not any(end in data for end in (b"[DONE]", b"message_stop", b"response.completed"))
    assert last_turn(gateway).ended == "error"


def test_a_body_shorter_than_promised_is_an_error(gateway: Running):
    assert ask(gateway, "cut-length")[0] == 502


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_slow_drip_loses_nothing(gateway: Running, path: str):
    status, data, _ = ask(gateway, "drip", stream=True, path=path)
    assert status == 200
    assert b"is well." in data
    assert last_turn(gateway).ended == "ok"


def test_invalid_utf8_becomes_a_typed_error_across_formats_and_never_a_crash(gateway: Running):
    status, data, _ = ask(gateway, "utf8", stream=False, path="/v1/messages")
    assert status == 502
    assert json.loads(data)["error"]["type"] == "api_error"
    status, data, _ = ask(gateway, "utf8", stream=True, path="/v1/messages")
    assert status == 200
    assert b"event: error" in data


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_one_body_where_a_stream_was_asked_for_is_played_as_a_stream(gateway: Running, path: str):
    status, data, headers = ask(gateway, "json-stream", stream=True, path=path)
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert TEXT.encode() in data
    assert (b"[DONE]" in data) or (b"message_stop" in data)


def test_no_secret_comes_back(gateway: Running):
    for path in ("/v1/chat/completions", "/v1/messages"):
        _, data, headers = ask(gateway, "s401", path=path)
        blob = data.decode() + repr(headers) + repr(last_turn(gateway))
        assert not any(SECRET[i : i + 6] in blob for i in range(len(SECRET) - 5))


def test_a_silent_stream_is_kept_alive(gateway: Running):
    status, data, _ = ask(gateway, "patient", stream=True)
    assert status == 200
    assert data.count(b": keep-alive") >= 1
    assert b"is well." in data
    assert last_turn(gateway).ended == "ok"


def hang_up(gateway: Running, route: str, *, after: float, stream: bool = True, part_of_body: bool = False) -> float:
    """Send a request (or half of it) and hang up; the time of hanging up."""
    host, port = gateway.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    body = json.dumps(
        {"model": route, "messages": [{"role": "user", "content": f"x {time.time()}"}], "stream": stream}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    client.sendall(head + (body[: len(body) // 2] if part_of_body else body))
    time.sleep(after)
    client.close()
    return time.monotonic()


def wait_for(condition: Any, seconds: float = 3.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("route", "stream"), [("late", False), ("late", True), ("stalled", True)])
def test_a_hang_up_aborts_the_upstream_within_a_second(
    gateway: Running, upstream: FaultyUpstream, route: str, stream: bool
):
    turns = len(gateway.turns())
    went = hang_up(gateway, route, after=0.6, stream=stream)
    index = len(upstream.requests) - 1
    assert wait_for(lambda: index in upstream.hung_up)
    assert upstream.hung_up[index] - went < 1.0
    assert wait_for(lambda: len(gateway.turns()) == turns + 1)
    turn = last_turn(gateway)
    assert (turn.ended, turn.status) == ("client_gone", 499)
    assert turn.calls[0].error == "cancelled"


def test_a_hang_up_while_the_request_is_being_sent_is_recorded(gateway: Running):
    turns = len(gateway.turns())
    hang_up(gateway, "ok", after=0.1, part_of_body=True)
    assert wait_for(lambda: len(gateway.turns()) == turns + 1)
    assert last_turn(gateway).ended == "client_gone"


def test_nothing_is_left_behind(gateway: Running):
    ask(gateway, "ok")
    assert wait_for(lambda: len(gateway.gateway.attendant) == 0)
    before = gateway.tasks()
    for kind in ("reset", "cut", "drip", "ok", "s500"):
        ask(gateway, kind, stream=True)
    hang_up(gateway, "late", after=0.4)
    assert wait_for(lambda: len(gateway.gateway.attendant) == 0)
    assert wait_for(lambda: gateway.tasks() <= before)
