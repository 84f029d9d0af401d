"""Bootstrap intervals: worked by hand, seeded."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.statistics.bootstrap import Sums, draws, nested_draws, resample, resampled_mean
from turnout.statistics.shares import wilson


def test_a_ratio_is_that_of_the_sums() -> None:
    sums = Sums(["a", "a", "b"], {"top": [1, 0, 1], "bottom": [1, 1, 1]}, 500)
    found = sums.ratio("top", "bottom")
    assert found.value == pytest.approx(2 / 3)
    # Task a gives 1/2, task b gives 1: nothing drawn from them is outside.
    assert (found.low, found.high) == (0.5, 1.0)
    assert sums.tasks == 2


def test_columns_may_be_weighted_and_added() -> None:
    sums = Sums(["a", "b"], {"x": [3, 1], "y": [1, 1], "n": [1, 1]}, 200)
    assert sums.ratio({"x": 1, "y": -1}, "n").value == 1.0
    assert sums.ratio({"x": 0.5}, {"x": 1, "y": 1}).value == pytest.approx(2 / 6)


def test_trials_of_a_task_are_drawn_together() -> None:
    # Ten tasks of ten trials that agree are worth no more than ten tasks of one.
    once = Sums([str(i) for i in range(10)], {"s": [i % 2 for i in range(10)], "n": [1] * 10}, 2000)
    tenfold = Sums(
        [str(i) for i in range(10) for _ in range(10)],
        {"s": [i % 2 for i in range(10) for _ in range(10)], "n": [1] * 100},
        2000,
    )
    assert once.share("s", "n") == tenfold.share("s", "n")


def test_the_interval_is_that_of_the_binomial_where_it_is_known() -> None:
    n, share = 400, 0.3
    sums = Sums([str(i) for i in range(n)], {"s": [float(i < n * share) for i in range(n)], "n": [1.0] * n}, 4000)
    found = sums.share("s", "n")
    half = 1.96 * math.sqrt(share * (1 - share) / n)
    assert found.low == pytest.approx(share - half, abs=0.006)
    assert found.high == pytest.approx(share + half, abs=0.006)
    assert sums.spread("s", "n") == pytest.approx(half / 1.96, rel=0.06)


def test_a_share_of_none_or_all_has_wilsons_interval_over_tasks() -> None:
    sums = Sums(["a", "a", "b", "c"], {"s": [0] * 4, "n": [1] * 4}, 100)
    found = sums.share("s", "n")
    assert (found.value, found.low, found.high) == (0.0, *wilson(0, 3))


def test_nothing_counted_is_unknown() -> None:
    sums = Sums([], {"s": [], "n": []}, 100)
    assert sums.ratio("s", "n").value is None
    assert sums.tasks == 0


def test_the_same_seed_gives_the_same_figures_and_another_does_not() -> None:
    columns = {"s": [float(i % 3) for i in range(30)], "n": [1.0] * 30}
    tasks = [str(i) for i in range(30)]
    first, again, other = (Sums(tasks, columns, 300, seed).ratio("s", "n") for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_progress_is_told_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    resample(Sums(["a", "b"], {"n": [1, 1]}, 100).by_task, 300, 1, lambda done, of: seen.append((done, of)))
    assert seen == [(100, 300), (200, 300), (300, 300)]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12))
def test_a_figure_lies_in_its_interval(values: list[float]) -> None:
    sums = Sums([str(i) for i in range(len(values))], {"x": values, "n": [1.0] * len(values)}, 200)
    found = sums.ratio("x", "n")
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low <= found.value <= found.high


def test_every_task_is_drawn_as_often_as_any_other() -> None:
    tasks = [str(i) for i in range(20)]
    drawn = resample(Sums(tasks, {t: [float(t == other) for other in tasks] for t in tasks}, 100).by_task, 4000)
    assert drawn.sum(axis=1) == pytest.approx(20.0)
    # Each is Poisson-like with mean 1: over 4,000 resamples its mean is within six standard errors.
    assert drawn.mean(axis=0) == pytest.approx(1.0, abs=0.1)


def test_what_comes_in_groups_is_drawn_by_groups() -> None:
    times = np.array(list(nested_draws([2, 2, 2], 3000, 1)), float)
    assert (times.sum(axis=1) == 6).all()
    # A group is left out of (2/3)^3 of all resamples; a pair of single units would be of (4/6)^6.
    gone = (times[:, :2].sum(axis=1) == 0).mean()
    assert gone == pytest.approx((2 / 3) ** 3, abs=0.05)
    assert times.mean(axis=0) == pytest.approx(1.0, abs=0.15)


def test_groups_that_differ_widen_the_interval_of_a_mean() -> None:
    values = [0.0] * 20 + [1.0] * 20
    alone = resampled_mean(values, np.array(list(draws(40, 500)), float))
    grouped = resampled_mean(values, np.array(list(nested_draws([20, 20], 500)), float))
    assert alone.value == grouped.value == 0.5
    assert (grouped.low, grouped.high) == (0.0, 1.0)
    assert 0.3 < alone.low < 0.5 < alone.high < 0.7
