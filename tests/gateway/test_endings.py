"""How turns end: once the client has its whole answer, nothing that happens later changes what is recorded."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.faulty import TEXT, FaultyUpstream
from tests.running import Running, running


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultyUpstream]:
    with FaultyUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultyUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = [f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\nidle_s = 20\nmax_retries = 1\n']
    for kind in ("ok", "linger", "slow"):
        toml.append(f'[targets.{kind}]\nupstream = "u"\nmodel = "{kind}"\n')
        toml.append(f'[routes.{kind}]\ntype = "passthrough"\ntarget = "{kind}"\n')
    with running("".join(toml), tmp_path_factory.mktemp("endings")) as served:
        yield served


def post(gateway: Running, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


BODIES = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    "/v1/responses": {"input": "hi"},
}


@pytest.mark.parametrize("path", BODIES)
def test_an_upstream_that_never_ends_its_response_delays_nobody(gateway: Running, path: str) -> None:
    began = time.monotonic()
    status, data = post(gateway, path, {**BODIES[path], "model": "linger", "stream": True})
    assert status == 200
    assert TEXT.split()[0].encode() in data
    assert {b"[DONE]": b"[DONE]" in data, b"message_stop": b"message_stop" in data, b"completed": b"completed" in data}[
        {"/v1/chat/completions": b"[DONE]", "/v1/messages": b"message_stop", "/v1/responses": b"completed"}[path]
    ]
    turn = gateway.settled()[0]
    assert (turn.ended, turn.status, turn.error) == ("ok", 200, "")
    assert turn.usage is not None
    assert time.monotonic() - began < 10, "the idle time-out of the upstream is 20 s"
    assert gateway.gateway.metrics.in_flight == 0


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_leaves_with_its_whole_answer_has_not_hung_up(gateway: Running, path: str) -> None:
    # Two seconds of silence, so that the client's connection is being watched when the answer comes.
    post(gateway, path, {**BODIES[path], "model": "slow", "stream": True})
    turn = gateway.settled()[0]
    assert (turn.ended, turn.status) == ("ok", 200)


@pytest.mark.parametrize("stream", [False, True])
def test_a_translated_reply_can_be_continued_by_the_id_the_client_got(
    gateway: Running, upstream: FaultyUpstream, stream: bool
) -> None:
    status, data = post(gateway, "/v1/responses", {"model": "ok", "input": "first", "stream": stream})
    assert status == 200
    if stream:
        events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
        response_id = events[-1]["response"]["id"]
    else:
        response_id = json.loads(data)["id"]
    assert gateway.settled()[0].response_id == response_id
    status, data = post(
        gateway, "/v1/responses", {"model": "ok", "input": "second", "previous_response_id": response_id}
    )
    assert status == 200, data
    said = [message["content"] for message in upstream.requests[-1]["messages"]]
    assert len(said) == 3
    assert "first" in str(said[0])
    assert TEXT in str(said[1])
    assert "second" in str(said[2])


def test_readiness_is_told_as_json(gateway: Running) -> None:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    connection.request("GET", "/ready")
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    assert response.status == 200
    assert told["ready"] is True
    assert told["ledger"]["dropped"] == 0


def test_a_fault_of_a_page_is_answered_and_counted(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("sk-secret-0123456789")

    monkeypatch.setattr(gateway.gateway, "readiness", broken)
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    connection.request("GET", "/ready")
    response = connection.getresponse()
    data = response.read()
    assert response.status == 500
    assert json.loads(data)["error"]["message"]
    assert b"secret" not in data
    connection.request("GET", "/metrics")
    assert b'turnout_internal_errors_total{kind="RuntimeError"}' in connection.getresponse().read()
    connection.close()
