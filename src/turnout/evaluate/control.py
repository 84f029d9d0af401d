"""The noise floor: a model against itself. Pure.

Two runs of one model on one task often end differently. What it loses to itself is no reason to route, so every LOSS and RESCUE
share is to be read beside this. For a task with k trials of which s succeed, two of them, drawn without putting back, are both
successes with probability s(s-1) / k(k-1), and a success before a failure with probability s(k-s) / k(k-1); the control is
the mean over tasks. LOSS and RESCUE of a model against itself are equal by symmetry.
"""

from collections.abc import Iterable

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome
from turnout.statistics.bootstrap import RESAMPLES, SEED, Sums
from turnout.statistics.interval import Interval


class Control(Struct, frozen=True):
    """A model against itself: `tasks` with at least two trials, `runs` in them, and the share of pairs of runs in each set.
    `headroom`: what an oracle that picks the better of two runs of this one model would gain, equal to LOSS."""

    arm: Arm
    tasks: int
    runs: int
    SAFE: Interval
    LOSS: Interval
    RESCUE: Interval
    HARD: Interval
    headroom: Interval


def control(
    outcomes: Iterable[Outcome], arm: Arm, tasks: Iterable[str], resamples: int = RESAMPLES, seed: int = SEED
) -> Control | None:
    """The control of an arm over these tasks; None when none of them has two trials of it."""
    trials: dict[str, dict[str, bool]] = {task: {} for task in tasks}
    for outcome in outcomes:
        if outcome.arm == arm and outcome.task in trials:
            of = trials[outcome.task]
            of.setdefault(outcome.trial or f"\0{len(of)}", outcome.success)
    repeated = {task: list(of.values()) for task, of in trials.items() if len(of) > 1}
    if not repeated:
        return None
    columns: dict[str, list[float]] = {"n": [], "SAFE": [], "LOSS": [], "HARD": []}
    for successes in repeated.values():
        k, s = len(successes), sum(successes)
        pairs = k * (k - 1)
        columns["n"].append(1.0)
        columns["SAFE"].append(s * (s - 1) / pairs)
        columns["LOSS"].append(s * (k - s) / pairs)
        columns["HARD"].append((k - s) * (k - s - 1) / pairs)
    sums = Sums(list(repeated), columns, resamples, seed)
    loss = sums.share("LOSS", "n")
    return Control(
        arm=arm,
        tasks=len(repeated),
        runs=sum(map(len, repeated.values())),
        SAFE=sums.share("SAFE", "n"),
        LOSS=loss,
        RESCUE=loss,
        HARD=sums.share("HARD", "n"),
        headroom=loss,
    )
