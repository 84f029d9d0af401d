"""Intervals of rates: worked by hand, and under looking all the time."""

import math
import random

import pytest

from turnout.sequential.rate import Interval, difference, log_evidence, rate


def test_one_success_leaves_rates_from_half_of_alpha() -> None:
    # B(3/2, 1/2) / B(1/2, 1/2) = 1/2, so M(p) = 1/(2p), which is below 1/alpha for p > alpha/2.
    assert rate(1, 1, 0.05) == Interval(pytest.approx(0.025), 1.0)
    assert rate(0, 1, 0.05) == Interval(0.0, pytest.approx(0.975))


def test_one_of_two_is_worked_by_hand() -> None:
    # B(3/2, 3/2) / B(1/2, 1/2) = 1/8, so M(p) = 1 / (8 p (1 - p)) = 5 at p (1 - p) = 1/40.
    low = (1 - math.sqrt(0.9)) / 2
    assert log_evidence(1, 1, 0.5) == pytest.approx(math.log(0.5))
    assert rate(1, 2, 0.2) == Interval(pytest.approx(low), pytest.approx(1 - low))


def test_nothing_counted_says_nothing() -> None:
    assert rate(0, 0) == Interval(0.0, 1.0)
    assert difference(0, 0, 0, 0) == Interval(-1.0, 1.0)


def test_a_difference_gives_half_of_alpha_to_each_rate() -> None:
    # One success against one failure at alpha 0.1: [0.025, 1] and [0, 0.975].
    assert difference(1, 1, 0, 1, 0.1) == Interval(pytest.approx(0.025 - 0.975), pytest.approx(1.0))


@pytest.mark.parametrize(("hits", "of", "alpha"), [(2, 1, 0.05), (-1, 3, 0.05), (1, 2, 0.0), (1, 2, 1.0)])
def test_nonsense_is_refused(hits: int, of: int, alpha: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        rate(hits, of, alpha)


def test_the_rate_is_hardly_ever_left_out_however_often_one_looks() -> None:
    dice, missed = random.Random(7), 0
    for _ in range(500):
        hits = 0
        for n in range(1, 301):
            hits += dice.random() < 0.3
            if log_evidence(hits, n - hits, 0.3) >= math.log(1 / 0.1):
                missed += 1
                break
    # 0.1 is the most that is expected; three standard deviations of the count of 500 runs more.
    assert missed <= 0.1 * 500 + 3 * math.sqrt(500 * 0.1 * 0.9)
