"""Responses that clients continue by id (`previous_response_id`): whose they are, what they said, and where they are kept.

The target that issued an id can continue it natively; any other target is given the transcript instead.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from msgspec import Raw, Struct

from turnout.conversation import Message, Part
from turnout.routing.core import Lane, TargetName


class StoredResponse(Struct, frozen=True):
    """One response of ours. `messages`: the whole conversation up to and including the reply. `native`: the issuing target
    keeps it too, so it can continue it by id. `items`: the output items the client got, by their ids."""

    id: str
    lane: Lane
    target: TargetName
    messages: tuple[Message, ...]
    system: tuple[Part, ...]
    native: bool
    size: int
    items: dict[str, Raw] = {}


class ResponseStore(Protocol):
    """Where responses are kept: by their id, and by the id of each of their items. `keep` never fails; `find` raises
    ClientError where it cannot tell."""

    async def find(self, some_id: str) -> StoredResponse | None: ...

    async def keep(self, response: StoredResponse) -> None: ...


class MemoryResponses:
    """Responses by id, in this process; the least recently used go when there are too many or they are too large.

    `ttl_s`: how long an id can be continued. `max_bytes`: bound on the request bytes the transcripts came from.
    """

    def __init__(
        self,
        *,
        ttl_s: float = 24 * 3600.0,
        max_count: int = 10_000,
        max_bytes: int = 64 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept: OrderedDict[str, tuple[float, StoredResponse]] = OrderedDict()
        self._of_item: dict[str, str] = {}
        self._bytes = 0
        self._ttl_s = ttl_s
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._clock = clock

    def __len__(self) -> int:
        return len(self._kept)

    async def find(self, some_id: str) -> StoredResponse | None:
        """The response of this id, or with an item of this id; None when it is unknown or too old."""
        response_id = self._of_item.get(some_id, some_id)
        entry = self._kept.get(response_id)
        if entry is None:
            return None
        if self._clock() - entry[0] > self._ttl_s:
            self._remove(response_id)
            return None
        self._kept.move_to_end(response_id)
        return entry[1]

    async def keep(self, response: StoredResponse) -> None:
        """Remember a response; evicts the least recently used beyond the bounds, never refuses."""
        if response.id in self._kept:
            self._remove(response.id)
        self._kept[response.id] = (self._clock(), response)
        self._of_item.update(dict.fromkeys(response.items, response.id))
        self._bytes += response.size
        while len(self._kept) > self._max_count or (self._bytes > self._max_bytes and len(self._kept) > 1):
            self._remove(next(iter(self._kept)))

    def _remove(self, response_id: str) -> None:
        _, gone = self._kept.pop(response_id)
        for item in gone.items:
            if self._of_item.get(item) == response_id:
                del self._of_item[item]
        self._bytes -= gone.size
