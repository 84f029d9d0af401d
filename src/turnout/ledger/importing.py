"""Turns and outcomes of files, stored in batches together with how far the file has come.

A batch and the number of items stored so far are one transaction: a process that is killed leaves a ledger from which the
import goes on, and an item is never there twice.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import OperationalError

from turnout.ledger import bodies
from turnout.ledger.inserts import Inserts
from turnout.ledger.outcome import Outcome
from turnout.ledger.rows import Capture, Parts, Row, clean, clean_row, clean_text, outcome_row, row_of
from turnout.ledger.schema import imports
from turnout.ledger.trace import TurnRecord

TRIES = 30
"""Batches are tried so often while another process holds the database, about a minute."""


class ImportedOutcome(Struct, frozen=True):
    """An outcome of a file. `key`: names it, so that it is stored once. `source`: the format it was read from."""

    key: str
    at: float
    source: str
    outcome: Outcome


class Progress(Struct, frozen=True):
    """How far a file has come: `stored` of its items are in the ledger. `report`: what its import said, "" until it is done."""

    stored: int = 0
    done: bool = False
    report: str = ""


class Added(Struct, frozen=True):
    """What a batch added; the rest was there already."""

    turns: int
    outcomes: int


class Importing:
    """Stores batches of files. `lock`: held around every use of the database."""

    def __init__(self, engine: Engine, lock: AbstractContextManager[object], capture: Capture) -> None:
        self._engine = engine
        self._lock = lock
        self._capture: Capture = capture
        self._inserts = Inserts(engine)

    def progress(self, key: str) -> Progress:
        """How far the file called `key` has come."""
        query = sa.select(imports.c.stored, imports.c.done, imports.c.report).where(imports.c.key == key)
        with self._lock, self._engine.connect() as connection:
            found = connection.execute(query).first()
        return Progress(found.stored, found.done, found.report) if found is not None else Progress()

    def store(
        self, key: str, name: str, items: Sequence[TurnRecord | ImportedOutcome], upto: int, report: str | None = None
    ) -> Added:
        """Store a batch and that `upto` items of the file are stored; with a `report` the file is done. `name`: for people.

        Raises OperationalError when the database stays locked or away.
        """
        turns: list[Row] = []
        parts: Parts = []
        told: list[Row] = []
        for item in items:
            if isinstance(item, TurnRecord):
                row, pieces = clean(*row_of(item, self._capture))
                turns.append(row)
                parts.extend((digest, session, bodies.pack(body)) for digest, session, body in pieces)
            else:
                told.append(clean_row(outcome_row(item.outcome, item.at, item.source, item.key)))
        unique = list({part[0]: part for part in parts}.values())
        for left in range(TRIES, -1, -1):
            try:
                with self._lock, self._engine.begin() as connection:
                    added = Added(
                        self._inserts.run(connection, turns, unique), self._inserts.outcomes(connection, told)
                    )
                    self._mark(connection, key, name, upto, report)
                return added
            except OperationalError:
                if not left:
                    raise
                time.sleep(0.1)
        raise AssertionError("unreachable")

    def _mark(self, connection: Connection, key: str, name: str, upto: int, report: str | None) -> None:
        insert = sqlite.insert if self._engine.dialect.name == "sqlite" else postgresql.insert
        values = {"stored": upto, "done": report is not None, "report": report or ""}
        statement = insert(imports).values(key=key, name=clean_text(name), at=time.time(), **values)
        connection.execute(statement.on_conflict_do_update(index_elements=["key"], set_=values))
