"""Escalation as a restart on the capable model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcomes import called, unit

from turnout.evaluate.baselines import Played
from turnout.evaluate.restart import BY_CALL, BY_STEP, restart, sweep


def test_a_weak_run_that_goes_on_is_thrown_away_and_both_are_paid() -> None:
    one = unit((True, 5.0), (False, 2.0), steps=10)
    # Four of ten steps of the weak run, an equal part of its cost each, and the whole strong run.
    assert restart(one, 4) == Played(1.0, 2.0 * 4 / 10 + 5.0, 0.0)


def test_a_weak_run_that_has_ended_stands() -> None:
    one = unit((False, 5.0), (True, 2.0), steps=10)
    assert restart(one, 10) == Played(1.0, 2.0, 1.0)
    assert restart(one, None) == Played(1.0, 2.0, 1.0)


def test_recorded_calls_say_what_the_weak_run_had_cost() -> None:
    one = unit((True, 5.0), (False, 1.0), steps=4, calls=called(0.1, 0.2, 0.3, 0.4))
    found = restart(one, 2)
    assert found.cost_usd == pytest.approx(0.3 + 5.0)
    assert sweep([one]).weak_cost == BY_CALL


def test_calls_that_are_not_the_steps_are_not_taken_for_them() -> None:
    one = unit((True, 5.0), (False, 1.0), steps=5, calls=called(0.1, 0.9))
    assert restart(one, 1).cost_usd == pytest.approx(0.2 + 5.0)
    assert sweep([one]).weak_cost == BY_STEP


def test_unknown_costs_stay_unknown() -> None:
    assert restart(unit((True, None), (False, 2.0), steps=10), 4).cost_usd is None
    assert restart(unit((True, 5.0), (False, None), steps=10), 4).cost_usd is None


def test_unknown_steps_are_refused() -> None:
    one = unit((True, 5.0), (False, 2.0))
    assert sweep([one]).steps == ()
    assert "1 of 1" in sweep([one]).reason
    with pytest.raises(ValueError, match="not recorded"):
        restart(one, 3)


def test_the_sweep_splits_the_lengths_evenly() -> None:
    some = [unit((True, 1.0), (True, 1.0), steps=steps) for steps in range(1, 101)]
    assert sweep(some).steps == (11, 21, 31, 41, 51, 61, 71, 81, 91)


@given(st.integers(1, 20), st.integers(0, 25), st.booleans(), st.booleans())
def test_giving_up_later_never_costs_less_before_the_switch(
    steps: int, after: int, capable: bool, efficient: bool
) -> None:
    one = unit((capable, 3.0), (efficient, 2.0), steps=steps)
    now, later = restart(one, after), restart(one, after + 1)
    if later.efficient == 0.0:
        assert now.cost_usd is not None
        assert later.cost_usd is not None
        assert now.cost_usd <= later.cost_usd
    assert now.success in (float(capable), float(efficient))
