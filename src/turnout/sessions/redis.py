"""What routers remember of a lane, in Redis, for several gateways that serve the same clients.

One value per lane: its version in decimal, a line feed, and its snapshots as JSON. A write goes through only while the version
is the one it was folded from; else the server hands back the newer value and the events are folded over that, without calling
anything again. No lock is ever held. States are kept by the name of their class; what this process does not know, or cannot
read, is forgotten. While the server is away a gateway goes on with what it last knew of the lanes it served, and hands it in at
their next turn once the server is back. Redis 6.2 or newer.
"""

import asyncio
import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from redis.exceptions import NoScriptError

from turnout.conversation import Conversation
from turnout.routing.core import Lane, State
from turnout.sessions.address import Address
from turnout.sessions.known import Entry, Known
from turnout.sessions.link import Away, Link
from turnout.sessions.store import SNAPSHOTS_PER_LANE, Loaded, folded, kept, mark, newest, state_class

_ATTEMPTS = 20
"""Of several that write one lane at once, one goes through in every round."""

# KEYS: the lane. ARGV: the version it was read at (0: none), the new value, its time to live in ms.
# Returns nil when written, else the value that is newer ("": none).
_SCRIPT = b"""
local now = redis.call('GET', KEYS[1])
local version = now and string.match(now, '^([1-9]%d*)\\n') or '0'
if #version > 18 then version = '0' end
if version ~= ARGV[1] then return now or '' end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return false
"""
_SCRIPT_NAME = hashlib.sha1(_SCRIPT, usedforsecurity=False).hexdigest()


class _Written(Struct, frozen=True, array_like=True):
    """A snapshot as it is written. `states`: JSON of the states by `place/StateName`."""

    count: int
    mark: bytes
    states: Raw


_READ = msgspec.json.Decoder(list[_Written])
_READ_STATES = msgspec.json.Decoder(dict[str, Raw])
_JSON = msgspec.json.Encoder()
_NO_STATES = Raw(b"{}")
_NOTHING = b"[]"
_HEAD = re.compile(rb"([1-9]\d{0,17})\n")


class RedisStore:
    """A store in a Redis server, shared by all gateways that use the same one.

    `ttl_s`: idle lanes are forgotten after it. `within_s`: longest that one command may take. While the server is away `load`
    finds what this process last knew of the lane, and `commit` keeps it here after about a second; both are counted in `trouble`,
    and neither ever raises for it.
    """

    def __init__(self, address: Address, *, ttl_s: float = 24 * 3600.0, within_s: float | None = None) -> None:
        self.link = Link(address, within_s)
        self.trouble: Mapping[tuple[str, ...], float] = self.link.trouble
        self._ttl_ms = max(1, int(ttl_s * 1000))
        self._known = Known(ttl_s)

    @property
    def reachable(self) -> bool:
        """Whether the server answered when it was last asked."""
        return self.link.reachable

    async def look(self) -> bool:
        """Whether the server answers now."""
        return await self.link.look()

    async def load(self, lane: Lane, conversation: Conversation, compacted: bool) -> Loaded:
        """The lane's states at this conversation's position."""
        if not lane.key:
            return Loaded()
        name = lane_name(lane)
        entry = self._known.find(name)
        try:
            value: bytes | None = await self.link.call("load", b"GETEX", name, b"PX", self._ttl_ms)
        except Away:
            if entry is None:
                return Loaded()
            version, snapshots = entry.version, self._snapshots(entry.body)
        else:
            version, body = self._parted(value or b"")
            outage = self.link.outages
            if entry is not None and entry.outage != outage:
                body, outage = self._caught_up(body, entry), entry.outage
            if body == _NOTHING:
                self._known.forget(name)
            else:
                self._known.keep(name, version, body, outage)
            snapshots = self._snapshots(body)
        snapshot = newest(snapshots, conversation, compacted)
        states = self._states(snapshot.states) if snapshot else {}
        if not snapshots or snapshot is snapshots[-1]:
            return Loaded(states, version, states)
        return Loaded(states, version, self._states(snapshots[-1].states))

    async def commit(
        self, lane: Lane, conversation: Conversation, compacted: bool, events: Sequence[Struct]
    ) -> Mapping[str, State]:
        """Fold `events` into the states at this conversation's position and keep the result. A lane without identity keeps
        nothing."""
        if not lane.key or not events:
            return {}
        name = lane_name(lane)
        here = mark(conversation)
        entry = self._known.find(name)
        version, body = (entry.version, entry.body) if entry is not None else (0, _NOTHING)
        states: dict[str, State] = {}
        for attempt in range(_ATTEMPTS):
            snapshots = self._snapshots(body)
            snapshot = newest(snapshots, conversation, compacted)
            states = folded(self._states(snapshot.states) if snapshot else {}, events)
            added = _Written(len(conversation.messages), here, self._packed(states))
            written = _JSON.encode(kept(snapshots, added, _lasting))
            # Versions begin anywhere, so that a lane forgotten meanwhile is not taken for the one that was read.
            following = version + 1 if version else random.getrandbits(48) + 1
            try:
                newer = await self._write(name, version, b"%d\n%b" % (following, written))
            except Away:
                self.link.count("commit", "given_up")
                self._known.keep(name, version, written, -1)
                return states
            if newer is None:
                self._known.keep(name, following, written, self.link.outages)
                return states
            self.link.count("commit", "conflict")
            version, body = self._parted(newer)
            if entry is not None and entry.outage != self.link.outages:
                body = self._caught_up(body, entry)
            if attempt:
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
        self.link.count("commit", "contended")
        return states

    async def close(self) -> None:
        """Close all connections."""
        await self.link.close()

    async def _write(self, name: bytes, version: int, value: bytes) -> bytes | None:
        """None when `value` was written over `version`, else the newer value."""
        rest = (1, name, version, value, self._ttl_ms)
        newer: bytes | None
        try:
            newer = await self.link.insist("commit", b"EVALSHA", _SCRIPT_NAME, *rest)
        except NoScriptError:
            newer = await self.link.insist("commit", b"EVAL", _SCRIPT, *rest)
        return newer

    def _parted(self, value: bytes) -> tuple[int, bytes]:
        """Version and snapshots of a lane's value; nothing (b"") and what is no value of a lane have version 0."""
        head = _HEAD.match(value)
        if head is None:
            if value:
                self.link.count("load", "undecodable")
            return 0, _NOTHING
        return int(head[1]), value[head.end() :]

    def _snapshots(self, body: bytes) -> list[_Written]:
        try:
            return _READ.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.link.count("load", "undecodable")
            return []

    def _caught_up(self, body: bytes, entry: Entry) -> bytes:
        """What the server holds of a lane, and what it lost or never got. Where both have a position the server's counts:
        another gateway may have written it since."""
        theirs = self._snapshots(body)
        places = {(one.count, one.mark) for one in theirs}
        missing = [one for one in self._snapshots(entry.body) if (one.count, one.mark) not in places]
        if not missing:
            return body
        return _JSON.encode(sorted([*missing, *theirs], key=lambda one: one.count)[-SNAPSHOTS_PER_LANE:])

    def _states(self, raw: Raw) -> dict[str, State]:
        states: dict[str, State] = {}
        try:
            packed = _READ_STATES.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            packed = {"": Raw(b"")}
        for key, one in packed.items():
            state = _state(key, one)
            if state is None:
                self.link.count("load", "undecodable")
            else:
                states[key] = state
        return states

    def _packed(self, states: Mapping[str, State]) -> Raw:
        try:
            return Raw(_JSON.encode(states))
        except Exception:
            # A state that JSON cannot hold is its router's mistake; the others are kept.
            return self._packed_apart(states)

    def _packed_apart(self, states: Mapping[str, State]) -> Raw:
        packed: dict[str, Raw] = {}
        for key, state in states.items():
            try:
                packed[key] = Raw(_JSON.encode(state))
            except Exception:
                self.link.count("commit", "undecodable")
        return Raw(_JSON.encode(packed)) if packed else _NO_STATES


def _lasting(snapshot: _Written) -> _Written | None:
    try:
        packed = _READ_STATES.decode(snapshot.states)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return snapshot  # whoever reads it counts that
    left = {name: raw for name, raw in packed.items() if not _recent(name)}
    if len(left) == len(packed):
        return snapshot
    return _Written(snapshot.count, snapshot.mark, Raw(_JSON.encode(left))) if left else None


def _recent(key: str) -> bool:
    kind = state_class(key.rsplit("/", 1)[-1])
    return kind is not None and kind.recent


def lane_name(lane: Lane) -> bytes:
    """The key of a lane's value: of one length whatever clients call their sessions, and telling nothing of it."""
    return b"turnout:lane:" + _digest(lane.key)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()


_decoders: dict[str, msgspec.json.Decoder[Any]] = {}


def _state(key: str, raw: Raw) -> State | None:
    """The state in `raw`, of the class its key ends with; None when that is unknown or does not fit."""
    name = key.rpartition("/")[2]
    decoder = _decoders.get(name)
    if decoder is None:
        kind = state_class(name)
        if kind is None:
            return None
        decoder = _decoders[name] = msgspec.json.Decoder(kind)
    try:
        state: State = decoder.decode(raw)
    except Exception:
        # Also what a state's own `__post_init__` raises: a value it no longer accepts is forgotten.
        return None
    return state
