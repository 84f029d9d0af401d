"""Outcomes of a ledger are compared like those of a file."""

import json
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.reported import read_ledger
from turnout.ledger.outcome import Outcome
from turnout.ledger.store import Ledger


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger with outcomes of two models on twelve tasks, and some that say nothing of a task or of success."""
    url = f"sqlite:///{tmp_path / 'l.db'}"
    ledger = Ledger.open(url)
    for i in range(12):
        for model, success, cost in (("large", i < 9, 2.0), ("small", i < 5, 0.5)):
            ledger.add_outcome(
                Outcome(task=str(i), model=model, harness="h", trial="1", success=success, cost_usd=cost, category="c")
            )
    ledger.add_outcome(Outcome(session="s", success=True))
    ledger.add_outcome(Outcome(task="x", model="large"))
    ledger.add_outcome(Outcome(task="y", success=True))
    ledger.add_outcome(
        Outcome(task="z", model="large", success=True, metrics={"propensity": 0.5, "judge_cost_usd": 0.1})
    )
    ledger.close()
    return url


def test_outcomes_that_name_a_task_are_read(url: str) -> None:
    ledger = Ledger.read(url)
    found = read_ledger(ledger, url, [Wanted("large")])
    ledger.close()
    assert (found.rows, found.unknown_success, found.damaged) == (27, 1, 1)
    assert "model" in found.damaged_lines[0].reason
    assert found.arms[Arm("small", "h")] == 12
    assert {one.arm.model for one in found.outcomes} == {"large"}
    first, last = found.outcomes[0], found.outcomes[-1]
    assert (first.task, first.trial, first.success, first.cost_usd, first.category) == ("0", "1", True, 2.0, "c")
    assert (last.propensity, last.judge_cost_usd) == (0.5, 0.1)


def test_the_command_takes_a_ledger(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", url, "--capable", "large@h", "--efficient", "small", "--resamples", "200", "--json"]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["quadrants"]) == (12, {"SAFE": 5, "LOSS": 4, "RESCUE": 0, "HARD": 3})
    assert run([*arguments, "--by", "kind"]) == 2
    assert "--by" in capsys.readouterr().err


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.db"
    assert run(["evaluate", f"sqlite:///{file}", "--all-pairs"]) == 4
    assert not file.exists()
    assert "none.db" in capsys.readouterr().err
