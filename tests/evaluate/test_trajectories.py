"""Recorded runs: what was seen before each reply."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.records import turn
from tests.outcomes import written
from tests.trajectories import messages, row

from turnout.evaluate.recordings import read_conversation
from turnout.evaluate.restart import cost_up_to
from turnout.evaluate.trajectories import before_replies, read, read_ledger
from turnout.ledger.outcome import Outcome
from turnout.ledger.store import Ledger
from turnout.signals import observe


def test_each_reply_has_the_signals_of_what_came_before_it() -> None:
    said = messages(7, fails_from=3)
    seen = list(before_replies(json.dumps({"messages": said}).encode()))
    prefixes = [said[:at] for at, message in enumerate(said) if message["role"] == "assistant"]
    assert seen == [observe(read_conversation(json.dumps({"messages": one}).encode()).conversation) for one in prefixes]
    assert len(seen) == 7


def test_a_run_is_as_long_as_it_has_replies_whatever_its_row_says(tmp_path: Path) -> None:
    file = written(tmp_path / "runs.jsonl", [row("a", "small", True, 1.0, steps=99, messages=messages(4))])
    found = read(file)
    (run,) = found.read.outcomes
    assert (run.steps, len(found.of(run))) == (4, 4)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "messages"),
        ({"messages": []}, "no reply"),
        ({"messages": [{"role": "user", "content": "Hello"}]}, "no reply"),
        ({"messages": [{"role": "nobody", "content": "Hello"}]}, "role"),
        ({"messages": "none"}, "messages"),
    ],
)
def test_lines_without_a_run_are_counted_and_named(tmp_path: Path, more: dict[str, object], reason: str) -> None:
    whole = row("a", "small", True, 1.0, messages=messages(2))
    found = read(written(tmp_path / "runs.jsonl", [row("b", "small", True, 1.0, **more), whole, "{"]))
    assert (len(found.steps), found.read.rows, found.read.damaged, len(found.read.outcomes)) == (1, 3, 2, 1)
    assert reason in found.read.damaged_lines[0].reason


def test_sessions_of_a_ledger_are_runs_where_one_model_served_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    ledger = Ledger.open(url)
    served = {"whole": ["m"] * 3, "mixed": ["m", "n"], "blind": ["m"], "unpriced": ["m"] * 2}
    for number, (session, models) in enumerate(served.items()):
        for at, model in enumerate(models):
            more: dict[str, Any] = {"signals": None} if session == "blind" else {}
            if session == "unpriced" and at:
                more["cost_usd"] = None
            ledger.append(turn(10 * number + at, session=session, model=model, **more))
        ledger.append(turn(100 + number, session=session, agent="child", agent_kind="subagent", model="other"))
        ledger.add_outcome(Outcome(session=session, task=session, model="m", success=True, cost_usd=0.5))
    ledger.add_outcome(Outcome(session="nowhere", task="a", model="m", success=True))
    ledger.add_outcome(Outcome(task="b", model="m", success=True))
    ledger.close()
    ledger = Ledger.read(url)
    found = read_ledger(ledger, url)
    ledger.close()
    runs = {run.task: run for run in found.read.outcomes}
    assert set(runs) == {"whole", "unpriced"}
    assert [len(found.of(runs[name])) for name in ("whole", "unpriced")] == [3, 2]
    # A run's cost up to a step is that of its calls, where every one of them has a cost.
    assert (cost_up_to(runs["whole"], 2), cost_up_to(runs["unpriced"], 1)) == (pytest.approx(0.002), 0.25)
    assert found.read.damaged == 4
    reasons = [one.reason for one in found.read.damaged_lines]
    assert [next(word for word in ("m, n", "capture", "no session") if word in reason) for reason in reasons] == [
        "m, n", "capture", "no session", "no session",
    ]  # fmt: skip
