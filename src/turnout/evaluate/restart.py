"""Escalation simulated on whole recorded runs: the switch as a restart on the strong model. Pure.

Whole-run records do not say what a switch in mid-run would have done. What they allow is a restart: the weak run is thrown
away at the switch and the strong model does the task from the beginning, so its recorded outcome and full cost count, beside
the weak cost up to the switch. A real escalation keeps the work done so far, which may help or mislead; no success is
claimed for one.
"""

from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.baselines import Played
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit

ASSUMPTION = (
    "simulated: a weak run still going after {step} steps is thrown away and the capable model starts afresh (weak cost up "
    "to the switch "
    "+ full capable cost, recorded capable outcome); a weak run that had ended by then stands"
)
BY_STEP = (
    "each step of a weak run is charged alike, as costs of single steps are not recorded; "
    "early steps are cheaper, so this is too dear"
)
BY_CALL = "weak cost up to the switch is that of the recorded calls"


class Sweep(Struct, frozen=True):
    """After how many steps to give up: the step numbers tried, and how weak cost up to the switch was known. `reason`: why
    none."""

    steps: tuple[int, ...] = ()
    weak_cost: str = ""
    reason: str = ""


def sweep(units: Sequence[Unit], points: int = 9) -> Sweep:
    """Step numbers to give up after: where the weak runs' lengths split evenly. Empty where steps are not recorded for every
    unit."""
    known = sorted(unit.efficient.steps for unit in units if unit.efficient.steps is not None)
    if not units or len(known) < len(units):
        missing = len(units) - len(known)
        return Sweep(
            reason=f"no restarts are simulated: {missing} of {len(units)} runs of the efficient model have no recorded steps"
        )
    steps = sorted({known[(len(known) * i) // (points + 1)] for i in range(1, points + 1)} - {0})
    by_call = all(_call_costs(unit.efficient) is not None for unit in units)
    return Sweep(tuple(steps), BY_CALL if by_call else BY_STEP)


def restart(unit: Unit, after_step: int | None) -> Played:
    """A unit whose weak run is thrown away after this step (None = never), unless it has ended by then. Raises ValueError
    when it is not known how long the weak run was."""
    weak, strong = unit.efficient, unit.capable
    if weak.steps is None and after_step is not None:
        raise ValueError(f"line {weak.line}: the weak run's steps are not recorded")
    if after_step is None or weak.steps is None or weak.steps <= after_step:
        return Played(float(weak.success), weak.cost_usd, 1.0)
    before = cost_up_to(weak, after_step)
    cost = None if before is None or strong.cost_usd is None else before + strong.cost_usd
    return Played(float(strong.success), cost, 0.0)


def cost_up_to(run: Outcome, step: int) -> float | None:
    """What a run had cost after so many steps: its calls where their costs are recorded, else an equal part for each step."""
    calls = _call_costs(run)
    if calls is not None:
        return sum(calls[:step])
    if run.cost_usd is None or not run.steps:
        return None
    return run.cost_usd * min(step, run.steps) / run.steps


def _call_costs(run: Outcome) -> list[float] | None:
    """The cost of each step, where a step is a call and all are recorded."""
    costs = [call.cost_usd for call in run.calls if call.cost_usd is not None]
    return costs if costs and len(costs) == len(run.calls) == run.steps else None
