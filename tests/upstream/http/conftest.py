"""Tests here are coroutines. Each runs on both event loops and must leave no task and no file descriptor behind."""

import asyncio
import inspect
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
FD_FOLDER = Path("/proc/self/fd" if Path("/proc/self/fd").exists() else "/dev/fd")


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> tuple[bytes, bytes]:
        """Head and body of the next request; IncompleteReadError when the client hangs up."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return head, await self.reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def drip(self, data: bytes) -> None:
        """One byte a segment."""
        for index in range(len(data)):
            await self.send(data[index : index + 1])
            await asyncio.sleep(0)

    async def gone(self) -> None:
        """Returns once the client has closed."""
        while await self.reader.read(65536):
            pass

    def reset(self) -> None:
        """Closes with a RST."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.writer.transport.abort()


class Server:
    """A raw TCP (or TLS) server on 127.0.0.1 whose every connection is `handle`d by a script."""

    def __init__(
        self, handle: Callable[[Peer], Awaitable[None]], context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        self._handle = handle
        self._context = context
        self._host = host
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        self.open = 0
        self._change = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._run, self._host, 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        self.open += 1
        self._change.set()
        try:
            await self._handle(Peer(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self._change.set()
            self._tasks.discard(task)
            if task.cancelling():
                writer.transport.abort()
            else:
                writer.close()

    async def empty(self) -> None:
        """Returns once every connection has ended."""
        while self.open:
            self._change.clear()
            await self._change.wait()

    async def holds(self, count: int) -> None:
        """Returns once this many connections are open."""
        while self.open != count:
            self._change.clear()
            await self._change.wait()


@pytest.fixture
def serve() -> type[Server]:
    return Server


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "loop" in metafunc.fixturenames:
        metafunc.parametrize("loop", LOOPS)


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> None:
    if inspect.iscoroutinefunction(obj) and name.startswith("test"):
        pytest.mark.usefixtures("loop")(obj)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    with asyncio.Runner(loop_factory=LOOPS[pyfuncitem.callspec.params["loop"]]) as runner:
        runner.run(_leak_nothing(pyfuncitem.obj, arguments))
    return True


async def _leak_nothing(test: Callable[..., Awaitable[None]], arguments: dict[str, Any]) -> None:
    before = open_files()
    async with asyncio.timeout(20):
        await test(**arguments)
    for _ in range(1000):
        if open_files() <= before and len(asyncio.all_tasks()) == 1:
            break
        await asyncio.sleep(0.001)
    assert open_files() <= before
    assert asyncio.all_tasks() == {asyncio.current_task()}


def open_files() -> int:
    """Open sockets; where the system does not tell sockets from other files, all files."""
    names = []
    for link in FD_FOLDER.iterdir():
        try:
            names.append(str(link.readlink()))
        except OSError:  # No links on this system, or the one that lists this folder.
            names.append("socket:?")
    return sum(name.startswith("socket:") for name in names)
