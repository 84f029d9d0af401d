"""Stops the server: running turns may finish, then they are told that they cannot, and each is recorded either way."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
from types import FrameType

import uvicorn

LAST_WORDS_S = 2.0
"""How long turns that are cut may take to say so to their clients and to be recorded."""
_LOOK_S = 0.02

_log = logging.getLogger("turnout")


def on_hang_up(reload: Callable[[], None], server: "Server") -> None:
    """From now on SIGHUP reloads; sent because the terminal that the process belongs to was closed, it ends the server, unless
    the process was told to outlive that (`nohup`)."""
    attached = getsignal(SIGHUP) is not SIG_IGN and _has_terminal()

    def hung_up() -> None:
        if attached and not _has_terminal():
            server.handle_exit(SIGHUP, None)
        else:
            reload()

    asyncio.get_running_loop().add_signal_handler(SIGHUP, hung_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Server(uvicorn.Server):
    """A server that SIGTERM or SIGINT ends as asked for: with exit status 0.

    The first signal refuses new turns and lets running ones finish within `shutdown_s`; after that time, or at a second
    signal, they end with an error in their clients' dialects.
    """

    def __init__(self, config: uvicorn.Config, shutdown_s: float) -> None:
        super().__init__(config)
        self.shutdown_s = shutdown_s
        self.cut = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal has come."""
        self.cut = self.should_exit
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike the inherited one, does not raise the signals again once all is over: they have been obeyed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal(number, self.handle_exit) for number in (SIGINT, SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, let turns end, end those that do not, then close what they share."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        await self._wait(time.monotonic() + self.shutdown_s, stop_when_cut=True)
        if state.tasks:
            _log.warning("%d running turns are cut", len(state.tasks))
            for task in list(state.tasks):
                task.cancel()
            await self._wait(time.monotonic() + LAST_WORDS_S)
        for connection in list(state.connections):
            # Whoever still has not read its answer will not: this ends the wait for it.
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        await self._wait(time.monotonic() + LAST_WORDS_S)
        await self.lifespan.shutdown()

    async def _wait(self, until: float, stop_when_cut: bool = False) -> None:
        """Wait for the running turns to end and their bytes to be taken."""
        state = self.server_state
        while state.tasks or state.connections:
            if time.monotonic() >= until or (stop_when_cut and self.cut):
                return
            await asyncio.sleep(_LOOK_S)
