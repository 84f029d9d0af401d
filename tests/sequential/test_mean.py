"""Intervals of means: worked by hand, and under looking all the time."""

import math
import random

import pytest

from turnout.sequential.mean import Mean
from turnout.sequential.rate import Interval


def test_two_values_are_worked_by_hand() -> None:
    # Both bets are the most allowed, 1/2; psi(1/2) = (log 2 - 1/2) / 4; v = 4 (1 - 1/2)^2 and 4 (0 - 3/4)^2.
    found = Mean(alpha=0.9).after(1.0)
    psi = (math.log(2) - 0.5) / 4
    first = (math.log(2 / 0.9) + 1.0 * psi) / 0.5
    assert found.interval == Interval(max(0.0, 1 - first), 1.0)
    assert (found.bets, found.bet_on, found.spent) == (0.5, 0.5, pytest.approx(psi))
    # mean_1 = 3/4, variance_1 = (1/4 + 1/16) / 2 = 5/32; sqrt(2 log(2/0.9) / (5/32 * 2 log 3)) is above 1/2.
    found = found.after(0.0)
    assert found.spent == pytest.approx((1.0 + 2.25) * psi)
    assert (found.bets, found.value) == (1.0, 0.5)


def test_nothing_seen_says_nothing_and_values_are_bounded() -> None:
    assert Mean().interval == Interval(0.0, 1.0)
    assert Mean().value is None
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="from 0 to 1"):
            Mean().after(value)


def test_the_mean_is_hardly_ever_left_out_however_often_one_looks() -> None:
    dice, missed = random.Random(11), 0
    for _ in range(500):
        found = Mean(alpha=0.1)
        for _ in range(200):
            found = found.after(dice.betavariate(1, 4))
            if not found.interval.low <= 0.2 <= found.interval.high:
                missed += 1
                break
    assert missed <= 0.1 * 500


def test_little_spread_gives_a_narrow_interval() -> None:
    dice = random.Random(3)
    narrow = wide = Mean()
    for _ in range(2000):
        narrow, wide = narrow.after(dice.uniform(0.49, 0.51)), wide.after(float(dice.random() < 0.5))
    assert narrow.interval.high - narrow.interval.low < (wide.interval.high - wide.interval.low) / 3
    assert narrow.interval.low <= 0.5 <= narrow.interval.high
