"""Time limits of an exchange, and the one timer that enforces them for all connections of a client."""

import asyncio
from collections.abc import Set as AbstractSet
from math import inf
from typing import Protocol

import msgspec

# Deadlines fire at most this late. It bounds the sweeps to 20 a second however the deadlines are spread.
GRAIN_S = 0.05


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds each phase of an exchange may take; None waits for ever."""

    connect_s: float = 10.0
    """TCP, proxy tunnel and TLS together."""
    first_byte_s: float | None = 300.0
    """From the last byte of the request written to the complete response head."""
    idle_s: float | None = 120.0
    """Between two bytes of the body while somebody waits for them."""
    write_s: float | None = 60.0
    """Without progress in writing the request."""
    pool_s: float | None = 30.0
    """In the queue for one of the `limit_per_host` connections."""


class Timed(Protocol):
    """What the sweep looks at."""

    deadline: float

    def expire(self) -> None: ...


class Deadlines:
    """One timer for all connections: armed for the earliest deadline, it looks at all of them when it fires.

    A deadline later than the armed one costs a comparison, so a request sets its own without touching the event
    loop: the limits are long, and a connection that was armed for is usually long past its deadline's cause.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, watched: AbstractSet[Timed]) -> None:
        self._loop = loop
        self._watched = watched
        self._timer: asyncio.TimerHandle | None = None
        self.armed_for = inf

    def arm(self, deadline: float) -> None:
        """Makes sure that a sweep happens at `deadline`; callers skip the call when it is not before `armed_for`."""
        if self._timer is not None:
            self._timer.cancel()
        self.armed_for = max(deadline, self._loop.time() + GRAIN_S)
        self._timer = self._loop.call_at(self.armed_for, self._sweep)

    def stop(self) -> None:
        """Cancels the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self.armed_for = None, inf

    def _sweep(self) -> None:
        self._timer, self.armed_for = None, inf
        now, earliest = self._loop.time(), inf
        for timed in tuple(self._watched):
            if timed.deadline <= now:
                timed.expire()
            elif timed.deadline < earliest:
                earliest = timed.deadline
        # Expiring one may hand its slot on and so have armed the timer again already.
        if earliest < self.armed_for:
            self.arm(earliest)
