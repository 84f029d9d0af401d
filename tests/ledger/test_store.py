"""The ledger, on SQLite and on PostgreSQL: what is appended can be read, paged, summed, and survives trouble."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.ledger.records import turn

from turnout.errors import ClientError, ConfigError
from turnout.ledger.outcome import Outcome
from turnout.ledger.reading import Page, TurnFilter
from turnout.ledger.store import Ledger


def _body(*texts: str) -> bytes:
    return json.dumps({"model": "coder", "messages": [{"role": "user", "content": t} for t in texts]}).encode()


def test_a_turn_comes_back(url: str) -> None:
    ledger = Ledger.open(url, capture="full")
    record = turn(request=_body("a" * 900, "b" * 900), response=b"data: done\n\n" * 100)
    ledger.append(record)
    assert ledger.turn(record.id) == record
    assert ledger.turn("no-such-turn") is None
    ledger.close()
    with_reader = Ledger.read(url)
    assert with_reader.turn(record.id) == record
    with pytest.raises(RuntimeError):
        with_reader.append(record)
    with_reader.close()


def test_a_history_is_stored_once(url: str) -> None:
    ledger = Ledger.open(url, capture="full")
    texts = [f"message {i} " * 100 for i in range(40)]
    for i in range(40):
        ledger.append(turn(i, request=_body(*texts[: i + 1])))
    ledger.append(turn(99, session="s2", request=_body(*texts)))
    assert ledger.turn("turn-000039") == turn(39, request=_body(*texts))
    with ledger._engine.connect() as connection:
        stored = connection.execute(
            sa.text("SELECT session, count(*) FROM messages GROUP BY session ORDER BY session")
        ).all()
    assert [tuple(row) for row in stored] == [("s1", 40), ("s2", 40)]
    ledger.close()
    # A new process does not know what is stored, and stores nothing twice.
    again = Ledger.open(url, capture="full")
    again.append(turn(100, request=_body(*texts)))
    assert again.turn("turn-000100") == turn(100, request=_body(*texts))
    with again._engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM messages")).scalar() == 80
    again.close()


def test_pages_hold_every_turn_once(url: str) -> None:
    ledger = Ledger.open(url)
    for i in range(25):
        ledger.append(turn(i, at=1000.0 + i // 4))  # several turns at the same moment
    seen: list[str] = []
    cursor, pages = "", 0
    while True:
        page: Page = ledger.turns(limit=7, before=cursor)
        seen += [record.id for record in page.turns]
        cursor, pages = page.next, pages + 1
        if not cursor:
            break
    assert pages == 4
    assert seen == [f"turn-{i:06d}" for i in reversed(range(25))]
    with pytest.raises(ClientError):
        ledger.turns(before="not a cursor")
    ledger.close()


def test_filters(url: str) -> None:
    ledger = Ledger.open(url)
    for i in range(6):
        ledger.append(
            turn(i, session=f"s{i % 2}", target="large" if i < 2 else "small", ended="error" if i == 5 else "ok")
        )

    def ids(**fields: Any) -> set[int]:
        return {int(record.id[-6:]) for record in ledger.turns(TurnFilter(**fields)).turns}

    assert ids() == {0, 1, 2, 3, 4, 5}
    assert ids(session="s1") == {1, 3, 5}
    assert ids(target="large") == {0, 1}
    assert ids(session="s1", target="small", ended="error") == {5}
    assert ids(source="signals", since=1_000_002.0, until=1_000_004.0) == {2, 3}
    assert ids(source="judge") == set()
    ledger.close()


def test_figures(url: str) -> None:
    ledger = Ledger.open(url)
    for i in range(100):
        ledger.append(turn(i, total_s=float(i + 1), first_byte_s=float(i + 1) if i % 2 else None))
    ledger.append(
        turn(200, target="large", cost_usd=None, cost_note="unpriced: no price", calls=(turn().calls[0],), ended="cut")
    )
    ledger.append(turn(201, target="large", cost_usd=None, cost_note="unknown: no usage", ended="client_gone"))
    ledger.append(turn(202, target="", ended="rejected", calls=(), usage=None, cost_usd=None, why=None))
    stats = ledger.stats()
    assert stats.total.turns == 103
    assert (stats.total.ok, stats.total.errors, stats.total.gone, stats.total.rejected) == (100, 1, 1, 1)
    assert (stats.total.unpriced, stats.total.unknown) == (1, 1)
    assert stats.total.input_tokens == 10_200
    assert stats.total.cost_usd == pytest.approx(0.102)
    small = stats.groups[0]
    assert small.key == {"route": "coder", "target": "small", "source": "signals"}
    assert (small.figures.total_p50_s, small.figures.total_p90_s, small.figures.total_p99_s) == (50.0, 90.0, 99.0)
    assert (small.figures.first_byte_p50_s, small.figures.first_byte_p90_s) == (50.0, 90.0)
    assert sum(group.figures.turns for group in stats.groups) == 103
    assert ledger.stats(since=1_000_150.0).total.turns == 3
    assert {g.key["ended"]: g.figures.turns for g in ledger.stats(by=("ended",)).groups}["ok"] == 100
    nothing = ledger.stats(since=2_000_000.0)
    assert nothing.total.turns == 0
    assert nothing.total.total_p50_s is None
    assert nothing.groups == ()
    ledger.close()


def test_outcomes(url: str) -> None:
    ledger = Ledger.open(url)
    outcome = Outcome(turn="turn-000001", session="s1", success=True, tool_cost_usd=0.5, metrics={"tests": 3.0})
    ledger.add_outcome(outcome)
    ledger.add_outcome(Outcome(session="s2", severe_failure=True))
    assert [r.outcome for r in ledger.outcomes(turn="turn-000001")] == [outcome]
    assert [r.outcome for r in ledger.outcomes(session="s1")] == [outcome]
    assert ledger.outcomes(session="s2")[0].outcome.severe_failure
    assert ledger.outcomes(turn="", session="") == ()
    with pytest.raises(ClientError):
        ledger.add_outcome(Outcome(success=True))
    ledger.close()


def test_a_turn_sent_twice_is_one_turn(url: str) -> None:
    ledger = Ledger.open(url)
    ledger.append(turn(1))
    ledger.append(turn(1))
    assert ledger.stats().total.turns == 1
    assert ledger.health().ok
    ledger.close()


def test_text_a_database_refuses_does_not_lose_the_batch(url: str) -> None:
    ledger = Ledger.open(url, capture="full")
    for i in range(20):
        ledger.append(turn(i, session="nul \0 and \ud800" if i == 7 else "s1", request=_body("x" * 600)))
    assert ledger.stats().total.turns == 20
    assert ledger.health().dropped == 0
    found = ledger.turn("turn-000007")
    assert found is not None
    assert found.request == _body("x" * 600)
    ledger.close()


def test_readers_see_whole_batches_while_it_is_written(url: str) -> None:
    ledger = Ledger.open(url, flush_interval_s=0.01)
    total, faults = 2000, []
    done = threading.Event()

    def read() -> None:
        reader = Ledger.read(url)
        try:
            last = 0
            while not done.is_set():
                count = reader.stats().total.turns
                if count < last:
                    faults.append(f"{count} after {last}")
                last = count
                page = reader.turns(limit=20)
                if any(record.route != "coder" for record in page.turns):
                    faults.append("a torn turn")
        except Exception as error:
            faults.append(repr(error))
        finally:
            reader.close()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(total):
        ledger.append(turn(i))
    assert ledger.flush(30)
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert ledger.stats().total.turns == total
    ledger.close()


def test_two_writers_share_a_database(url: str) -> None:
    one, two = Ledger.open(url, flush_interval_s=0.01), Ledger.open(url, flush_interval_s=0.01)
    for i in range(500):
        one.append(turn(i))
        two.append(turn(10_000 + i))
    assert one.flush(30)
    assert two.flush(30)
    assert one.stats().total.turns == 1000
    one.close()
    two.close()


def test_an_in_memory_ledger() -> None:
    ledger = Ledger.open("sqlite://")
    for i in range(300):
        ledger.append(turn(i))
    assert ledger.stats().total.turns == 300
    ledger.close()


@pytest.mark.parametrize(
    "address",
    ["", "nonsense", "mysql://u:s3cret@h/db", "postgresql+psycopg://u:s3cret@127.0.0.1:1/db", "sqlite:////proc/no/db"],
)
def test_a_bad_address_is_said_without_its_secret(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ledger.open(address)
    assert "ledger" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"this is not a database, it is a text file, and a long one at that" * 40)
    with pytest.raises(ConfigError, match="not a database"):
        Ledger.open(f"sqlite:///{tmp_path}/x.db")


def test_outcomes_of_many_turns_and_sessions_come_once_each(url: str) -> None:
    store = Ledger.open(url)
    try:
        for outcome in (
            Outcome(turn="t1", session="s1", success=True),
            Outcome(session="s2", success=False),
            Outcome(turn="t3"),
            Outcome(session="s4"),
        ):
            store.add_outcome(outcome)
        many = [f"x{n}" for n in range(1200)]
        found = store.outcomes_of([*many, "t1", "t3"], ["s1", *many, "s2"])
        assert [(one.outcome.turn, one.outcome.session) for one in found] == [("t1", "s1"), ("", "s2"), ("t3", "")]
        assert store.outcomes_of([], []) == ()
    finally:
        store.close()


def test_a_file_that_may_not_be_written_is_read_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "an archive, 50% é" / "kept#1.db"
    url = f"sqlite:///{file}"
    ledger = Ledger.open(url)
    record = turn()
    ledger.append(record)
    ledger.close()
    before = (file.read_bytes(), list(file.parent.iterdir()))
    # Whoever runs the tests may be allowed everything.
    monkeypatch.setattr("turnout.ledger.database.os.access", lambda *_: False)
    archive = Ledger.read(url)
    assert archive.turn(record.id) is not None
    with pytest.raises(sa.exc.OperationalError, match="readonly"):
        archive.add_outcome(Outcome(turn=record.id, success=True))
    archive.close()
    assert (file.read_bytes(), list(file.parent.iterdir())) == before
    # Beside a writer the file alone is not all there is.
    writer = Ledger.open(url)
    later = turn(1)
    writer.append(later)
    writer.flush()
    reader = Ledger.read(url)
    assert reader.turn(later.id) is not None
    reader.close()
    writer.close()
