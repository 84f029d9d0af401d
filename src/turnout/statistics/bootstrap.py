"""Percentile bootstrap intervals, from seeded dice. Pure.

A task is drawn with all its trials, since trials of one task are not independent evidence. A share that is the same in every task
gives the bootstrap nothing to draw; where it is 0 or 1 its interval is the Wilson interval over tasks.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turnout.statistics.interval import CONFIDENCE, UNKNOWN, Estimate, Interval
from turnout.statistics.shares import wilson

RESAMPLES = 10_000
SEED = 1

Matrix: TypeAlias = NDArray[np.float64]
Told: TypeAlias = Callable[[int, int], None]
"""Told how many resamples are done, of how many."""

Terms: TypeAlias = str | Mapping[str, float]
"""A column, or a sum of columns with weights."""


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
        return Interval(value, *bounds(value, ratios))

    def figure(self, of: Callable[[Callable[[str], Matrix]], Matrix]) -> Interval:
        """Any figure of the sums, `of` a function from columns to it, with its interval over the resamples that have one."""
        value = float(of(lambda name: self.total[None][:, self.names[name]])[0])
        if math.isnan(value):
            return UNKNOWN
        drawn = of(lambda name: self.drawn[:, self.names[name]])
        known = drawn[~np.isnan(drawn)]
        if not len(known):
            return Interval(value)
        return Interval(value, *bounds(value, known))

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
    for done, times in enumerate(draws(tasks, resamples, seed)):
        drawn[done] = times @ by_task
        if told is not None and done % 100 == 99:
            told(done + 1, resamples)
    return drawn


def draws(of: int, resamples: int, seed: int = SEED) -> Iterator[NDArray[np.int64]]:
    """Resample after resample of `of` units: how often each of them is drawn, with replacement, as many in all as there are."""
    dice = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(dice.integers(0, of, of), minlength=of)


def nested_draws(groups: Sequence[int], resamples: int, seed: int = SEED) -> Iterator[NDArray[np.int64]]:
    """As `draws`, of units that come in groups of these sizes: groups are drawn, then as many units of each as it has."""
    dice = np.random.default_rng(seed)
    starts = np.cumsum([0, *groups])
    for _ in range(resamples):
        drawn = [
            starts[group] + dice.integers(0, groups[group], groups[group])
            for group in dice.integers(0, len(groups), len(groups))
        ]
        yield np.bincount(np.concatenate(drawn), minlength=int(starts[-1]))


def resampled_mean(values: Sequence[float], times: Matrix) -> Estimate:
    """A mean, with its interval from resamples: `times` holds a row for each, as `draws` or `nested_draws` give them."""
    column = np.asarray(values, np.float64)
    value = float(column.mean())
    return Estimate(value, *bounds(value, times @ column / times.sum(axis=1)))


def bounds(value: float, drawn: Matrix) -> tuple[float, float]:
    """The percentile interval of a figure from what it is in each resample."""
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    # Rounding must not put a figure outside of its own interval.
    return min(float(low), value), max(float(high), value)
