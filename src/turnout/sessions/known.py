"""What this gateway knows of lanes that it has read and written, for when the server that keeps them is away."""

import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

KEPT_BYTES = 16 << 20
_OVERHEAD = 300
"""Bytes that an entry takes beside its body, about."""


class Entry(Struct, frozen=True):
    """A lane as last read or written. `version`: of the server's value, 0 when it had none. `body`: its snapshots as JSON.
    `outage`: which outage of the server was the last when it was sure to hold all this; -1: it never did."""

    version: int
    body: bytes
    outage: int
    used_at: float


class Known:
    """Lanes by name, the longest unused forgotten first, within `KEPT_BYTES`; idle ones after `ttl_s`."""

    def __init__(self, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._bytes = 0
        self._ttl_s = ttl_s
        self._clock = clock

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, name: bytes) -> Entry | None:
        """What is known of a lane."""
        entry = self._entries.get(name)
        if entry is not None and self._clock() - entry.used_at > self._ttl_s:
            self.forget(name)
            return None
        return entry

    def keep(self, name: bytes, version: int, body: bytes, outage: int) -> None:
        """Know a lane so from now on."""
        before = self._entries.pop(name, None)
        self._bytes += len(body) - len(before.body) if before is not None else len(body) + _OVERHEAD
        self._entries[name] = Entry(version, body, outage, self._clock())
        while self._bytes > KEPT_BYTES and self._entries:
            self.forget(next(iter(self._entries)))

    def forget(self, name: bytes) -> None:
        """Know nothing of a lane."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._bytes -= len(entry.body) + _OVERHEAD
