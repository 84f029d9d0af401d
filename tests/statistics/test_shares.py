"""Wilson score intervals: worked by hand, and what must hold of all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.statistics.shares import wilson


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # z = 1.96: centre (p + z²/2n) / (1 + z²/n), half width z √(p(1-p)/n + z²/4n²) / (1 + z²/n), worked by hand.
        (5, 10, 0.2366, 0.7634),
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (3, 300, 0.0034, 0.0290),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilson_intervals_are_those_worked_by_hand(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500))
def test_intervals_hold_the_share_and_narrow_with_more(hits: int, more: int) -> None:
    of = hits + more
    low, high = wilson(hits, of)
    assert 0 <= low <= (hits / of if of else 0.5) <= high <= 1
    if of:
        wide = high - low
        low, high = wilson(hits * 4, of * 4)
        assert high - low < wide
        mirrored = wilson(more, of)
        assert mirrored == pytest.approx((1 - wilson(hits, of)[1], 1 - wilson(hits, of)[0]))
