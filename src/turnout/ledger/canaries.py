"""What the ledger keeps of canaries: those that were stopped, and the turns and outcomes that a watcher has not seen yet."""

from typing import TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.engine import Connection

from turnout.ledger.outcome import REPORTED, Outcome, Reported
from turnout.ledger.rows import record_of
from turnout.ledger.schema import canaries, canary_watches, outcomes, turns
from turnout.ledger.trace import TurnRecord

AT_ONCE = 500
"""Rows read at once."""
T = TypeVar("T")


class Stop(Struct, frozen=True):
    """A canary was stopped. `at`: Unix seconds. `metric`: that spoke against it. `reason`: for people."""

    route: str
    name: str
    at: float
    metric: str
    reason: str


class Place(Struct, frozen=True):
    """How far turns and outcomes have been read: the `seq` of the last of each."""

    turns: int = 0
    outcomes: int = 0


class Checkpoint(Struct, frozen=True):
    """What the watch of a canary knew at a `place`. `settings`: digest of what its evidence depends on. `at`: Unix seconds."""

    route: str
    name: str
    settings: str
    at: float
    place: Place
    state: bytes


class Batch(Struct, frozen=True):
    """New turns of a route, or new outcomes, in the order they were stored. `seq`: where to go on."""

    turns: tuple[TurnRecord, ...] = ()
    outcomes: tuple[Reported, ...] = ()
    seq: int = 0


def stop(connection: Connection, found: Stop) -> None:
    """Keep a stop; the first of a canary stays."""
    known = sa.select(canaries.c.at).where(canaries.c.route == found.route, canaries.c.name == found.name)
    if connection.execute(known).first() is None:
        connection.execute(sa.insert(canaries).values(msgspec.structs.asdict(found)))


def stops(connection: Connection) -> tuple[Stop, ...]:
    """All canaries that were stopped, oldest first."""
    query = sa.select(canaries.c.route, canaries.c.name, canaries.c.at, canaries.c.metric, canaries.c.reason)
    return tuple(Stop(*row) for row in connection.execute(query.order_by(canaries.c.at)))


def keep(connection: Connection, found: Checkpoint) -> None:
    """Keep a checkpoint instead of an older one; one that has read further stays."""
    mine = sa.and_(canary_watches.c.route == found.route, canary_watches.c.name == found.name)
    known = connection.execute(sa.select(canary_watches.c.settings, canary_watches.c.turns).where(mine)).first()
    if known is not None and known.settings == found.settings and known.turns > found.place.turns:
        return
    row = msgspec.structs.asdict(found)
    place = row.pop("place")
    connection.execute(sa.delete(canary_watches).where(mine))
    connection.execute(sa.insert(canary_watches).values(**row, turns=place.turns, outcomes=place.outcomes))


def checkpoint(connection: Connection, route: str, name: str) -> Checkpoint | None:
    """The checkpoint of a canary."""
    c = canary_watches.c
    query = sa.select(c.settings, c.at, c.turns, c.outcomes, c.state).where(c.route == route, c.name == name)
    row = connection.execute(query).first()
    if row is None:
        return None
    return Checkpoint(route, name, row.settings, row.at, Place(row.turns, row.outcomes), bytes(row.state))


def last_turn(connection: Connection) -> int:
    """The `seq` of the last turn that is stored, 0 without any."""
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(turns.c.seq), 0))).scalar_one())


def last_outcome(connection: Connection) -> int:
    """The `seq` of the last outcome that is stored, 0 without any."""
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(outcomes.c.seq), 0))).scalar_one())


def turns_after(connection: Connection, seq: int, route: str, until: int) -> Batch:
    """The next turns of a route, without bodies."""
    query = sa.select(turns.c.seq, turns.c.record).where(
        turns.c.seq > seq, turns.c.seq <= until, turns.c.route == route
    )
    rows = connection.execute(query.order_by(turns.c.seq).limit(AT_ONCE)).all()
    return Batch(turns=tuple(record_of(row.record) for row in rows), seq=rows[-1].seq if rows else seq)


def outcomes_after(connection: Connection, seq: int, until: int) -> Batch:
    """The next outcomes."""
    query = sa.select(outcomes.c.seq, outcomes.c.at, outcomes.c.outcome, outcomes.c.source).where(
        outcomes.c.seq > seq, outcomes.c.seq <= until
    )
    rows = connection.execute(query.order_by(outcomes.c.seq).limit(AT_ONCE)).all()
    told = tuple(
        Reported(row.at, msgspec.json.decode(row.outcome, type=Outcome), row.source or REPORTED) for row in rows
    )
    return Batch(outcomes=told, seq=rows[-1].seq if rows else seq)
