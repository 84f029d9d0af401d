"""The connections to one origin: who may open one, who may have one that is open, and who waits."""

import asyncio
from collections import deque
from contextlib import suppress

from turnout.errors import UpstreamError
from turnout.upstream.http.connection import Connection
from turnout.upstream.http.deadlines import Deadlines
from turnout.upstream.http.proxy import Proxy


class Pool:
    """At most `limit` connections, opening, busy and idle together; each holds one slot.

    Idle ones are lent last in, first out, so that those too many grow old and expire. Who finds neither an idle one
    nor a free slot waits, first come first served, for either.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        origin: str,
        limit: int,
        keepalive_s: float,
        proxy: Proxy | None,
        connections: set[Connection],
        deadlines: Deadlines,
    ) -> None:
        self._loop = loop
        self._limit = limit
        self._keepalive_s = keepalive_s
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._slots_taken = 0
        self._kept = True
        self.origin = origin
        self.proxy = proxy
        self.connections = connections
        self.deadlines = deadlines
        self.emptied: asyncio.Event | None = None
        """Set, where there is one, when the last of `connections` is gone."""

    def reuse(self) -> Connection | None:
        """The connection that became idle last, if it is not too old."""
        if not self._idle:
            return None
        connection = self._idle.pop()
        if connection.deadline > self._loop.time():
            return connection
        connection.close()
        for older in tuple(self._idle):
            older.close()
        return None

    async def slot(self, *, fresh: bool, front: bool, within_s: float | None) -> Connection | None:
        """A connection that another exchange has just left (perhaps closed since), or None: a free slot, to be filled
        or given back with `free`. `fresh` never gives a used connection; `front` jumps the queue."""
        if self._slots_taken < self._limit:
            self._slots_taken += 1
            return None
        if fresh and self._idle:
            self._take_slot_of(self._idle[0])
            return None
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        if front:
            self._waiting.appendleft(waiter)
        else:
            self._waiting.append(waiter)
        try:
            async with asyncio.timeout(within_s):
                given = await waiter
        except BaseException as problem:
            self._withdraw(waiter)
            if isinstance(problem, TimeoutError):
                text = f"{self.origin}: all {self._limit} connections are busy for {within_s} s (pool)"
                error = UpstreamError("timeout", text)
                error.sent = False
                raise error from None
            raise
        if fresh and given is not None and not given.closed:
            self._take_slot_of(given)
            return None
        return given

    def put(self, connection: Connection) -> None:
        """Lends a connection to the next in line, or keeps it for later."""
        connection.rest(self._keepalive_s)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if self._kept:
            self._idle.append(connection)
        else:
            connection.close()

    def leave(self, connection: Connection) -> None:
        """A connection is closed."""
        with suppress(ValueError):
            self._idle.remove(connection)
        if connection.holds_slot:
            connection.holds_slot = False
            self.free()

    def free(self) -> None:
        """Gives a slot to the next in line, or back."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._slots_taken -= 1

    def keep(self, kept: bool, limit: int) -> None:
        """Whether connections are kept between exchanges from now on, and how many there may be. Where they are not, idle ones
        are closed now, and busy ones as soon as nobody waits for them."""
        self._kept, self._limit = kept, limit
        if not kept:
            for connection in tuple(self._idle):
                connection.close()

    def shut(self) -> None:
        """Nobody waits any longer."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(UpstreamError("unavailable", f"{self.origin}: the client was closed (pool)"))

    def _take_slot_of(self, connection: Connection) -> None:
        connection.holds_slot = False
        connection.close()

    def _withdraw(self, waiter: asyncio.Future[Connection | None]) -> None:
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            given = waiter.result()  # Given in the moment of leaving: pass it on.
            if given is None:
                self.free()
            elif not given.closed:
                self.put(given)
        else:
            with suppress(ValueError):
                self._waiting.remove(waiter)
