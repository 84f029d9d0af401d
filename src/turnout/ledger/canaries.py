"""What the ledger keeps of canaries: those that were stopped, and the turns and outcomes that a watcher has not seen yet."""

from typing import TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.engine import Connection

from turnout.ledger.outcome import REPORTED, Outcome, Reported
from turnout.ledger.rows import record_of
from turnout.ledger.schema import canaries, outcomes, turns
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


def turns_after(connection: Connection, seq: int, route: str) -> Batch:
    """The next turns of a route, without bodies."""
    query = sa.select(turns.c.seq, turns.c.record).where(turns.c.seq > seq, turns.c.route == route)
    rows = connection.execute(query.order_by(turns.c.seq).limit(AT_ONCE)).all()
    return Batch(turns=tuple(record_of(row.record) for row in rows), seq=rows[-1].seq if rows else seq)


def outcomes_after(connection: Connection, seq: int) -> Batch:
    """The next outcomes."""
    query = sa.select(outcomes.c.seq, outcomes.c.at, outcomes.c.outcome, outcomes.c.source).where(outcomes.c.seq > seq)
    rows = connection.execute(query.order_by(outcomes.c.seq).limit(AT_ONCE)).all()
    told = tuple(
        Reported(row.at, msgspec.json.decode(row.outcome, type=Outcome), row.source or REPORTED) for row in rows
    )
    return Batch(outcomes=told, seq=rows[-1].seq if rows else seq)
