"""Kills, locks and full disks: what may be lost is what the ledger says, and nothing is lost in silence."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.ledger.records import turn

from turnout.errors import ConfigError
from turnout.ledger import writer
from turnout.ledger.spill import Spill, SpillFile
from turnout.ledger.store import Ledger

ROOT = Path(__file__).parent.parent.parent
PRELUDE = """
import signal, sys, time
from tests.ledger.records import turn
from turnout.ledger.store import Ledger
ledger = Ledger.open(sys.argv[1], flush_interval_s=float(sys.argv[2]))
"""


def _child(code: str, url: str, interval_s: float) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code), url, str(interval_s)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT)


def _count(path: Path) -> int:
    connection = sqlite3.connect(path)
    count: int = connection.execute("SELECT count(*) FROM turns").fetchone()[0]
    connection.close()
    return count


def test_sigterm_loses_nothing(tmp_path: Path) -> None:
    child = _child(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        for i in range(3000):
            ledger.append(turn(i))
        print("ready", flush=True)
        time.sleep(60)
        """,
        f"sqlite:///{tmp_path}/l.db",
        3600,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0
    assert _count(tmp_path / "l.db") == 3000
    child.stdout.close()


def test_sigkill_loses_at_most_what_was_not_flushed(tmp_path: Path) -> None:
    child = _child(
        """
        for i in range(1000):
            ledger.append(turn(i))
        assert ledger.flush(30)
        print("flushed", flush=True)
        i = 1000
        while True:
            ledger.append(turn(i)); i += 1
            time.sleep(0.0005)
        """,
        f"sqlite:///{tmp_path}/l.db",
        0.05,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "flushed\n"
    child.kill()
    child.wait(30)
    child.stdout.close()
    assert _count(tmp_path / "l.db") >= 1000
    reopened = Ledger.open(f"sqlite:///{tmp_path}/l.db")
    reopened.append(turn(10**6 - 1))
    assert reopened.turn(f"turn-{10**6 - 1:06d}") is not None
    reopened.close()


def test_a_damaged_file_is_named_with_what_the_database_says(tmp_path: Path) -> None:
    path = tmp_path / "turnout.db"
    ledger = Ledger.open(f"sqlite:///{path}")
    for n in range(200):
        ledger.append(turn(n))
    ledger.close()
    data = path.read_bytes()
    path.write_bytes(data[:20_000] + b"\xff" * (len(data) - 20_000))
    damaged = Ledger.read(f"sqlite:///{path}")
    with pytest.raises(ConfigError, match=r"turnout\.db cannot be read: .*malformed"):
        damaged.turns(limit=200)
    damaged.close()


def test_a_locked_database_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.ledger.database.BUSY_S", 0.05)
    path = tmp_path / "l.db"
    ledger = Ledger.open(f"sqlite:///{path}", flush_interval_s=0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for i in range(50):
        ledger.append(turn(i))
    assert not ledger.flush(0.5)
    health = ledger.health()
    assert not health.ok
    assert "locked" in health.error
    assert (health.queued, health.dropped) == (50, 0)
    other.execute("COMMIT")
    other.close()
    assert ledger.flush(30)
    assert ledger.stats().total.turns == 50
    assert ledger.health().ok
    ledger.close()


def test_what_memory_does_not_hold_goes_to_a_file_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.ledger.database.BUSY_S", 0.05)
    monkeypatch.setattr(writer, "QUEUED_AT_MOST", 10)
    path = tmp_path / "l.db"
    ledger = Ledger.open(f"sqlite:///{path}", capture="full", flush_interval_s=0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    records = [turn(i, request=b'{"messages":[{"content":"' + b"x" * 600 + b'"}]}') for i in range(400)]
    for record in records:
        ledger.append(record)
    assert not ledger.flush(0.3)
    health = ledger.health()
    assert health.spilled > 0
    assert health.dropped == 0
    assert list(tmp_path.glob("*.spill"))
    other.execute("COMMIT")
    other.close()
    assert ledger.flush(30)
    assert ledger.stats().total.turns == 400
    assert ledger.turn("turn-000399") == records[399]
    ledger.close()
    assert list(tmp_path.glob("*.spill")) == []


def test_closing_on_a_locked_database_leaves_a_file_the_next_process_adopts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.ledger.database.BUSY_S", 0.05)
    path = tmp_path / "l.db"
    ledger = Ledger.open(f"sqlite:///{path}", flush_interval_s=0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for i in range(30):
        ledger.append(turn(i))
    ledger.close(within_s=5)
    assert len(list(tmp_path.glob("*.spill"))) == 1
    other.execute("COMMIT")
    other.close()
    assert _count(path) == 0
    following = Ledger.open(f"sqlite:///{path}", flush_interval_s=0.01)
    following.append(turn(1000))
    assert following.flush(30)
    following.close()
    assert _count(path) == 31
    assert list(tmp_path.glob("*.spill")) == []


def test_a_turn_after_closing_is_kept(tmp_path: Path) -> None:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db")
    ledger.close()
    ledger.append(turn(5, session="half \ud800"))
    files = list(tmp_path.glob("*.spill"))
    assert len(files) == 1


def test_a_full_disk_is_said_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUEUED_AT_MOST", 0)

    def full(self: SpillFile, row: object, parts: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpillFile, "write", full)
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db")
    ledger.append(turn(1))
    health = ledger.health()
    assert health.dropped == 1
    assert not health.ok
    assert ledger.flush(1)
    ledger.close()


def test_a_file_of_a_living_process_is_not_taken(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "l.db")
    mine = spill.new()
    mine.write(("row",), [(b"d", "s", b"body")])
    assert list(spill.orphans()) == []
    mine.close(done=False)
    (orphan,) = spill.orphans()
    assert list(orphan.read()) == [(("row",), [(b"d", "s", b"body")])]
    orphan.close(done=True)
    assert list(tmp_path.iterdir()) == []


def test_half_a_row_at_the_end_is_skipped(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "l.db")
    mine = spill.new()
    mine.write(("one",), [])
    mine.write(("two",), [])
    mine.close(done=False)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    (orphan,) = spill.orphans()
    assert list(orphan.read()) == [(("one",), [])]
    orphan.close(done=True)


def test_overflow_files_are_private(tmp_path: Path) -> None:
    mine = Spill(tmp_path / "l.db").new()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o077 == 0
    mine.close(done=True)


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_concurrent_appends_and_closing_lose_nothing(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "l.db"
    ledger = Ledger.open(f"sqlite:///{path}", flush_interval_s=seconds)
    for i in range(5000):
        ledger.append(turn(i))
    ledger.close()
    assert _count(path) == 5000
