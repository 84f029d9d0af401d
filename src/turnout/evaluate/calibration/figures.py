"""What became of units under a point of the sweep, and its figures on one side of the split. Pure."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from turnout.evaluate.baselines import Played, is_costed, mixed, weight_of
from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import oracle
from turnout.evaluate.restart import restart
from turnout.statistics.bootstrap import Sums, resample
from turnout.statistics.interval import CONFIDENCE, Interval
from turnout.statistics.power import tasks_needed
from turnout.statistics.shares import wilson


class Side(Struct, frozen=True):
    """A point on one side of the split. `success`, `moved` and `lost`: shares of units, `lost` those that the capable model
    solves and this does not, weighted; `cost_usd`: per unit whose costs are known, None without any."""

    success: float
    cost_usd: float | None
    lost: float
    moved: float


class Judged(Struct, frozen=True):
    """As `Side`, with 95 % intervals over tasks."""

    success: Interval
    cost_usd: Interval
    lost: Interval
    moved: Interval


class Difference(Struct, frozen=True):
    """The chosen settings less another way of choosing, paired by task. `tasks_needed`: in all, to settle which is cheaper if
    what was seen lasts; None when it is settled, or no number would."""

    success: Interval
    cost_usd: Interval
    lost: Interval
    tasks_needed: int | None = None


def lost(unit: Unit, played: Played, weights: Mapping[str, float]) -> float:
    """How much of a lost task a unit is: solved by the capable model, and not by this; weighted by category."""
    return weight_of(weights, unit.category) * unit.capable.success * (1 - played.success)


def side(units: Sequence[Unit], played: Sequence[Played], weights: Mapping[str, float]) -> Side:
    """The figures of what became of units."""
    n = len(units)
    costs = [
        one.cost_usd for unit, one in zip(units, played, strict=True) if is_costed(unit) and one.cost_usd is not None
    ]
    return Side(
        sum(one.success for one in played) / n,
        math.fsum(costs) / len(costs) if costs else None,
        math.fsum(lost(unit, one, weights) for unit, one in zip(units, played, strict=True)) / n,
        sum(1 - (one.efficient or 0.0) for one in played) / n,
    )


def played_by(units: Sequence[Unit], moves: Sequence[int | None]) -> list[Played]:
    """What became of units whose efficient runs were given up after so many replies."""
    return [restart(unit, move) for unit, move in zip(units, moves, strict=True)]


class UpperBounds:
    """The upper ends of the intervals of many points' shares of tasks lost, from the same resamples."""

    def __init__(self, units: Sequence[Unit], weights: Mapping[str, float], resamples: int, seed: int) -> None:
        numbers = {task: n for n, task in enumerate(sorted({unit.task for unit in units}))}
        self._units = units
        self._weights = weights
        self._of = [numbers[unit.task] for unit in units]
        counts = np.bincount(self._of, minlength=len(numbers)).astype(np.float64)
        # How often each task is drawn: resamples of the identity.
        self._drawn = resample(np.eye(len(numbers)), resamples, seed)
        self._n = self._drawn @ counts
        self._of_none = wilson(0, len(numbers))[1]

    def of(self, played: Sequence[Played]) -> float:
        """The upper end; where nothing is lost, Wilson's over tasks."""
        each = [lost(unit, one, self._weights) for unit, one in zip(self._units, played, strict=True)]
        by_task = np.bincount(self._of, each, self._drawn.shape[1])
        if not by_task.any():
            return self._of_none
        return float(np.quantile(self._drawn @ by_task / self._n, (1 + CONFIDENCE) / 2))


class Figures:
    """Ways of choosing over the units of one side, from the same resamples."""

    def __init__(
        self,
        units: Sequence[Unit],
        plays: Mapping[str, Sequence[Played]],
        weights: Mapping[str, float],
        resamples: int,
        seed: int,
    ) -> None:
        self.plays = plays
        costed = [is_costed(unit) for unit in units]
        columns: dict[str, list[float]] = {"n": [1.0] * len(units), "costed": [float(one) for one in costed]}
        for name, played in plays.items():
            both = list(zip(units, played, strict=True))
            columns[f"success {name}"] = [one.success for one in played]
            columns[f"cost {name}"] = [
                one.cost_usd or 0.0 if known else 0.0 for one, known in zip(played, costed, strict=True)
            ]
            columns[f"lost {name}"] = [lost(unit, one, weights) for unit, one in both]
            columns[f"moved {name}"] = [1 - (one.efficient or 0.0) for one in played]
        self.sums = Sums([unit.task for unit in units], columns, resamples, seed)

    def judged(self, name: str) -> Judged:
        """The figures of one way of choosing."""
        sums = self.sums
        lost = sums.ratio(f"lost {name}", "n")
        return Judged(
            sums.share(f"success {name}", "n"),
            sums.ratio(f"cost {name}", "costed"),
            # Weighted, it is no share any more: 1 is not all.
            sums.share(f"lost {name}", "n") if not lost.value else lost,
            sums.share(f"moved {name}", "n"),
        )

    def difference(self, name: str, other: str) -> Difference:
        """One way less another."""
        cost = {f"cost {name}": 1.0, f"cost {other}": -1.0}
        made = self.sums.ratio(cost, "costed")
        is_open = made.low is not None and made.high is not None and made.low <= 0 <= made.high
        needed = tasks_needed(self.sums.tasks, made.value or 0.0, self.sums.spread(cost, "costed")) if is_open else None
        return Difference(
            self.sums.ratio({f"success {name}": 1.0, f"success {other}": -1.0}, "n"),
            made,
            self.sums.ratio({f"lost {name}": 1.0, f"lost {other}": -1.0}, "n"),
            needed,
        )


def baselines(units: Sequence[Unit], chosen: Sequence[Played]) -> dict[str, list[Played]]:
    """What either model alone, a random mix that costs as much as `chosen`, and the oracle make of units."""
    found = {
        "capable": [Played(float(unit.capable.success), unit.capable.cost_usd, 0.0) for unit in units],
        "efficient": [Played(float(unit.efficient.success), unit.efficient.cost_usd, 1.0) for unit in units],
    }
    share = _share(units, chosen)
    found["random_mix"] = [mixed(unit, share) for unit in units]
    picked = [(unit, oracle(unit)) for unit in units]
    found["oracle"] = [Played(float(run.success), run.cost_usd, float(run is unit.efficient)) for unit, run in picked]
    return found


def _share(units: Sequence[Unit], chosen: Sequence[Played]) -> float:
    """The share of units that a mix sends to the efficient model to cost as much; without costs, as many as never move."""
    known = [(unit, one) for unit, one in zip(units, chosen, strict=True) if is_costed(unit)]
    dear = math.fsum(unit.capable.cost_usd or 0.0 for unit, _ in known)
    cheap = math.fsum(unit.efficient.cost_usd or 0.0 for unit, _ in known)
    if not known or dear <= cheap:
        return sum(one.efficient or 0.0 for one in chosen) / len(chosen)
    cost = math.fsum(one.cost_usd or 0.0 for _, one in known)
    return min(max((dear - cost) / (dear - cheap), 0.0), 1.0)
