"""Success against cost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.evaluate.frontier import Point, above_mix, frontier

DEAR, CHEAP = Point("capable", 0.8, 10.0), Point("efficient", 0.4, 2.0)


def test_points_stand_above_the_line_of_mixes_by_the_difference_at_their_cost() -> None:
    # Half of the way between the costs the line is at 60 %.
    assert above_mix(Point("x", 0.7, 6.0), DEAR, CHEAP) == pytest.approx(0.1)
    assert above_mix(DEAR, DEAR, CHEAP) == pytest.approx(0.0)
    assert above_mix(Point("x", 0.7, 11.0), DEAR, CHEAP) is None
    assert above_mix(Point("x", 0.7, 2.0), Point("c", 0.5, 2.0), CHEAP) is None


def test_who_is_beaten_is_not_on_the_frontier() -> None:
    some = [DEAR, CHEAP, Point("good", 0.9, 5.0), Point("bad", 0.4, 5.0)]
    found = frontier(some, DEAR, CHEAP, 7)
    assert [(one.name, one.on_frontier) for one in found.points] == [
        ("efficient", True), ("good", True), ("bad", False), ("capable", False)
    ]  # fmt: skip
    assert found.mix == ((2.0, 0.4), (10.0, 0.8))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=10))
def test_success_rises_along_the_frontier(ends: list[tuple[int, int]]) -> None:
    some = [Point(str(i), success / 5, float(cost)) for i, (success, cost) in enumerate(ends)]
    best = [one for one in frontier([*some, DEAR, CHEAP], DEAR, CHEAP, 1).points if one.on_frontier]
    assert best
    for a, b in pairwise(best):
        assert a.success < b.success or (a.success, a.cost_usd) == (b.success, b.cost_usd)
