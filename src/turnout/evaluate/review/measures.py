"""Measures over evidence, with intervals: each a ratio, or a difference or ratio of ratios, of sums over rows. Pure; the dice
are seeded.

Intervals are percentile bootstraps over clusters (tasks, lanes, sessions); all measures of a source come from the same draws.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct

from turnout.evaluate.review.conditions import SHARES, Measure
from turnout.evaluate.review.evidence import Evidence, Row
from turnout.statistics.bootstrap import Matrix, Sums
from turnout.statistics.interval import CONFIDENCE, Interval
from turnout.statistics.shares import wilson

Columns = Callable[[str], Matrix]


class Formula(Struct, frozen=True):
    """How a measure is made of sums. `of`: the figure; `bottoms`: columns that must not be empty, and of which the one with
    the fewest clusters is what it rests on; `rows`: a row counts where any of these columns is above 0."""

    of: Callable[[Columns], Matrix]
    bottoms: tuple[str, ...]
    rows: tuple[str, ...]


class Measured(Struct, frozen=True):
    """`value` None = nothing to measure on. `n`: clusters it rests on, of the side that has fewer. `rows`: those
    it was made from."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    rows: tuple[Row, ...]


class Side(Struct, frozen=True):
    """One side of a comparison. `n`: runs whose success is known. `cost_usd`: per run of known cost; `per_completed_usd`: the
    cost of the runs of which both are known, over those of them that succeeded. With intervals."""

    n: int
    success: Interval
    cost_usd: Interval
    per_completed_usd: Interval


def _per(top: str, bottom: str) -> Callable[[Columns], Matrix]:
    return lambda of: of(top) / of(bottom)


_SAVING = Formula(
    lambda of: 1.0 - (of("usd_routed") / of("costed_routed")) / (of("usd_capable") / of("costed_capable")),
    ("costed_capable", "costed_routed"),
    ("costed_capable", "costed_routed"),
)
_FORMULAS: dict[Measure, Formula] = {
    "success_loss": Formula(
        lambda of: of("ok_capable") / of("n_capable") - of("ok_routed") / of("n_routed"),
        ("n_capable", "n_routed"),
        ("n_capable", "n_routed"),
    ),
    "success": Formula(_per("ok_routed", "n_routed"), ("n_routed",), ("n_routed",)),
    "saving": Formula(lambda of: 1.0 - of("spent") / of("alone"), ("alone",), ("compared",)),
    "cost_per_completed": Formula(
        lambda of: (of("paid_routed") / of("done_routed")) / (of("paid_capable") / of("done_capable")),
        ("both_capable", "both_routed"),
        ("both_capable", "both_routed"),
    ),
    "judge_failures": Formula(_per("failed", "made"), ("made",), ("made",)),
    "judge_share": Formula(_per("judge_usd", "known_usd"), ("priced",), ("priced",)),
    "turn_errors": Formula(_per("errors", "turns"), ("turns",), ("turns",)),
}


def formula(measure: Measure, evidence: Evidence) -> Formula:
    """How a measure is made of this evidence."""
    return _SAVING if measure == "saving" and evidence.source != "turns" else _FORMULAS[measure]


class Drawn:
    """Evidence with its draws."""

    def __init__(self, evidence: Evidence, resamples: int, seed: int) -> None:
        self.evidence = evidence
        rows = evidence.rows
        columns = {name: [row.values[place] for row in rows] for place, name in enumerate(evidence.columns)}
        self._sums = Sums([row.cluster for row in rows], columns, resamples, seed)

    def measure(self, measure: Measure, confidence: float) -> Measured:
        """The figure, with an interval of this confidence."""
        return self._measured(formula(measure, self.evidence), confidence, measure)

    def sides(self, confidence: float = CONFIDENCE) -> dict[str, Side]:
        """Both sides of a comparison, each by itself; {} for turns."""
        if self.evidence.source == "turns":
            return {}
        return {arm: self._side(arm, confidence) for arm in ("capable", "routed")}

    def _side(self, arm: str, confidence: float) -> Side:
        def figure(top: str, bottom: str, told: str, is_share: bool = False) -> Interval:
            how = Formula(_per(f"{top}_{arm}", f"{bottom}_{arm}"), (f"{told}_{arm}",), (f"{told}_{arm}",))
            found = self._measured(how, confidence, "success" if is_share else None)
            return Interval(found.value, found.low, found.high)

        return Side(
            n=int(self._columns(self._sums.total[None])(f"n_{arm}")[0]),
            success=figure("ok", "n", "n", is_share=True),
            cost_usd=figure("usd", "costed", "costed"),
            per_completed_usd=figure("paid", "done", "both"),
        )

    def _measured(self, how: Formula, confidence: float, measure: Measure | None) -> Measured:
        sums = self._sums
        n = min(self._clusters(name) for name in how.bottoms)
        rows = counting(self.evidence, how)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(how.of(self._columns(sums.total[None]))[0])
            drawn = how.of(self._columns(sums.drawn))
        if not n or not np.isfinite(value):
            return Measured(None, None, None, n, rows)
        drawn = drawn[np.isfinite(drawn)]
        low, high = (float(x) for x in np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]))
        if low == high:
            # Nothing varies between clusters, so the draws know no scatter; what is seen is not all there is.
            low, high = self._bounds(measure, how, value, confidence, (low, high))
        return Measured(value, min(low, value), max(high, value), n, rows)

    def _bounds(
        self, measure: Measure | None, how: Formula, value: float, confidence: float, drawn: tuple[float, float]
    ) -> tuple[float, float]:
        """An interval for shares that are the same in every cluster: Wilson's over clusters."""
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        if measure in SHARES:
            n = self._clusters(how.bottoms[0])
            return wilson(round(value * n), n, z)
        if measure == "success_loss":
            sides = []
            for arm in ("capable", "routed"):
                n = self._clusters(f"n_{arm}")
                total = self._columns(self._sums.total[None])
                share = float(total(f"ok_{arm}")[0] / total(f"n_{arm}")[0])
                sides.append(wilson(round(min(max(share, 0.0), 1.0) * n), n, z))
            (low, high), (low_routed, high_routed) = sides
            return low - high_routed, high - low_routed
        return drawn

    def _clusters(self, column: str) -> int:
        return int(np.count_nonzero(self._sums.by_task[:, self._sums.names[column]]))

    def _columns(self, sums: Matrix) -> Columns:
        return lambda name: sums[:, self._sums.names[name]]


def counting(evidence: Evidence, how: Formula) -> tuple[Row, ...]:
    """The rows that a figure was made from."""
    places = [evidence.columns.index(name) for name in how.rows]
    return tuple(row for row in evidence.rows if any(row.values[place] > 0 for place in places))


def between(rows: Sequence[Row], start: float, end: float) -> tuple[Row, ...]:
    """The rows of a period; those that do not say when are in every one."""
    return tuple(row for row in rows if row.at is None or start <= row.at < end)
