"""The four sets and the oracle."""

import pytest
from hypothesis import given
from tests.outcomes import swapped, unit, units

from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import DEFINITIONS, QUADRANTS, count, oracle, quadrant


@pytest.mark.parametrize(
    ("capable", "efficient", "name"),
    [(True, True, "SAFE"), (True, False, "LOSS"), (False, True, "RESCUE"), (False, False, "HARD")],
)
def test_the_sets_are_those_of_the_definitions(capable: bool, efficient: bool, name: str) -> None:
    assert quadrant(unit((capable, 1.0), (efficient, 0.1))) == name
    assert name in DEFINITIONS


@pytest.mark.parametrize(
    ("capable", "efficient", "whose"),
    [
        ((True, 2.0), (True, 1.0), "efficient"),
        ((True, 1.0), (True, 2.0), "capable"),
        ((True, 9.0), (False, 1.0), "capable"),
        ((False, 1.0), (True, 9.0), "efficient"),
        ((False, 1.0), (False, 2.0), "capable"),
        ((False, 2.0), (False, 1.0), "efficient"),
        ((True, 1.0), (True, 1.0), "efficient"),
        ((True, None), (True, 1.0), "efficient"),
        ((False, 1.0), (False, None), "efficient"),
    ],
)
def test_the_oracle_takes_the_cheaper_success_else_the_cheaper_failure(
    capable: tuple[bool, float | None], efficient: tuple[bool, float | None], whose: str
) -> None:
    one = unit(capable, efficient)
    assert oracle(one) is getattr(one, whose)


@given(units())
def test_the_sets_partition_the_units(some: list[Unit]) -> None:
    counts = count(some)
    assert sum(counts.values()) == len(some)
    assert all(counts[name] == sum(quadrant(one) == name for one in some) for name in QUADRANTS)


@given(units())
def test_swapping_the_arms_swaps_loss_and_rescue(some: list[Unit]) -> None:
    there, back = count(some), count([swapped(one) for one in some])
    assert (there["LOSS"], there["RESCUE"]) == (back["RESCUE"], back["LOSS"])
    assert (there["SAFE"], there["HARD"]) == (back["SAFE"], back["HARD"])


@given(units(known=True))
def test_the_oracle_is_never_worse_than_an_arm_nor_dearer_than_the_cheaper_success(some: list[Unit]) -> None:
    for one in some:
        best = oracle(one)
        assert best.success == (one.capable.success or one.efficient.success)
        good: list[Outcome] = [arm for arm in (one.capable, one.efficient) if arm.success]
        assert best.cost_usd == min(arm.cost_usd or 0.0 for arm in good or (one.capable, one.efficient))
