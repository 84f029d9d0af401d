"""The law of a judge's budget: whatever is spent in whatever order, and however many calls are in flight at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.judges import Budget

DAY = 86_400.0
steps = st.lists(
    st.one_of(
        st.tuples(st.just("answer"), st.floats(0.0, 1.0)),
        st.tuples(st.just("ask"), st.just(0.0)),
        st.tuples(st.just("end"), st.floats(0.0, 1.0)),
        st.tuples(st.just("unknown"), st.just(0.0)),
    ),
    max_size=80,
)


@given(steps, st.floats(0.01, 0.9), st.floats(0.1, 5.0))
def test_limits_are_exceeded_only_by_what_calls_cost_more_than_the_dearest_before(
    said: list[tuple[str, float]], share: float, usd_per_day: float
) -> None:
    budget = Budget(share, usd_per_day)
    answers = judges = dearest = excess = 0.0
    flying: list[float] = []
    for what, usd in said:
        if what == "answer":
            budget.answered(usd, 10.0)
            answers += usd
        elif what == "ask":
            if not budget.refuses(10.0):
                flying.append(budget.hold())
                assert flying[-1] == dearest
        elif flying:
            held = flying.pop(0)
            spent = dearest if what == "unknown" else usd
            budget.settle(held, None if what == "unknown" else usd)
            judges, excess = judges + spent, excess + max(spent - held, 0.0)
            dearest = max(dearest, spent)
        assert judges <= usd_per_day + excess + 1e-9
        # Answers only grow, so what was within the share when it was allowed stays within it.
        assert judges - excess <= share * (answers + judges) + 1e-9


def test_no_call_in_flight_is_forgotten_over_midnight() -> None:
    budget = Budget(None, 1.0)
    budget.settle(budget.hold(), 0.6)
    held = budget.hold()
    assert "may cost $0.6000" in budget.refuses(DAY - 1)
    assert budget.refuses(DAY + 1) != ""  # 0.6 in flight and 0.6 for the next
    budget.settle(held, 0.1)
    assert budget.refuses(DAY + 1) == ""


def test_a_clock_that_goes_back_gives_no_new_budget() -> None:
    budget = Budget(None, 1.0)
    assert budget.refuses(2 * DAY) == ""
    budget.settle(budget.hold(), 0.9)
    assert budget.refuses(DAY) != ""
    assert budget.refuses(3 * DAY) == ""


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_with_even_costs_the_share_is_kept_from_the_second_call_on(share: float) -> None:
    budget, judges, answers = Budget(share), 0, 0
    for _ in range(400):
        if not budget.refuses(1.0):
            budget.settle(budget.hold(), 0.01)
            judges += 1
            assert judges == 1 or judges <= share * (judges + answers) + 1e-9
        budget.answered(0.01, 1.0)
        answers += 1
    assert judges == pytest.approx(answers * share / (1 - share), abs=1.5)
