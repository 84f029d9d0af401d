"""The journal of a trial: what was written counts, whenever writing was cut short."""

import contextlib
from pathlib import Path

import pytest

from turnout.errors import ClientError
from turnout.evaluate.trials.figures import Figures
from turnout.evaluate.trials.journal import Began, Finished, Journal, Opened, Refigured
from turnout.evaluate.trials.manifest import Manifest
from turnout.evaluate.trials.process import Ended


def began(session: str, task: str = "t1") -> Began:
    return Began(1.0, Manifest("large", task, 1, 7, session, "p", "", "f", "", "c"))


def written(path: Path) -> bytes:
    """A trial with a finished run, one that was given up, and one that was made again."""
    journal = Journal(path)
    journal.write(Opened("abc"))
    journal.write(began("s1"))
    journal.write(Finished("s1", Ended(0, 2.5), True, Figures(turns=1, cost_usd=0.5, known_usd=0.5)))
    journal.write(began("s2", "t2"))
    journal.write(began("s3", "t2"))
    journal.write(Refigured("s2", Figures(turns=1, known_usd=0.25)))
    journal.write(Finished("s3", Ended(1, 1.0), False, Figures()))
    journal.close()
    return path.read_bytes()


def test_a_journal_is_read_as_it_was_written(tmp_path: Path):
    written(tmp_path / "journal")
    with contextlib.closing(Journal(tmp_path / "journal")) as journal:
        state = journal.state
    assert state.token == "abc"
    assert {key: run.finished.success for key, run in state.runs.items()} == {
        ("large", "t1", 1): True,
        ("large", "t2", 1): False,
    }
    assert list(state.given_up) == ["s2"]
    assert state.known_usd == 0.75
    assert state.attempts == 3


def test_a_cut_anywhere_loses_no_more_than_the_last_line(tmp_path: Path):
    whole = written(tmp_path / "journal")
    ends = [0] + [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for cut in {*range(0, len(whole), 97), *ends, *(end - 1 for end in ends[1:])}:
        kept = max(end for end in ends if end <= cut)
        path = tmp_path / "cut"
        path.write_bytes(whole[:cut])
        journal = Journal(path)
        if not journal.state.token:
            journal.write(Opened("new"))
        journal.close()
        assert path.read_bytes()[:kept] == whole[:kept]
        assert path.read_bytes()[kept:] in (b"", b'{"line":"trial","token":"new","format":1}\n')


def test_a_damaged_line_in_the_middle_is_told_with_its_number(tmp_path: Path):
    path = tmp_path / "journal"
    path.write_bytes(written(path).replace(b'"line":"began"', b'"line":"gone!"', 1))
    with pytest.raises(ClientError, match=r"journal:2: damaged .* choose another --out"):
        Journal(path)


def test_two_trials_do_not_share_a_journal(tmp_path: Path):
    first = Journal(tmp_path / "journal")
    with pytest.raises(ClientError, match="another trial writes here"):
        Journal(tmp_path / "journal")
    first.close()
    Journal(tmp_path / "journal").close()
