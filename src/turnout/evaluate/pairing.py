"""Units of comparison: the same task and trial run by each arm. Pure.

Rule. Within a task, runs with the same trial label belong together. Where a task's arms have no label in common (or none was
recorded), the first run of one arm belongs to the first of the other, the second to the second, in file order. What is left
over is counted and not compared. A label that an arm has twice in one task counts once, the first time.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome


class Unit(Struct, frozen=True):
    """One task in one trial, run by both arms, and by the router under test where there is one. `number`: counted from 0."""

    number: int
    task: str
    trial: str
    category: str
    capable: Outcome
    efficient: Outcome
    routed: Outcome | None = None


class Paired(Struct, frozen=True):
    """`units` in order of task and trial. `left_over`: runs of each arm without a partner; `repeated`: runs whose label the
    arm already had."""

    units: tuple[Unit, ...]
    left_over: dict[str, int]
    repeated: int

    @property
    def tasks(self) -> int:
        """How many tasks the units belong to."""
        return len({unit.task for unit in self.units})


def pair(outcomes: Iterable[Outcome], capable: Arm, efficient: Arm, routed: Arm | None = None) -> Paired:
    """The units that all arms ran. Raises ValueError when two of the arms are the same."""
    arms = [capable, efficient] if routed is None else [capable, efficient, routed]
    if len(set(arms)) != len(arms):
        raise ValueError("two of the arms are the same; there is nothing to compare")
    runs: dict[str, dict[Arm, dict[str, Outcome]]] = {}
    repeated = 0
    for outcome in outcomes:
        if outcome.arm in arms:
            of = runs.setdefault(outcome.task, {}).setdefault(outcome.arm, {})
            # Runs without a label are told apart by their order; no label can look like that.
            label = outcome.trial or f"\0{sum(key.startswith(chr(0)) for key in of):09d}"
            repeated += label in of
            of.setdefault(label, outcome)
    units: list[Unit] = []
    left_over = {str(arm): 0 for arm in arms}
    for task in sorted(runs):
        matched = _matched([runs[task].get(arm, {}) for arm in arms])
        for arm in arms:
            left_over[str(arm)] += len(runs[task].get(arm, {})) - len(matched)
        for together in matched:
            units.append(_unit(len(units), together))
    return Paired(tuple(units), left_over, repeated)


def _matched(runs: Sequence[dict[str, Outcome]]) -> list[list[Outcome]]:
    shared = set(runs[0]).intersection(*runs[1:])
    if shared:
        return [[of[label] for of in runs] for label in sorted(shared, key=_natural)]
    in_turn = zip_longest(*(list(of.values()) for of in runs))
    return [list(together) for together in in_turn if None not in together]


def _natural(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdecimal() else (1 << 62, label)


def _unit(number: int, together: Sequence[Outcome]) -> Unit:
    category = next((outcome.category for outcome in together if outcome.category), "")
    first = together[0]
    return Unit(number, first.task, first.trial, category, *together)
