"""The map: sums by kind of work, shares with intervals, and one sentence."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.importers.samples import SAMPLES, claude_code, lines, written
from tests.evaluate.test_turnmap_labels import EDIT, GREEN, READ, RED, turn
from tests.recorded import needs_recordings, shared

from turnout.cli.app import run
from turnout.conversation import Usage
from turnout.evaluate.scores import kappa
from turnout.evaluate.turnmap import MEASURES, student, turn_map
from turnout.ledger.trace import TurnRecord


def session(name: str, kinds: str, cost: float = 1.0) -> list[TurnRecord]:
    """A session of reads, edits, green and red tests, by letter."""
    seen, made = [], []
    for n, kind in enumerate(kinds):
        usage = Usage(10, 2, 90)
        made.append(turn(tuple(seen), f"{name}{n}", session=name, cost_usd=cost, usage=usage, total_s=0.5))
        seen.append({"r": READ, "e": EDIT, "g": GREEN, "x": RED}[kind])
    return [
        *made,
        turn(tuple(seen), f"{name}end", session=name, stop="end", cost_usd=cost, usage=Usage(10, 2, 90), total_s=0.5),
    ]


@given(st.lists(st.text("regx", min_size=1, max_size=12), min_size=1, max_size=8))
def test_every_turn_counts_once(kinds: list[str]) -> None:
    sessions = [session(str(i), one) for i, one in enumerate(kinds)]
    found = turn_map([t for one in sessions for t in one])
    total = sum(map(len, sessions))
    assert found.turns == total
    assert found.sessions == len(sessions)
    for name, each in zip(MEASURES, (1, 100, 2, 1.0, 0.5), strict=False):
        amounts = [getattr(work, name).amount for work in found.labels.values()]
        assert sum(amounts) == pytest.approx(each * total)
        shares = [getattr(work, name).share for work in found.labels.values()]
        assert sum(s for s in shares if s is not None) == pytest.approx(1)
    cheap = sum(found.labels[name].turns.amount for name in ("explore", "verify", "summarise"))
    assert found.cheap.turns.amount == cheap == sum(n * count for n, count in found.runs.items())


@given(st.lists(st.text("regx", min_size=1, max_size=12), min_size=2, max_size=8))
def test_intervals_hold_their_share(kinds: list[str]) -> None:
    found = turn_map([t for i, one in enumerate(kinds) for t in session(str(i), one)])
    for work in (*found.labels.values(), found.cheap):
        portion = work.turns
        assert portion.low is not None
        assert portion.high is not None
        assert portion.share is not None
        assert 0 <= portion.low <= portion.share <= portion.high <= 1


def test_one_session_gives_no_interval() -> None:
    assert turn_map(session("a", "rre")).labels["explore"].turns.low is None


def test_an_interval_is_that_of_a_ratio_over_sessions() -> None:
    found = turn_map([*session("a", "rrr"), *session("b", "eee"), *session("c", "rre"), *session("d", "rgg")])
    per = [(3, 4), (0, 4), (2, 4), (1, 4)]  # explore turns of all turns
    ratio = 6 / 16
    spread = math.sqrt(sum((y - ratio * x) ** 2 for y, x in per) * 4 / 3) / 16
    portion = found.labels["explore"].turns
    assert portion.share == ratio
    assert portion.high == pytest.approx(ratio + 3.182 * spread, rel=0.01)


@pytest.mark.parametrize(
    ("degrees", "known"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (100, 1.984)]
)
def test_student_is_as_in_the_tables(degrees: int, known: float) -> None:
    assert student(degrees) == pytest.approx(known, abs=0.01)


@given(st.integers(1, 200))
def test_student_falls_towards_the_normal_quantile(degrees: int) -> None:
    assert student(degrees) > student(degrees + 1) > 1.959


def test_the_sentence_says_how_much_and_for_which_price() -> None:
    found = turn_map([*session("a", "rrrrreeee"), *session("b", "rrrrreeee")], price_ratio=0.25)
    assert found.cheap.cost_usd.share == 12 / 20
    assert found.saving == pytest.approx(0.45)
    assert found.sentence.startswith("60% [60% 60%] of 20 turns only explore, verify or summarise and take 60%")
    assert "at 25% of the price would save at most 45% of it, and 10% takes one at under 83%" in found.sentence


def test_unknown_costs_are_counted_and_nothing_is_said_of_them() -> None:
    turns = [t for t in session("a", "rre") if t.cost_usd]
    from msgspec.structs import replace

    found = turn_map([replace(t, cost_usd=None) for t in turns])
    assert found.unpriced == 4
    assert found.saving is None
    assert "is not recorded" in found.sentence


def test_nothing_is_said_of_nothing() -> None:
    assert turn_map([]).sentence == "Nothing can be said: no turn has signals."
    assert turn_map([turn(signals=None)]).unlabelled == 1


def test_kappa_of_known_tables() -> None:
    table = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa(table) == pytest.approx(0.4)
    assert kappa([("a", "a"), ("b", "b")]) == 1
    assert kappa([]) is None
    assert kappa([("a", "a")]) is None


def test_files_and_a_ledger_of_them_map_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for sample in SAMPLES:
        written(folder, sample)
    (folder / "more.jsonl").write_bytes(
        lines(claude_code(1, 5)).replace(b"session-0", b"session-9").replace(b"msg_0", b"msg_9")
    )
    ledger = f"sqlite:///{tmp_path}/a.db"
    assert run(["import", str(folder), "--ledger", ledger, "--json"]) == 0
    capsys.readouterr()
    assert run(["map", "--ledger", ledger, "--json"]) == 0
    of_ledger = json.loads(capsys.readouterr().out)
    assert run(["map", str(folder), "--json"]) == 0
    of_files = json.loads(capsys.readouterr().out)
    assert of_ledger["turns"] == of_files["turns"] > 30
    for name, work in of_files["labels"].items():
        assert work["turns"] == pytest.approx(of_ledger["labels"][name]["turns"])
    assert run(["map", "--ledger", ledger, "--turns"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == of_ledger["turns"]
    assert {row["label"] for row in rows} == {
        name for name, work in of_ledger["labels"].items() if work["turns"]["amount"]
    }
    assert run(["map", "--ledger", ledger]) == 0
    assert "cheap together" in capsys.readouterr().out


def test_files_and_a_ledger_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["map", "x.jsonl", "--ledger", "sqlite:///a.db"]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert run(["map", "--ledger", f"sqlite:///{tmp_path}/none.db"]) == 4


@needs_recordings
def test_recorded_sessions_are_labelled_whole(capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared()
    assert folder is not None
    assert run(["map", str(folder / "data/traces/sessions_coding_agents.jsonl.gz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["turns"], found["unlabelled"]) == (912, 0)
