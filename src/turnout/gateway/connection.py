"""A client's connection: uvicorn's, with a bound on what it takes in before there is a request to answer."""

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
        super()._start_asgi_task(cycle, app)

    def _refuse_head(self) -> None:
        logging.getLogger("turnout").warning("a request was refused: its headers are larger than 64 KiB")
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_REFUSAL)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Agents try WebSocket first and fall back by themselves: nothing to warn of."""
