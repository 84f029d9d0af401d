"""Whether tests get better or worse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.signals.task.steps import ran, suite

from turnout.signals import Place, Task, TestRun
from turnout.signals.task.trend import trend


def series(*counts: int, run: int = 12) -> tuple[TestRun, ...]:
    return tuple(TestRun(run, failed, Place(i)) for i, failed in enumerate(counts))


@pytest.mark.parametrize(
    ("counts", "value"),
    [
        ((9,), 0.0),
        ((), 0.0),
        ((9, 9), 0.0),
        ((9, 4, 1), 8 / 9),
        ((9, 0), 1.0),
        ((0, 5), -1.0),
        ((4, 8), -0.5),
        ((9, 1, 9), 0.0),
        ((12, 3, 4, 5, 6), -0.5),
        ((0, 0), 0.0),
    ],
)
def test_the_trend_is_the_share_of_failures_gained_or_lost(counts: tuple[int, ...], value: float) -> None:
    assert trend(series(*counts)) == pytest.approx(value)


@given(st.lists(st.integers(0, 12), max_size=8))
def test_the_trend_is_bounded_and_turns_with_the_series(counts: list[int]) -> None:
    value = trend(series(*counts))
    assert -1 <= value <= 1
    assert trend(tuple(reversed(series(*counts[-4:])))) == pytest.approx(-value)


def test_failing_less_by_running_less_is_no_progress() -> None:
    assert trend((TestRun(40, 9, Place(0)), TestRun(3, 1, Place(1)))) == 0.0
    course = Task([suite(40, 9), suite(3, 1)]).course()
    assert [mark & 3 for mark in course.marks] == [2, 2]


def test_runs_of_other_tests_are_another_series() -> None:
    course = Task([suite(9, 5, "pytest a"), suite(9, 1, "pytest b"), ran(), suite(9, 4, "pytest a")]).course()
    assert [(r.run, r.failed) for r in course.runs] == [(9, 5), (9, 4)]
    assert trend(course.runs) == pytest.approx(0.2)


def test_a_run_of_no_tests_says_nothing() -> None:
    assert Task([suite(9, 5), suite(0, 0)]).course().runs == (TestRun(9, 5, Place(0, 0, "pytest")),)
