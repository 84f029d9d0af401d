"""An import that is killed goes on where it stopped, and its ledger is the one it would have been."""

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from tests.evaluate.importers.ledgers import content, imported
from tests.evaluate.importers.samples import claude_code, lines, table

from turnout.evaluate.importers import run

IMPORT = "from turnout.cli.app import run; import sys; sys.exit(run(sys.argv[1:]))"


def stored(ledger: Path) -> int:
    """How far the one import of a ledger has come."""
    try:
        with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
            found = connection.execute("SELECT stored FROM imports").fetchone()
    except sqlite3.Error:
        return 0
    return found[0] if found else 0


def killed_midway(path: Path, ledger: Path) -> int:
    """Start an import and kill it as soon as it has stored something; how much that was."""
    command = [sys.executable, "-c", IMPORT, "import", str(path), "--ledger", f"sqlite:///{ledger}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not stored(ledger) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return stored(ledger)


def test_after_a_kill_the_ledger_becomes_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(claude_code(60, 40)))
    whole = imported(path, tmp_path / "whole.db")
    assert whole.turns == 2400
    there = killed_midway(path, tmp_path / "killed.db")
    assert 0 < there < 2400
    report = imported(path, tmp_path / "killed.db")
    assert report.resumed == there
    assert report.new_turns == 2400 - there
    assert (report.turns, report.records, report.ignored) == (whole.turns, whole.records, whole.ignored)
    assert content(tmp_path / "killed.db") == content(tmp_path / "whole.db")


def test_outcomes_go_on_where_they_stopped(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_bytes(lines(table(60_000)))
    there = killed_midway(path, tmp_path / "killed.db")
    imported(path, tmp_path / "whole.db")
    report = imported(path, tmp_path / "killed.db")
    assert report.resumed == there < 60_000
    assert content(tmp_path / "killed.db") == content(tmp_path / "whole.db")


def test_a_log_that_grew_adds_only_what_is_new(tmp_path: Path) -> None:
    rows = claude_code(1, 8)
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(rows[:14]))
    first = imported(path, tmp_path / "a.db")
    path.write_bytes(lines(rows))
    second = imported(path, tmp_path / "a.db")
    assert (first.new_turns, second.new_turns) == (4, 4)


def test_batches_are_stored_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_bytes(lines(table(3 * run.BATCH)))
    seen: list[int] = []
    from turnout.ledger.store import Ledger
    from turnout.pricing import Prices

    store = Ledger.read(f"sqlite:///{tmp_path}/a.db")
    report = run.import_file(path, store.importing(), run.Options(), Prices.load(), on_bytes=seen.append)
    store.close()
    assert report.new_outcomes == 3 * run.BATCH
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size
