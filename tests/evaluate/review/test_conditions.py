"""What a figure says of a condition, and which conditions are refused."""

from typing import Any

import pytest

from turnout.evaluate.review.conditions import MEASURES, SOURCES, Condition, Conditions, Logged, Trials, answer

LOSS: dict[str, Any] = {"measure": "success_loss"}
TRIALS = Trials("large", "coder")


@pytest.mark.parametrize(
    ("bound", "low", "value", "high", "n", "said"),
    [
        ({"above": 0.03}, 0.031, 0.05, 0.07, 30, "holds"),
        ({"above": 0.03}, 0.03, 0.05, 0.07, 30, "not enough data"),  # equal to the bound is not beyond it
        ({"above": 0.03}, 0.01, 0.05, 0.07, 30, "not enough data"),
        ({"above": 0.03}, -0.02, 0.01, 0.03, 30, "does not hold"),
        ({"above": 0.03}, -0.02, 0.01, 0.031, 30, "not enough data"),
        ({"above": 0.03}, 0.031, 0.05, 0.07, 29, "not enough data"),
        ({"above": 0.03, "at_least": 29}, 0.031, 0.05, 0.07, 29, "holds"),
        ({"above": 0.03}, None, None, None, 30, "not enough data"),
        ({"above": 0.03}, None, 0.05, None, 30, "not enough data"),
        ({"below": 0.1}, 0.02, 0.05, 0.099, 30, "holds"),
        ({"below": 0.1}, 0.02, 0.05, 0.1, 30, "not enough data"),
        ({"below": 0.1}, 0.1, 0.15, 0.2, 30, "does not hold"),
        ({"below": 0.1}, 0.09, 0.15, 0.2, 30, "not enough data"),
        ({"below": 0.0}, -0.3, -0.2, -0.1, 30, "holds"),
        ({"above": 0.03, "by": "estimate"}, -0.1, 0.031, 0.2, 30, "holds"),
        ({"above": 0.03, "by": "estimate"}, -0.1, 0.03, 0.2, 30, "does not hold"),
        ({"below": 0.1, "by": "estimate"}, None, 0.1, None, 30, "does not hold"),
        ({"below": 0.1, "by": "estimate"}, None, 0.099, None, 30, "holds"),
        ({"below": 0.1, "by": "estimate"}, None, 0.099, None, 3, "not enough data"),
    ],
)
def test_what_a_figure_says(
    bound: dict[str, Any], low: float | None, value: float | None, high: float | None, n: int, said: str
) -> None:
    assert answer(Condition(**LOSS, **bound), value, low, high, n) == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "either `above` or `below`"),
        ({"above": 0.1, "below": 0.2}, "either `above` or `below`"),
        ({"above": 0.1, "confidence": 1.0}, "less than 1"),
        ({"above": 0.1, "confidence": 0.4}, "0.5 or more"),
        ({"above": 0.1, "at_least": 0}, "1 or more"),
        ({"above": 0.1, "of": "x"}, "belongs to the measure `undecided_weeks`"),
        ({"above": 0.1, "source": "turns"}, "of these it can be taken: trials, canary, logged"),
        ({"measure": "undecided_weeks", "above": 3}, "names another condition"),
        ({"measure": "undecided_weeks", "of": "x", "below": 3}, "names another condition"),
    ],
)
def test_a_condition_that_says_nothing_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Condition(**{**LOSS, **fields})


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ({}, "no conditions"),
        ({"a": Condition(**LOSS, above=0.1)}, r"it needs a table \[trials\] or \[canary\] or \[logged\]"),
        ({"a": Condition("undecided_weeks", above=1, of="b")}, "names no other condition"),
        ({"a": Condition("undecided_weeks", above=1, of="a")}, "names no other condition"),
    ],
)
def test_conditions_without_anything_to_measure_on_are_refused(conditions: dict[str, Condition], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Conditions("coder", conditions)


def test_a_condition_takes_the_first_source_that_there_is() -> None:
    loss, saving = Condition(**LOSS, above=0.1), Condition("saving", below=0.1)
    named = Condition("saving", below=0.1, source="logged")
    both = Conditions("coder", {"a": loss, "b": saving, "c": named}, trials=TRIALS, logged=Logged("large", "small"))
    assert [both.source_of(one) for one in (loss, saving, named)] == ["trials", "turns", "logged"]


def test_every_measure_is_defined_and_can_be_taken_from_something() -> None:
    assert set(MEASURES) == set(SOURCES)
    assert [measure for measure, sources in SOURCES.items() if not sources] == ["undecided_weeks"]
