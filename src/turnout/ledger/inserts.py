"""The ledger's inserts, compiled once and given to the driver as they are: rows are already plain values."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine

from turnout.ledger.rows import COLUMNS, OUTCOME_COLUMNS, Parts, Row
from turnout.ledger.schema import messages, outcomes, turns

CHUNKS = (256, 32, 1)
"""Rows per statement. Drivers let go of the interpreter lock at every statement, and getting it back from a busy event loop
may take milliseconds; many rows in one statement pay that once."""


class Inserts:
    """A row whose id or digest is there already is left alone, so a batch can be sent again."""

    def __init__(self, engine: Engine) -> None:
        self._turns = _Insert(engine, turns, COLUMNS, "id")
        self._messages = _Insert(engine, messages, ("digest", "session", "body"), "digest")
        self._outcomes = _Insert(engine, outcomes, OUTCOME_COLUMNS, "key")

    def run(self, connection: Connection, rows: Sequence[Row], parts: Parts) -> int:
        """Insert turns and the messages they refer to; how many of the turns were new."""
        self._messages.run(connection, parts)
        return self._turns.run(connection, rows)

    def outcomes(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Insert rows of outcomes; how many were new."""
        return self._outcomes.run(connection, rows)


class _Insert:
    def __init__(self, engine: Engine, table: Table, columns: tuple[str, ...], unique: str) -> None:
        lite = engine.dialect.name == "sqlite"
        insert: Any = sqlite.insert if lite else postgresql.insert
        statement = insert(table).on_conflict_do_nothing(index_elements=[unique])
        kind: Any = type(engine.dialect)
        dialect = kind(paramstyle="qmark" if lite else "format")
        compiled = statement.compile(dialect=dialect, column_keys=list(columns))
        if tuple(compiled.positiontup) != columns:
            raise AssertionError(f"the columns of {table.name} are not in the order of its rows")
        head, values, tail = _cut(str(compiled))
        self._texts = [(n, head + ", ".join([values] * n) + tail) for n in CHUNKS]

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> int:
        """Insert rows, the largest statements first; how many were new."""
        at = new = 0
        for n, text in self._texts:
            while len(rows) - at >= n:
                new += connection.exec_driver_sql(text, tuple(chain.from_iterable(rows[at : at + n]))).rowcount
                at += n
        return new


def _cut(text: str) -> tuple[str, str, str]:
    """`INSERT ... VALUES`, `(...)`, ` ON CONFLICT ...`."""
    head, found, rest = text.partition(" VALUES ")
    values, conflict, tail = rest.partition(" ON CONFLICT ")
    if not found or not conflict:
        raise AssertionError("an insert has a form that is not expected")
    return head + found, values, conflict + tail
