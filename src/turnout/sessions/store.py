"""What routers remember of a lane between turns: the protocol of stores, the rules they share, and the store in memory.

A router's state is a pure fold of the events its decisions left. The store keeps, per lane, snapshots of the folded states
at positions of the conversation. A turn reads the newest snapshot whose position is a proper prefix of its conversation, so
a client's retry of a turn counts once, and a rewound or forked conversation falls back to the common prefix by itself.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Part, Reasoning, Text, ToolCall, ToolResult
from turnout.routing.core import Lane, Placed, State

SNAPSHOTS_PER_LANE = 32
RECENT = 4
"""Newest snapshots that keep states marked `recent`."""


class Loaded(Struct, frozen=True):
    """States of a lane as a turn reads them, by `place/StateName`, and the version they were read at.

    `latest`: the states the lane was left with last, whatever conversation that was: for accounts of what changed, never for
    decisions.
    """

    states: Mapping[str, State] = {}
    version: int = 0
    latest: Mapping[str, State] = {}


_NOTHING = Loaded()


class SessionStore(Protocol):
    """Where lanes' states live. No lock is held between `load` and `commit`; a commit that finds a newer version folds its
    events over the newer states. `trouble`: what went wrong, counted by operation and kind (for metrics)."""

    trouble: Mapping[tuple[str, ...], float]

    @property
    def reachable(self) -> bool:
        """Whether it answered when it was last asked."""

    async def look(self) -> bool:
        """Whether it answers now."""

    async def load(self, lane: Lane, conversation: Conversation, compacted: bool) -> Loaded: ...

    async def commit(
        self, lane: Lane, conversation: Conversation, compacted: bool, events: Sequence[Struct]
    ) -> Mapping[str, State]: ...

    async def close(self) -> None: ...


class Snapshot(Struct, frozen=True):
    """States after the turn whose conversation had `count` messages and whose last messages digest to `mark`."""

    count: int
    mark: bytes
    states: dict[str, State]


class Positioned(Protocol):
    """A snapshot in any form: where in a conversation it stands."""

    @property
    def count(self) -> int: ...
    @property
    def mark(self) -> bytes: ...


P = TypeVar("P", bound=Positioned)


class _LaneMemory:
    __slots__ = ("snapshots", "used_at", "version")

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.version = 0
        self.used_at = 0.0


class MemoryStore:
    """A store in this process. `ttl_s`: idle lanes are forgotten after it. `max_lanes`: the least recently used go first."""

    def __init__(
        self, *, ttl_s: float = 24 * 3600.0, max_lanes: int = 50_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.trouble: Mapping[tuple[str, ...], float] = {}
        self._lanes: OrderedDict[str, _LaneMemory] = OrderedDict()
        self._ttl_s = ttl_s
        self._max_lanes = max_lanes
        self._clock = clock

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def reachable(self) -> bool:
        """A store in this process always is."""
        return True

    async def look(self) -> bool:
        """A store in this process always answers."""
        return True

    async def load(self, lane: Lane, conversation: Conversation, compacted: bool) -> Loaded:
        """The lane's states at this conversation's position."""
        memory = self._find(lane.key)
        if memory is None:
            return _NOTHING
        snapshot = newest(memory.snapshots, conversation, compacted)
        latest = memory.snapshots[-1].states if memory.snapshots else {}
        return Loaded(snapshot.states if snapshot else {}, memory.version, latest)

    async def commit(
        self, lane: Lane, conversation: Conversation, compacted: bool, events: Sequence[Struct]
    ) -> Mapping[str, State]:
        """Fold `events` into the states at this conversation's position and keep the result. A lane without identity keeps
        nothing."""
        key = lane.key
        if not key or not events:
            return {}
        memory = self._find(key)
        if memory is None:
            memory = self._lanes[key] = _LaneMemory()
            self._evict()
        memory.used_at = self._clock()
        snapshot = newest(memory.snapshots, conversation, compacted)
        states = folded(snapshot.states if snapshot else {}, events)
        added = Snapshot(len(conversation.messages), mark(conversation), states)
        memory.snapshots = kept(memory.snapshots, added, _lasting)
        memory.version += 1
        return states

    async def close(self) -> None:
        """Nothing to close."""

    def _find(self, key: str) -> _LaneMemory | None:
        memory = self._lanes.get(key)
        if memory is None:
            return None
        now = self._clock()
        if now - memory.used_at > self._ttl_s:
            del self._lanes[key]
            return None
        memory.used_at = now
        self._lanes.move_to_end(key)
        return memory

    def _evict(self) -> None:
        horizon = self._clock() - self._ttl_s
        while self._lanes:
            oldest = next(iter(self._lanes.values()))
            if len(self._lanes) <= self._max_lanes and (oldest.used_at >= horizon or not oldest.used_at):
                return
            self._lanes.popitem(last=False)


def newest(snapshots: Sequence[P], conversation: Conversation, compacted: bool) -> P | None:
    """The snapshot at the longest proper prefix of this conversation. After a compaction the history no longer matches
    anything, yet it is the same agent: the newest snapshot of a longer conversation counts."""
    total = len(conversation.messages)
    marks: dict[int, bytes] = {}
    found: P | None = None
    for snapshot in reversed(snapshots):
        count = snapshot.count
        if count < total and (found is None or count > found.count):
            if count not in marks:
                marks[count] = mark(conversation, count)
            if marks[count] == snapshot.mark:
                found = snapshot
    if found is None and compacted:
        # What the turn itself left, if this is a retry of it, is no longer than it is.
        return next((snapshot for snapshot in reversed(snapshots) if snapshot.count > total), None)
    return found


def kept(snapshots: Sequence[P], added: P, lasting: Callable[[P], P | None]) -> list[P]:
    """`snapshots` with `added` last, in place of an earlier one of the same position; at most `SNAPSHOTS_PER_LANE`. `lasting`: a
    snapshot without its `recent` states, None when nothing is left of it."""
    others = [s for s in snapshots if s.count != added.count or s.mark != added.mark]
    if len(others) >= RECENT:
        index = len(others) - RECENT
        left = lasting(others[index])
        others[index : index + 1] = [] if left is None else [left]
    return [*others, added][-SNAPSHOTS_PER_LANE:]


def _lasting(snapshot: Snapshot) -> Snapshot | None:
    states = {name: state for name, state in snapshot.states.items() if not state.recent}
    if len(states) == len(snapshot.states):
        return snapshot
    return Snapshot(snapshot.count, snapshot.mark, states) if states else None


def mark(conversation: Conversation, count: int | None = None) -> bytes:
    """A digest of what the last two of the first `count` messages say: with the count, where in a conversation we are.

    How it is wrapped does not count: clients move their cache marks along with the conversation, and drop old reasoning.
    """
    upto = len(conversation.messages) if count is None else count
    digest = hashlib.blake2b(digest_size=12)
    for index in range(max(0, upto - 2), upto):
        message = conversation.messages[index]
        digest.update(message.role.encode())
        for part in message.parts:
            digest.update(_said(part).encode("utf-8", "surrogatepass"))
    return digest.digest()


def _said(part: Part) -> str:
    if isinstance(part, Text):
        return f"\x1f{part.text}"
    if isinstance(part, ToolResult):
        return f"\x1f{part.call_id}\x1f{part.text}"
    if isinstance(part, ToolCall):
        return f"\x1f{part.id}\x1f{part.name}\x1f{part.arguments}"
    return "" if isinstance(part, Reasoning) else f"\x1f{type(part).__name__}"


def folded(states: Mapping[str, State], events: Sequence[Struct]) -> dict[str, State]:
    """`states` after `events`. An event belongs to every state class that lists it; unknown events are ignored."""
    after = dict(states)
    for event in events:
        place, inner = (event.place, event.event) if isinstance(event, Placed) else ("", event)
        for kind in state_kinds(type(inner)):
            key = f"{place}/{kind.__name__}"
            state: Any = after.get(key)
            after[key] = (kind() if state is None else state).after(inner)
    return after


def state_kinds(event: type[Struct]) -> tuple[type[State], ...]:
    """The state classes that are folded from this kind of event."""
    found = _KINDS.get(event)
    if found is None:
        found = _KINDS[event] = tuple(k for k in _subclasses(State) if event in k.events)
    return found


_KINDS: dict[type[Struct], tuple[type[State], ...]] = {}


def state_class(name: str) -> type[State] | None:
    """The state class of this name, the last defined of several; None when this process knows none."""
    return next((kind for kind in reversed(_subclasses(State)) if kind.__name__ == name), None)


def revived(states: Mapping[str, Any]) -> dict[str, State]:
    """States that were written as JSON, or as they are. Those of a class that is not known are left out."""
    found: dict[str, State] = {}
    for key, value in states.items():
        kind = state_class(key.rsplit("/", 1)[-1])
        if kind is not None:
            found[key] = value if isinstance(value, kind) else msgspec.convert(value, kind)
    return found


def _subclasses(kind: type[State]) -> list[type[State]]:
    found: list[type[State]] = []
    for child in kind.__subclasses__():
        found += [child, *_subclasses(child)]
    return found
