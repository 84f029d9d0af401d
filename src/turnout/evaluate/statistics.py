"""Intervals and paired tests. Pure; the dice are seeded.

Intervals: percentile bootstrap over tasks. A task is drawn with all its trials, since trials of one task are not independent
evidence. A share that is the same in every task gives the bootstrap nothing to draw; where it is 0 or 1 its interval is the
Wilson interval over tasks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy.stats import binomtest

from turnout.evaluate.scores import wilson

RESAMPLES = 10_000
SEED = 1
CONFIDENCE = 0.95
POWER = 0.8

Matrix: TypeAlias = NDArray[np.float64]
Told: TypeAlias = Callable[[int, int], None]
"""Told how many resamples are done, of how many."""

Terms: TypeAlias = str | Mapping[str, float]
"""A column, or a sum of columns with weights."""


class Interval(Struct, frozen=True):
    """A figure and its 95 % interval. `value` None = nothing to compute it from; then so are the bounds."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "-"
        return f"{self.value:.3f} [{self.low:.3f} {self.high:.3f}]"

    def scaled(self, factor: float) -> "Interval":
        """The figure and its bounds times a positive factor."""
        if self.value is None or self.low is None or self.high is None:
            return self
        return Interval(self.value * factor, self.low * factor, self.high * factor)


UNKNOWN = Interval(None)


class Sums:
    """Columns of numbers, summed by task, and what their ratios are worth.

    Every figure of a report is a ratio of sums over units: successes over units, dollars over units, dollars over successes. All
    are computed from the same resamples, so differences between arms are paired.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        columns: Mapping[str, Sequence[float]],
        resamples: int = RESAMPLES,
        seed: int = SEED,
        told: Told | None = None,
    ) -> None:
        """`tasks`: the task of each unit; `columns`: a number for each unit."""
        self.names = {name: index for index, name in enumerate(columns)}
        _, of = np.unique(np.asarray(tasks, dtype=object), return_inverse=True) if tasks else ([], np.zeros(0, int))
        self.tasks = int(of.max()) + 1 if len(of) else 0
        self.by_task: Matrix = np.stack(
            [
                np.bincount(of, np.asarray(list(values), np.float64), self.tasks).astype(np.float64)
                for values in columns.values()
            ],
            axis=1,
        )
        self.total: Matrix = self.by_task.sum(axis=0)
        self.drawn = resample(self.by_task, resamples, seed, told)

    def ratio(self, top: Terms, bottom: Terms) -> Interval:
        """The ratio of two sums with its interval."""
        above, below = self._sum(self.total[None], top)[0], self._sum(self.total[None], bottom)[0]
        if not below:
            return UNKNOWN
        value = float(above / below)
        drawn_below = self._sum(self.drawn, bottom)
        some = drawn_below != 0
        if not some.any():
            return Interval(value)
        ratios = self._sum(self.drawn, top)[some] / drawn_below[some]
        low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        # Rounding must not put a figure outside of its own interval.
        return Interval(value, min(float(low), value), max(float(high), value))

    def figure(self, of: Callable[[Callable[[str], Matrix]], Matrix]) -> Interval:
        """Any figure of the sums, `of` a function from columns to it, with its interval over the resamples that have one."""
        value = float(of(lambda name: self.total[None][:, self.names[name]])[0])
        if math.isnan(value):
            return UNKNOWN
        drawn = of(lambda name: self.drawn[:, self.names[name]])
        known = drawn[~np.isnan(drawn)]
        if not len(known):
            return Interval(value)
        low, high = np.quantile(known, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return Interval(value, min(float(low), value), max(float(high), value))

    def share(self, top: Terms, bottom: str) -> Interval:
        """A share in [0, 1]: as `ratio`, with Wilson's interval over tasks where it is 0 or 1."""
        found = self.ratio(top, bottom)
        if found.value is None or 0 < found.value < 1:
            return found
        tasks = int(np.count_nonzero(self.by_task[:, self.names[bottom]]))
        low, high = wilson(round(found.value) * tasks, tasks)
        return Interval(found.value, low, high)

    def spread(self, top: Terms, bottom: Terms) -> float:
        """The standard error of a ratio over tasks."""
        below = self._sum(self.drawn, bottom)
        some = below != 0
        return float(np.std(self._sum(self.drawn, top)[some] / below[some])) if some.any() else math.nan

    def _sum(self, rows: Matrix, terms: Terms) -> Matrix:
        if isinstance(terms, str):
            return rows[:, self.names[terms]]
        found: Matrix = sum((rows[:, self.names[name]] * weight for name, weight in terms.items()), np.zeros(len(rows)))
        return found


def resample(by_task: Matrix, resamples: int = RESAMPLES, seed: int = SEED, told: Told | None = None) -> Matrix:
    """Sums of columns over tasks drawn with replacement, as many as there are: one row for each resample."""
    tasks, columns = by_task.shape
    drawn = np.zeros((resamples, columns))
    if not tasks:
        return drawn
    dice = np.random.default_rng(seed)
    for done in range(resamples):
        times = np.bincount(dice.integers(0, tasks, tasks), minlength=tasks)
        drawn[done] = times @ by_task
        if told is not None and done % 100 == 99:
            told(done + 1, resamples)
    return drawn


class PairedTest(Struct, frozen=True):
    """A two-sided paired test. `name` says which; `only_first`, `only_second`: pairs in which just one side succeeds."""

    name: str
    p: float | None
    pairs: int
    only_first: int
    only_second: int


def mcnemar(pairs: Sequence[tuple[bool, bool]]) -> PairedTest:
    """McNemar's exact test: whether the two sides succeed equally often, from the pairs in which they differ. Pairs must be
    independent: one for each task."""
    first = sum(a and not b for a, b in pairs)
    second = sum(b and not a for a, b in pairs)
    p = float(binomtest(first, first + second, 0.5).pvalue) if first + second else 1.0 if pairs else None
    return PairedTest("McNemar, exact, two-sided", p, len(pairs), first, second)


def sign_flip(differences: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> float | None:
    """Two-sided p of a sign-flip permutation test: how often tasks whose differences have random signs add up to as much.

    `differences`: one for each task, such as success rates over trials. None without any.
    """
    values = np.asarray([d for d in differences if d], float)
    if not len(differences):
        return None
    if not len(values):
        return 1.0
    seen = abs(values.sum())
    dice = np.random.default_rng(seed)
    extreme = 1
    for start in range(0, resamples, 1000):
        signs = dice.integers(0, 2, (min(1000, resamples - start), len(values))) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ values) >= seen - 1e-12))
    return extreme / (resamples + 1)


def tasks_needed(tasks: int, distance: float, spread: float, power: float = POWER) -> int | None:
    """How many tasks, in all, would show a figure to differ from its bound, if it keeps the distance and the scatter seen so far.

    tasks x ((z(0.975) + z(power)) x standard error / distance)^2, by the normal approximation. None when there is no distance, or
    no scatter to go by.
    """
    if not distance or not spread or math.isnan(spread):
        return None
    normal = NormalDist()
    wanted = normal.inv_cdf((1 + CONFIDENCE) / 2) + normal.inv_cdf(power)
    return math.ceil(tasks * (wanted * spread / abs(distance)) ** 2)


class Tails(Struct, frozen=True):
    """How costs are spread over units, USD. Percentiles interpolate between the two nearest. `dearest`: how many units are
    the dearest 1 % (at least one), `dearest_share` their share of all cost, `mean_without`: the mean of the rest."""

    p50: float
    p90: float
    p95: float
    max: float
    dearest: int
    dearest_share: float | None
    mean_without: float | None


def tails(costs: Sequence[float]) -> Tails | None:
    """How costs are spread; None without any."""
    if not costs:
        return None
    values = np.sort(np.asarray(costs, float))
    p50, p90, p95 = (float(x) for x in np.quantile(values, [0.5, 0.9, 0.95]))
    dearest = math.ceil(len(values) / 100)
    total = float(values.sum())
    rest = values[: len(values) - dearest]
    share = float(values[len(values) - dearest :].sum()) / total if total else None
    return Tails(p50, p90, p95, float(values[-1]), dearest, share, float(rest.mean()) if len(rest) else None)
