"""A client's connection: uvicorn's, with a bound on what it takes in before there is a request to answer."""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 64 * 1024
"""Bytes of a request's head that may be waiting for its end. One that is whole in a single read is taken as it is."""
_TOO_LARGE = b"the request headers are larger than 64 KiB"
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_TOO_LARGE), _TOO_LARGE)
)


class Joining:
    """The transport as one response sees it: the head waits for the body, so that both go out in one system call.

    It waits no longer than until the loop's next turn.
    """

    __slots__ = ("_begun", "_held", "_loop", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._begun = False
        self._held = b""
        self._timer: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Send bytes; the first ones a little later."""
        if not self._begun:
            self._begun = True
            self._held = data
            self._timer = self._loop.call_soon(self._flush)
        elif self._held:
            if self._timer is not None:
                self._timer.cancel()
            held, self._held = self._held, b""
            self._transport.write(held + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send what waits and close."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closing."""
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    _head_size = 0
    _served: Any = None

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        super().data_received(data)
        cycle = self.cycle
        if self.scope is None or (cycle is not None and cycle.scope is self.scope):
            self._head_size = 0
        else:
            self._head_size += len(data)
            if self._head_size > HEAD_LIMIT:
                self._refuse_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone. With requests waiting in line, uvicorn tells the last of them, not the one being served."""
        served = self._served
        super().connection_lost(exc)
        if served is not None and served is not self.cycle and not served.response_complete:
            served.disconnected = True
            served.message_event.set()
        self._served = None

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._served = cycle
        cycle.transport = Joining(self.transport, self.loop)
        super()._start_asgi_task(cycle, app)

    def _refuse_head(self) -> None:
        logging.getLogger("turnout").warning("a request was refused: its headers are larger than 64 KiB")
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_REFUSAL)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Agents try WebSocket first and fall back by themselves: nothing to warn of."""
