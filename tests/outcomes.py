"""Outcomes and units made for tests, and outcome files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Call, Outcome
from turnout.evaluate.pairing import Unit

BIG, SMALL, ROUTER = Arm("big"), Arm("small"), Arm("router")


def run(
    arm: Arm, success: bool, cost_usd: float | None = None, task: str = "t", trial: str = "", **more: Any
) -> Outcome:
    """One run of a task."""
    return Outcome(more.pop("line", 1), task, arm, trial, success, cost_usd, **more)


def unit(
    capable: tuple[bool, float | None],
    efficient: tuple[bool, float | None],
    task: str = "t",
    trial: str = "",
    category: str = "",
    routed: tuple[bool, float | None] | None = None,
    **more: Any,
) -> Unit:
    """A unit from success and cost of its runs; `more` goes to the efficient run."""
    last = None if routed is None else run(ROUTER, *routed, task, trial)
    return Unit(
        0, task, trial, category, run(BIG, *capable, task, trial), run(SMALL, *efficient, task, trial, **more), last
    )


def called(*costs: float) -> tuple[Call, ...]:
    """Calls that cost this."""
    return tuple(Call(10, 0, 1, cost) for cost in costs)


def row(task: str, model: str, success: object, cost_usd: object = None, **more: object) -> dict[str, object]:
    """A line of an outcome file."""
    return {"task_id": task, "model": model, "success": success, "cost_usd": cost_usd, **more}


def written(path: Path, rows: Sequence[object]) -> Path:
    """An outcome file; texts are lines as they stand."""
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    return path


COSTS = st.none() | st.floats(0, 100, allow_nan=False).map(lambda x: round(x, 3))
ENDS = st.tuples(st.booleans(), COSTS)


@st.composite
def units(draw: st.DrawFn, most: int = 12, known: bool = False) -> list[Unit]:
    """Units of a few tasks, some with repeated trials. `known`: every cost is."""
    ends = st.tuples(st.booleans(), st.floats(0, 100).map(lambda x: round(x, 3))) if known else ENDS
    found = []
    for number in range(draw(st.integers(1, most))):
        task = f"t{draw(st.integers(0, 5))}"
        made = unit(draw(ends), draw(ends), task, str(number), draw(st.sampled_from(["", "a", "b"])))
        found.append(Unit(number, *(getattr(made, name) for name in Unit.__struct_fields__[1:])))
    return found


def swapped(one: Unit) -> Unit:
    """The unit with its arms the other way round."""
    return Unit(one.number, one.task, one.trial, one.category, one.efficient, one.capable, one.routed)
