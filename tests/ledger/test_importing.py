"""Batches of imported turns and outcomes: stored once, together with how far their file has come."""

import msgspec
import pytest
import sqlalchemy as sa
from tests.ledger.records import turn

from turnout.ledger import database, migrate
from turnout.ledger.importing import Added, ImportedOutcome, Progress
from turnout.ledger.outcome import Outcome
from turnout.ledger.reading import TurnFilter
from turnout.ledger.store import Ledger


def told(n: int, **fields: object) -> ImportedOutcome:
    outcome = msgspec.structs.replace(Outcome(task=f"task-{n}", model="m", success=bool(n % 2)), **fields)
    return ImportedOutcome(f"key-{n}", float(n), "table", outcome)


def test_a_batch_is_stored_once_however_often_it_comes(url: str) -> None:
    ledger = Ledger.read(url)
    importing = ledger.importing()
    batch = [turn(), told(1), told(2)]
    assert importing.store("file", "name", batch, 3) == Added(1, 2)
    assert importing.progress("file") == Progress(3, False, "")
    assert importing.store("file", "name", batch, 3, "{}") == Added(0, 0)
    assert importing.progress("file") == Progress(3, True, "{}")
    assert ledger.stats().total.turns == 1
    with ledger.task_outcomes() as rows:
        assert [(row.at, row.source, row.outcome.task) for row in rows] == [
            (1, "table", "task-1"),
            (2, "table", "task-2"),
        ]
    ledger.close()


def test_reported_outcomes_stand_beside_imported_ones(url: str) -> None:
    ledger = Ledger.read(url)
    ledger.importing().store("file", "name", [told(1, session="s")], 1)
    for _ in range(2):  # what is reported twice was said twice
        ledger.add_outcome(Outcome(session="s", success=True, metrics={"tests": 3.0}))
    assert [r.source for r in ledger.outcomes(session="s")] == ["table", "reported", "reported"]
    with ledger.task_outcomes("table") as rows:
        assert [row.outcome.session for row in rows] == ["s"]
    ledger.close()


def test_outcomes_written_before_they_named_tasks_are_kept(url: str) -> None:
    migrate.upgrade(url, "0001")
    engine = database.connect(database.parse(url))
    with engine.begin() as connection:
        connection.execute(
            sa.text("INSERT INTO outcomes (at, turn, session, tenant, outcome) VALUES (1, '', 's', '', :o)"),
            {"o": '{"session":"s","success":true}'},
        )
    engine.dispose()
    ledger = Ledger.read(url)
    assert [(r.source, r.outcome.success) for r in ledger.outcomes(session="s")] == [("reported", True)]
    ledger.close()


def test_lanes_come_one_after_another_each_in_its_order(url: str) -> None:
    ledger = Ledger.read(url)
    turns = [
        msgspec.structs.replace(
            turn(), id=f"{session}{n}", session=session, agent="", at=100.0 - n if session == "b" else n
        )
        for n in range(3)
        for session in ("b", "a")
    ]
    ledger.importing().store("file", "name", turns, len(turns))
    with ledger.lanes(TurnFilter()) as found:
        assert [record.id for record in found] == ["a0", "a1", "a2", "b2", "b1", "b0"]
    ledger.close()


@pytest.mark.parametrize("text", ["nul\0 inside", "lone \ud800 surrogate"])
def test_what_databases_refuse_in_text_is_left_out(url: str, text: str) -> None:
    ledger = Ledger.read(url)
    record = msgspec.structs.replace(turn(), model=text.encode("utf-8", "replace").decode(), target=text)
    assert ledger.importing().store("f", text, [record, told(1, harness=text)], 2) == Added(1, 1)
    ledger.close()
