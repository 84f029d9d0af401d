"""Recorded runs made for tests: tasks whose weak run fails after so many calm steps, or never."""

import json
from typing import Any

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome, Read
from turnout.evaluate.trajectories import Trajectories, before_replies

BIG, SMALL = Arm("big"), Arm("small")
FAILING = 'Traceback (most recent call last):\n  File "{0}.py", line 1, in <module>\n{1}: {0}'
FAILURES = ("KeyError", "ValueError", "TypeError", "AttributeError", "IndexError", "OSError")
"""Another one each time: the same again would be a rule of its own, which no threshold keeps back."""


def messages(steps: int, fails_from: int | None = None) -> list[dict[str, Any]]:
    """A conversation of `steps` replies, each with a call; from reply `fails_from` (counted from 0) on the calls fail."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Make it work."}]
    for n in range(steps):
        fails = fails_from is not None and n >= fails_from
        call = {"id": f"c{n}", "type": "function"}
        call["function"] = {"name": "bash", "arguments": json.dumps({"command": f"python a{n}.py"})}
        said.append({"role": "assistant", "content": f"Step {n}.", "tool_calls": [call]})
        failing = FAILING.format(f"part_{chr(97 + n)}", FAILURES[n % len(FAILURES)])
        told = {"content": failing, "returncode": 1} if fails else {"content": f"result {n}", "returncode": 0}
        said.append({"role": "tool", "tool_call_id": f"c{n}", **told})
    return said


def row(task: str, model: str, success: bool, cost_usd: float | None = None, **more: Any) -> dict[str, Any]:
    """A line of an outcome or trajectory file."""
    return {"task_id": task, "model": model, "success": success, "cost_usd": cost_usd, **more}


def rows(tasks: int, trials: int = 1) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Outcomes of `big` and trajectories of `small` over tasks of four kinds, in turn: a calm success of both; a calm failure
    that big solves; and two whose weak run fails with failing calls from its third step on, that big solves or does not."""
    outcomes, runs = [], []
    for n in range(tasks):
        kind = n % 4
        for trial in range(trials):
            steps = 6 + (n + trial) % 5
            outcomes.append(row(f"task{n}", "big", kind != 3, 10.0, trial=trial))
            said = messages(steps, None if kind < 2 else 2)
            runs.append(row(f"task{n}", "small", kind == 0, 1.0, trial=trial, messages=said))
    return outcomes, runs


def recorded(runs: list[dict[str, Any]]) -> Trajectories:
    """The trajectories of rows, as a file of them would be read."""
    outcomes, steps = [], {}
    for number, one in enumerate(runs, 1):
        seen = tuple(before_replies(json.dumps(one).encode()))
        told = (one["success"], one["cost_usd"])
        outcomes.append(Outcome(number, one["task_id"], SMALL, str(one["trial"]), *told, steps=len(seen)))
        steps[SMALL, number] = seen
    return Trajectories(Read("runs", len(runs), {SMALL: len(runs)}, 0, 0, (), tuple(outcomes)), steps)
