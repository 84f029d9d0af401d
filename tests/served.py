"""A gateway served by a process of its own, as operators run it, for tests of what only a process can show."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord

SRC = Path(__file__).parent.parent / "src"
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
    "/v1/responses": {"input": "hi"},
}
"""A small request for each dialect's path, without `model`."""


class Served:
    """The process, its address, and what it has written."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.folder = folder
        self.connections: list[http.client.HTTPConnection] = []

    def connect(self) -> http.client.HTTPConnection:
        """A new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.connections.append(connection)
        return connection

    def begin(self, path: str, model: str, stream: bool = False) -> http.client.HTTPConnection:
        """Send a small request; its answer is still to be read."""
        connection = self.connect()
        body = json.dumps({**BODIES[path], "model": model, "stream": stream})
        connection.request("POST", path, body, {"content-type": "application/json"})
        return connection

    def ask(self, path: str, model: str, stream: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The answer to a small request."""
        connection = self.begin(path, model, stream)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, data

    def in_flight(self) -> float:
        """How many turns are being served."""
        connection = self.connect()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(next(t for t in text.splitlines() if t.startswith("turnout_requests_in_flight ")).split()[1])

    def wait_for_turns(self, count: int) -> None:
        """Wait until so many turns are being served."""
        until = time.monotonic() + 10
        while self.in_flight() != count:
            assert time.monotonic() < until
            time.sleep(0.01)

    def stop(self) -> None:
        """End the process as an operator would; its ledger is whole then."""
        for connection in self.connections:
            connection.close()
        self.process.terminate()
        assert self.process.wait(30) == 0, self.log()

    def log(self) -> str:
        """What the process has written to stderr."""
        return (self.folder / "stderr").read_text()

    def turn(self, turn_id: str) -> TurnRecord | None:
        """One turn of the ledger."""
        ledger = Ledger.read(f"sqlite:///{self.folder / 'turnout.db'}")
        try:
            return ledger.turn(turn_id)
        finally:
            ledger.close()

    def turns(self) -> dict[str, TurnRecord]:
        """The turns in the ledger by id. Raises when one is there twice."""
        found, before = [], ""
        ledger = Ledger.read(f"sqlite:///{self.folder / 'turnout.db'}")
        try:
            while True:
                page = ledger.turns(limit=500, before=before)
                found += page.turns
                before = page.next
                if not before:
                    break
        finally:
            ledger.close()
        by_id = {turn.id: turn for turn in found}
        assert len(by_id) == len(found)
        return by_id


@contextmanager
def served(toml: str, folder: Path, *, env: dict[str, str] | None = None, capture: str = "signals") -> Iterator[Served]:
    """Run `turnout serve` with the configuration `toml`; its ledger and its stderr lie in `folder`."""
    file = folder / "turnout.toml"
    ledger = f'[ledger]\nurl = "sqlite:///{folder / "turnout.db"}"\ncapture = "{capture}"\nflush_interval_s = 0.2\n'
    file.write_text(f"{toml}\n{ledger}")
    command = [sys.executable, "-m", "turnout", "serve", str(file), "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(SRC), **(env or {})}
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "stderr").read_text()
        gateway = Served(process, int(json.loads(line)["url"].rpartition(":")[2]), folder)
        until = time.monotonic() + 30
        while True:
            try:
                gateway.in_flight()
                break
            except OSError:
                assert process.poll() is None, gateway.log()
                assert time.monotonic() < until
                time.sleep(0.02)
        yield gateway
        for connection in gateway.connections:
            connection.close()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
