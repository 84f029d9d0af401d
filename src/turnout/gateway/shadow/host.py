"""Runs shadows beside the turns of a gateway: after a turn is over, from what it was told, never with a call of its own.

A turn waits in a bounded queue once its answer is out; a full queue drops it, counted. What a shadow remembers is kept where the
gateway's sessions are, under lanes of its own. What it decided goes to the ledger in batches.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import InterfaceError, OperationalError

from turnout.errors import TapeMiss
from turnout.gateway.config import Config
from turnout.gateway.shadow.tables import Shadow
from turnout.ledger.answered import answered, aside_of, aside_usd, flip
from turnout.ledger.metrics import ShadowCounts
from turnout.ledger.shadows import ShadowTurn
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.routing.asked import Asked
from turnout.routing.beside import (
    KEPT,
    PLACE,
    Became,
    Flip,
    Kept,
    beside,
    events_of,
    memory_of,
    seeded,
)
from turnout.routing.core import Decision, Lane, Placed, State, TargetName, Turn
from turnout.routing.retrieval.looked_up import LookedUp
from turnout.routing.spending import KEY as SPENDING
from turnout.routing.spending import Price, Spending, charged, priced
from turnout.routing.tape import Tape, played
from turnout.sessions.store import MemoryStore, SessionStore, folded, revived

QUEUED_AT_MOST = 1_000
HELD_AT_MOST = 64 * 2**20
"""Bytes of requests that may wait."""
ROWS_AT_MOST = 5_000
"""Decisions that may wait for the ledger."""
WRITE_EVERY_S = 1.0
BATCH = 200
FINISH_WITHIN_S = 5.0
MISSED_AT_MOST = 10_000
"""Lanes that are known to have lost a turn to a full queue."""


class Over(Struct, frozen=True):
    """A turn that is over. `size`: bytes that it holds."""

    turn: Turn
    record: TurnRecord
    decision: Decision
    asked: tuple[Asked, ...]
    size: int
    lookups: tuple[LookedUp, ...] = ()


class Shadows:
    """The shadows of a gateway. `by_route`: those that see a route's turns; a route that none sees costs nothing.

    All but the writing happens on the event loop, one decision at a time between the turns it serves.
    """

    def __init__(
        self, config: Config, ledger: Ledger, sessions: SessionStore, wrong: Callable[[Exception], None]
    ) -> None:
        self._ledger = ledger
        self._wrong = wrong
        self._words = config.ledger.capture != "none"
        self._sessions = sessions
        self._stores: dict[str, SessionStore] = {}
        self._queue: deque[Over] = deque()
        self._held = self._busy = 0
        self._rows: list[ShadowTurn] = []
        self._missed: OrderedDict[str, None] = OrderedDict()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._started = self._closing = False
        self._written_at = 0.0
        self._counts: dict[str, ShadowCounts] = {}
        self.by_route: Mapping[str, tuple[Shadow, ...]] = {}
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Run the shadows of `config` from now on."""
        by_route: dict[str, tuple[Shadow, ...]] = {}
        for shadow in config.shadows.values():
            by_route[shadow.route] = (*by_route.get(shadow.route, ()), shadow)
            self._counts.setdefault(shadow.name, ShadowCounts(shadow.name, shadow.route))
        self._stores = {name: self._stores.get(name) or self._store(config) for name in config.shadows}
        self.by_route = by_route
        if self._started:
            self.start()

    def _store(self, config: Config) -> SessionStore:
        """Where a shadow remembers. In one process lanes of shadows must push out neither those that serve nor one another's."""
        if not isinstance(self._sessions, MemoryStore):
            return self._sessions
        return MemoryStore(ttl_s=config.sessions.ttl_s, max_lanes=config.sessions.max_lanes)

    def start(self) -> None:
        """Begin to decide, once there is a shadow; needs a running loop."""
        self._started = True
        if self.by_route and self._task is None:
            self._task = asyncio.create_task(self._for_ever(), name="shadows")

    async def close(self) -> None:
        """Decide what waits, as far as time allows, and write what was decided."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._task, FINISH_WITHIN_S)
        await self._write()

    def offer(self, over: Over) -> None:
        """A turn is over. Never waits."""
        if len(self._queue) >= QUEUED_AT_MOST or self._held + over.size > HELD_AT_MOST or self._task is None:
            self._drop(over)
            return
        self._queue.append(over)
        self._held += over.size
        self._wake.set()

    @property
    def waiting(self) -> int:
        """Turns that are not decided yet, and decisions that are not in the ledger yet."""
        return len(self._queue) + len(self._rows) + self._busy

    def counts(self) -> Iterator[ShadowCounts]:
        """Numbers for a scrape."""
        yield from self._counts.values()

    def _drop(self, over: Over) -> None:
        for shadow in self.by_route.get(over.record.route, ()):
            self._counts[shadow.name].dropped += 1
        if over.turn.lane.identified:
            self._missed[over.turn.lane.key] = None
            if len(self._missed) > MISSED_AT_MOST:
                self._missed.popitem(last=False)

    async def _for_ever(self) -> None:
        while not (self._closing and not self._queue):
            if not self._queue:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), WRITE_EVERY_S if self._rows else None)
                self._wake.clear()
            if self._queue:
                over = self._queue.popleft()
                self._held -= over.size
                self._busy = 1
                for shadow in self.by_route.get(over.record.route, ()):
                    await self._beside(shadow, over)
                    await asyncio.sleep(0)  # turns that are served go first
                if _kept(over.record):
                    self._missed.pop(over.turn.lane.key, None)  # by now the shadows' memory says so
                self._busy = 0
            if len(self._rows) >= BATCH or time.monotonic() - self._written_at >= WRITE_EVERY_S:
                await self._write()
        await self._write()

    async def _beside(self, shadow: Shadow, over: Over) -> None:
        counts, store = self._counts[shadow.name], self._stores.get(shadow.name)
        if store is None:  # a reload has just taken it off
            return
        try:
            found = await self._decided(shadow, over, store)
        except Exception as error:
            # Whatever a shadow does, turns go on.
            counts.faults += 1
            self._wrong(error)
            return
        counts.add(found)
        if len(self._rows) < ROWS_AT_MOST:
            self._rows.append(found)
        else:
            counts.unwritten += 1

    async def _decided(self, shadow: Shadow, over: Over, store: SessionStore) -> ShadowTurn:
        turn, record = over.turn, over.record
        states = await self._remembered(shadow, turn, store)
        memory = memory_of(states, turn.memory) if turn.lane.identified else {}
        tape = Tape(over.asked, over.lookups)
        decision, reason = _routed(shadow, replace(turn, memory=memory), tape)
        agrees = decision is not None and decision.target == over.decision.target
        price, more = _priced(states, over, decision)
        if turn.lane.identified and _kept(record):
            after = folded(states, (*events_of(decision, agrees), *more))
            event = Placed(PLACE, Became(after))
            await store.commit(_lane(shadow, turn), turn.conversation, turn.signals.compacted, (event,))
        if decision is None:
            return _row(shadow, over, reason=reason)
        return _row(
            shadow,
            over,
            target=decision.target,
            source=decision.why.source,
            live_usd=_sum(price.live_usd, aside_usd(record)),
            usd=_sum(price.own_usd, aside_of(record, tape.heard, decision)),
            flip=None if agrees else self._flip(over, decision),
        )

    async def _remembered(self, shadow: Shadow, turn: Turn, store: SessionStore) -> Mapping[str, State]:
        """What the shadow remembers of the turn's lane."""
        if not turn.lane.identified:
            return {}
        loaded = await store.load(_lane(shadow, turn), turn.conversation, turn.signals.compacted)
        kept = loaded.states.get(KEPT)
        states = revived(kept.states if isinstance(kept, Kept) else seeded(turn.memory))
        # After a turn that was dropped it is not known.
        return folded(states, events_of(None, False)) if turn.lane.key in self._missed else states

    def _flip(self, over: Over, decision: Decision) -> Flip:
        record, was, now = over.record, over.decision.why, decision.why
        if not self._words:
            was, now = was.without_words(), now.without_words()
        return flip(record, over.decision.target, was, decision.target, now)

    async def _write(self) -> None:
        """Bring to the ledger what was decided. While it is away, that is tried again."""
        self._written_at = time.monotonic()
        rows = self._rows[:]
        if not rows:
            return
        try:
            await asyncio.to_thread(self._ledger.add_shadows, rows)
        except (OperationalError, InterfaceError) as error:
            self._wrong(error)
            return
        except Exception as error:  # something in them cannot be stored, and must not keep back what follows
            self._wrong(error)
            for row in rows:
                self._counts[row.shadow].unwritten += 1
        del self._rows[: len(rows)]


def _kept(record: TurnRecord) -> bool:
    """Whether what is remembered on this turn counts: it was answered, or got as far as to remember."""
    return record.ended == "ok" or bool(record.remembered)


def _lane(shadow: Shadow, turn: Turn) -> Lane:
    """Where a shadow's memory of a lane lives: apart from what serves, and from other shadows."""
    lane = turn.lane
    return Lane(lane.tenant, lane.session, f"{lane.agent}\x1f~shadow\x1f{shadow.name}", lane.rung)


def _routed(shadow: Shadow, turn: Turn, tape: Tape) -> tuple[Decision | None, str]:
    """The shadow's decision; None, and what it lacks, where it cannot be made."""
    try:
        return played(shadow.by.router.route(turn), tape, turn.conversation), ""
    except TapeMiss as miss:
        return None, miss.reason
    except Exception as error:  # a router that raises has decided: the turn would go to its last resort
        return shadow.by.fault(error), ""


def _priced(states: Mapping[str, State], over: Over, decision: Decision | None) -> tuple[Price, tuple[Struct, ...]]:
    """What the turn's answer costs on both ways, and what caches hold after it."""
    answer = answered(over.record)
    if answer is None:
        return Price(), ()
    targets, spending = over.turn.targets, states.get(SPENDING)
    spending = spending if isinstance(spending, Spending) else Spending()
    chosen = decision.target if decision is not None else None
    if chosen is not None and chosen == over.decision.target:
        chosen = TargetName(answer.target)  # what could not serve would not have served
    own = None if chosen is None or beside(states).lost else targets.get(chosen)
    price = priced(spending, answer, targets.get(TargetName(answer.target)), own)
    if price.live_usd is None and price.own_usd is None:
        return price, ()
    return price, (Placed(PLACE, charged(answer, own)),)


def _row(shadow: Shadow, over: Over, **more: Any) -> ShadowTurn:
    record = over.record
    return ShadowTurn(
        turn=record.id,
        shadow=shadow.name,
        policy=shadow.by.policy,
        at=record.at,
        route=record.route,
        tenant=record.tenant,
        session=record.session,
        was=over.decision.target,
        **more,
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
