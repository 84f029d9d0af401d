"""Scores against values worked by hand, and what must hold of all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.evaluate.scores import confusion, f1, score
from turnout.statistics.shares import share, wilson


def test_nothing_counted_is_nothing_known() -> None:
    nothing = share(0, 0)
    assert (nothing.value, nothing.low, nothing.high) == (None, 0.0, 1.0)
    assert str(nothing) == "-"


def test_a_score_worked_by_hand() -> None:
    # 3 labelled, 4 called, 2 of them right: P 2/4, R 2/3, F1 = 2·(1/2)(2/3)/(1/2+2/3) = 4/7, J = 2/5.
    pairs = [(True, True), (True, True), (True, False), (False, True), (False, True), (False, False)]
    seen = score(pairs)
    assert (seen.labelled, seen.called, seen.right) == (3, 4, 2)
    assert seen.precision.value == pytest.approx(1 / 2)
    assert seen.recall.value == pytest.approx(2 / 3)
    assert seen.f1.value == pytest.approx(4 / 7)
    assert (seen.f1.hits, seen.f1.of) == (2, 5)
    low, high = wilson(2, 5)
    assert (seen.f1.low, seen.f1.high) == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))


def test_what_is_never_called_has_no_precision_and_recall_zero() -> None:
    seen = score([(True, False), (False, False)])
    assert seen.precision.value is None
    assert seen.recall.value == 0.0
    assert seen.f1.value == 0.0


def test_confusion_counts_by_label_then_by_what_was_said() -> None:
    assert confusion([("a", "a"), ("a", "b"), ("a", "b"), ("b", "b")]) == {"a": {"a": 1, "b": 2}, "b": {"b": 1}}


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_f1_is_the_harmonic_mean(pairs: list[tuple[bool, bool]]) -> None:
    seen = score(pairs)
    p, r = seen.precision.value, seen.recall.value
    if p and r:
        assert seen.f1.value == pytest.approx(2 * p * r / (p + r))
    assert seen.f1.low <= (seen.f1.value or 0.0) <= seen.f1.high


def test_f1_counts() -> None:
    assert f1(0, 0, 0).value is None
    assert f1(4, 0, 0).value == 1.0
    assert f1(0, 3, 2).value == 0.0
