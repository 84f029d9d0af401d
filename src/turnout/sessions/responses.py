"""Responses that clients continue by id (`previous_response_id`): whose they are, what they said, and where they are kept.

The target that issued an id can continue it natively; any other target is given the transcript instead.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec
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
    items: dict[str, Raw] = {}


class _Kept(NamedTuple):
    at: float
    text: bytes
    items: tuple[str, ...]


_JSON = msgspec.json.Encoder()
_READ = msgspec.json.Decoder(StoredResponse)


class ResponseStore(Protocol):
    """Where responses are kept: by their id, and by the id of each of their items. `keep` never fails; `find` raises
    ClientError where it cannot tell."""

    async def find(self, some_id: str) -> StoredResponse | None: ...

    async def keep(self, response: StoredResponse) -> None: ...


class MemoryResponses:
    """Responses by id, in this process; the least recently used go when there are too many or they are too large.

    Kept as JSON: as objects a transcript takes several times the room. `ttl_s`: how long an id can be continued. `max_bytes`:
    bound on the JSON of all of them.
    """

    def __init__(
        self,
        *,
        ttl_s: float = 24 * 3600.0,
        max_count: int = 10_000,
        max_bytes: int = 16 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
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
        if self._clock() - entry.at > self._ttl_s:
            self._remove(response_id)
            return None
        self._kept.move_to_end(response_id)
        return _READ.decode(entry.text)

    async def keep(self, response: StoredResponse) -> None:
        """Remember a response; evicts the least recently used beyond the bounds, never refuses."""
        if response.id in self._kept:
            self._remove(response.id)
        try:
            text = _JSON.encode(response)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return  # something in it that JSON cannot hold: it cannot be continued, but it has been answered
        self._kept[response.id] = _Kept(self._clock(), text, tuple(response.items))
        self._of_item.update(dict.fromkeys(response.items, response.id))
        self._bytes += len(text)
        while len(self._kept) > self._max_count or (self._bytes > self._max_bytes and len(self._kept) > 1):
            self._remove(next(iter(self._kept)))

    def _remove(self, response_id: str) -> None:
        gone = self._kept.pop(response_id)
        for item in gone.items:
            if self._of_item.get(item) == response_id:
                del self._of_item[item]
        self._bytes -= len(gone.text)
