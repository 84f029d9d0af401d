"""The end of a gateway's process: turns finish or say that they cannot, and what was acknowledged is in the ledger."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faulty import TEXT, FaultyUpstream
from tests.served import BODIES, Served, served

ERRORS = {"/v1/chat/completions": "error", "/v1/messages": "error", "/v1/responses": "response"}


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultyUpstream]:
    with FaultyUpstream() as server:
        yield server


def configuration(upstream: FaultyUpstream, shutdown_s: float) -> str:
    toml = [
        f'[server]\nshutdown_s = {shutdown_s}\n[upstreams.u]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\n'
    ]
    for kind in ("ok", "slow", "stall-head", "stall-body"):
        toml.append(f'[targets.{kind}]\nupstream = "u"\nmodel = "{kind}"\n')
        toml.append(f'[routes.{kind}]\ntype = "passthrough"\ntarget = "{kind}"\n')
    return "".join(toml)


def terminate(gateway: Served) -> None:
    gateway.process.send_signal(signal.SIGTERM)


def refused(gateway: Served) -> bool:
    """Whether new connections are refused, waited for."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        connection = gateway.connect()
        try:
            connection.connect()
        except ConnectionRefusedError:
            return True
        finally:
            connection.close()
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("stream", [False, True])
def test_running_turns_finish_and_new_ones_are_refused(upstream: FaultyUpstream, tmp_path: Path, stream: bool) -> None:
    with served(configuration(upstream, 20), tmp_path) as gateway:
        running = {path: gateway.begin(path, "slow", stream) for path in BODIES}
        gateway.wait_for_turns(3)
        terminate(gateway)
        assert refused(gateway)
        ids = set()
        for connection in running.values():
            response = connection.getresponse()
            assert response.status == 200
            assert b"well" in response.read()
            ids.add(response.headers["x-turnout-turn"])
        assert gateway.process.wait(15) == 0
        turns = gateway.turns()
        assert set(turns) == ids
        assert {turn.ended for turn in turns.values()} == {"ok"}
        assert "Traceback" not in gateway.log()


@pytest.mark.parametrize("how", ["deadline", "second signal"])
def test_turns_that_do_not_end_are_cut_in_their_dialect_and_recorded(
    upstream: FaultyUpstream, tmp_path: Path, how: str
) -> None:
    with served(configuration(upstream, 0.3 if how == "deadline" else 60), tmp_path) as gateway:
        streams = {path: gateway.begin(path, "stall-body", stream=True) for path in BODIES}
        waiting = {path: gateway.begin(path, "stall-head") for path in BODIES}
        gateway.wait_for_turns(6)
        opened = {path: connection.getresponse() for path, connection in streams.items()}
        firsts = {path: response.readline() for path, response in opened.items()}
        assert all(firsts.values())
        terminate(gateway)
        if how == "second signal":
            assert refused(gateway)
            terminate(gateway)
        for path, response in opened.items():
            text = (firsts[path] + response.read()).decode()
            events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
            assert ERRORS[path] in events[-1]
            assert "shutting down" in json.dumps(events[-1])
        for path, connection in waiting.items():
            answer = connection.getresponse()
            body = json.loads(answer.read())
            # Messages calls an overload 529.
            assert answer.status in (503, 529), path
            assert "shutting down" in body["error"]["message"]
        assert gateway.process.wait(15) == 0
        turns = gateway.turns().values()
        assert (
            sorted((turn.ended, turn.error) for turn in turns)
            == [("cut", "shutdown")] * 3 + [("error", "shutdown")] * 3
        )
        assert "Traceback" not in gateway.log()


def test_a_client_that_does_not_read_cannot_hold_the_process(upstream: FaultyUpstream, tmp_path: Path) -> None:
    with served(configuration(upstream, 0.3), tmp_path) as gateway:
        for path in BODIES:
            gateway.begin(path, "stall-body", stream=True)
        half = gateway.connect()
        half.connect()
        half.sock.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        gateway.wait_for_turns(4)
        terminate(gateway)
        assert gateway.process.wait(15) == 0
        assert len(gateway.turns()) == 4
        half.close()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_every_acknowledged_turn_is_in_the_ledger_after(upstream: FaultyUpstream, tmp_path: Path, end: int) -> None:
    acknowledged: set[str] = set()
    with served(configuration(upstream, 20), tmp_path) as gateway:

        def client(number: int) -> None:
            path = list(BODIES)[number % 3]
            while True:
                try:
                    status, headers, data = gateway.ask(path, "ok", stream=number % 2 == 0)
                except (OSError, ConnectionError):
                    return
                assert status == 200
                assert TEXT.split()[0].encode() in data
                acknowledged.add(headers["x-turnout-turn"])

        threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 40:
            time.sleep(0.01)
        gateway.process.send_signal(end)
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert gateway.process.wait(15) == 0
        assert acknowledged <= set(gateway.turns())


def test_a_killed_process_loses_at_most_what_it_had_not_flushed(upstream: FaultyUpstream, tmp_path: Path) -> None:
    with served(configuration(upstream, 20), tmp_path) as gateway:
        flushed = {gateway.ask(path, "ok")[1]["x-turnout-turn"] for path in [*BODIES] * 3}
        until = time.monotonic() + 10
        while not flushed <= set(gateway.turns()):
            assert time.monotonic() < until, "the flush interval is 0.2 s"
            time.sleep(0.05)
        late = {gateway.ask(path, "ok")[1]["x-turnout-turn"] for path in BODIES}
        gateway.process.kill()
        gateway.process.wait(10)
        assert flushed <= set(gateway.turns()) <= flushed | late
    with served(configuration(upstream, 20), tmp_path) as again:
        new = again.ask("/v1/messages", "ok")[1]["x-turnout-turn"]
        terminate(again)
        assert again.process.wait(15) == 0
        assert flushed | {new} <= set(again.turns())
