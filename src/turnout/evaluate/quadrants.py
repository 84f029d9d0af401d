"""The four sets of tasks by the outcome of both tiers, and the oracle that knows them. Pure."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit

Quadrant: TypeAlias = Literal["SAFE", "LOSS", "RESCUE", "HARD"]
QUADRANTS: tuple[Quadrant, ...] = ("SAFE", "LOSS", "RESCUE", "HARD")

DEFINITIONS = {
    "unit": "one task in one trial, run by both tiers; intervals resample tasks, so repeated trials count as one piece of "
    "evidence",
    "SAFE": "both succeed",
    "LOSS": "the capable model succeeds, the efficient one fails: a wrong downgrade costs quality",
    "RESCUE": "the capable model fails, the efficient one succeeds: the cheaper model rescues the task",
    "HARD": "both fail",
    "oracle": "per unit the cheaper success, else the cheaper failure (equal or unknown costs: the efficient model)",
    "random mix": "a coin sends this share of the units to the efficient model: the expected success and cost",
    "cost": "USD; only units whose cost is known for every arm compared; nothing is filled in",
    "cost per completed": "the cost of all those units over the number that succeeded",
}
"""Printed on every report."""


def quadrant(unit: Unit) -> Quadrant:
    """Which of the four sets a unit belongs to."""
    if unit.capable.success:
        return "SAFE" if unit.efficient.success else "LOSS"
    return "RESCUE" if unit.efficient.success else "HARD"


def count(units: Iterable[Unit]) -> dict[Quadrant, int]:
    """How many units each set holds."""
    counts: dict[Quadrant, int] = dict.fromkeys(QUADRANTS, 0)
    for unit in units:
        counts[quadrant(unit)] += 1
    return counts


def oracle(unit: Unit) -> Outcome:
    """The run that who knew both outcomes would have chosen: the cheaper success, else the cheaper failure.

    Where the costs are equal, or one is unknown, that is the run of the efficient model.
    """
    capable, efficient = unit.capable, unit.efficient
    if capable.success != efficient.success:
        return capable if capable.success else efficient
    if capable.cost_usd is None or efficient.cost_usd is None:
        return efficient
    return capable if capable.cost_usd < efficient.cost_usd else efficient
