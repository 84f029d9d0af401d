"""One metric of both arms: figures for people, and the evidence against the candidate."""

import math

from msgspec import Struct

from turnout.routing.canary.watching import Metric
from turnout.sequential.mean import Mean
from turnout.sequential.rate import Interval
from turnout.sequential.worse import Evidence, Worse

HIGHER_IS_BETTER: frozenset[Metric] = frozenset(("success", "cache"))
SCALED: frozenset[Metric] = frozenset(("cost", "latency"))
"""Metrics without a bound of their own: the first lanes set their scale."""


class ArmFigures(Struct, frozen=True):
    """`lanes` that counted, and the mean of the metric in its own unit (a share, USD, seconds); None without lanes."""

    lanes: int
    mean: float | None


class MetricFigures(Struct, frozen=True):
    """A metric of both arms. `evidence`: against the candidate; at `limit` it is stopped. `low`, `high`: where candidate minus
    incumbent lies in the metric's own unit, at all times together with 95 % probability (cost and latency: cut at their scale);
    None while the scale is unknown."""

    candidate: ArmFigures
    incumbent: ArmFigures
    margin: float
    evidence: float
    limit: float
    low: float | None
    high: float | None


class Gauged(Struct, frozen=True):
    """All that a `Gauge` knows, to go on from."""

    scale: float | None
    first: list[float]
    evidence: Evidence
    sums: tuple[float, float]
    counts: tuple[int, int]
    means: tuple[Mean, Mean]


class Gauge:
    """Folds the values of lanes. `scale_lanes`: how many of them set the scale of an unbounded metric."""

    def __init__(self, metric: Metric, margin: float, limit: float, scale_lanes: int) -> None:
        self.metric = metric
        self.margin = margin
        self.limit = limit
        self._scale_lanes = scale_lanes
        self._scale: float | None = None if metric in SCALED else 1.0
        self._first: list[float] = []
        self._worse = Worse(margin)
        self._sums = [0.0, 0.0]
        self._counts = [0, 0]
        # Half of 5 % for each arm.
        self._means = [Mean(0.025), Mean(0.025)]

    def add(self, candidate: bool, value: float, share: float) -> bool:
        """One lane's value; whether the evidence has reached the limit."""
        self._sums[candidate] += value
        self._counts[candidate] += 1
        if self._scale is None:
            self._first.append(value)
            if len(self._first) >= self._scale_lanes:
                self._scale = sorted(self._first)[math.ceil(0.95 * len(self._first)) - 1]
            return False
        scaled = min(1.0, value / self._scale) if self._scale > 0 else float(value > 0)
        self._means[candidate] = self._means[candidate].after(scaled)
        self._worse.add(candidate, scaled if self.metric in HIGHER_IS_BETTER else 1.0 - scaled, share)
        return self._worse.evidence >= self.limit

    def kept(self) -> Gauged:
        """What it knows by now."""
        (s, t), (m, n), (a, b) = self._sums, self._counts, self._means
        return Gauged(self._scale, list(self._first), self._worse.kept(), (s, t), (m, n), (a, b))

    def resume(self, known: Gauged) -> None:
        """Go on from there. Raises ValueError for what another kind of gauge knew."""
        self._worse.resume(known.evidence)
        self._scale, self._first = known.scale, list(known.first)
        self._sums, self._counts, self._means = list(known.sums), list(known.counts), list(known.means)

    def _difference(self) -> Interval | None:
        if self._scale is None:
            return None
        incumbent, candidate = (mean.interval for mean in self._means)
        return Interval((candidate.low - incumbent.high) * self._scale, (candidate.high - incumbent.low) * self._scale)

    def figures(self) -> MetricFigures:
        """What is known by now."""
        arms = [ArmFigures(n, total / n if n else None) for n, total in zip(self._counts, self._sums, strict=True)]
        between = self._difference()
        return MetricFigures(
            candidate=arms[1],
            incumbent=arms[0],
            margin=self.margin,
            evidence=self._worse.evidence,
            limit=self.limit,
            low=None if between is None else between.low,
            high=None if between is None else between.high,
        )
