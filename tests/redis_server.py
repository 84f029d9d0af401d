"""A Redis server of the tests' own, on a free port of this machine, that can be stopped, frozen and started again."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest


class RedisServer:
    """One server and its folder. `url` is the same over restarts, which begin empty."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        keeps_nothing = ("--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", str(folder))
        self._command = [program, "--port", str(self.port), *keeps_nothing, *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as probe:
                    probe.settimeout(5)
                    probe.sendall(b"PING\r\n")
                    if probe.recv(64):
                        return
            except OSError:
                assert self._process.poll() is None, "redis-server ended at once"
                assert time.monotonic() < until, "redis-server does not answer"
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hold its connections without answering."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def program() -> str:
    """The server's program. Skips the test where there is none; fails it in CI."""
    found = shutil.which("redis-server")
    if found is None:
        message = "redis-server is not installed (Debian: apt-get install redis-server)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found
