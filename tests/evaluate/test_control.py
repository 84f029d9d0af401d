"""A model against itself."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcomes import BIG, SMALL, run

from turnout.evaluate.control import control


def test_the_control_is_as_worked_by_hand() -> None:
    # Task a: 2 of 3 succeed: of 6 ordered pairs 2 are successes, 2 a success before a failure. Task b: both fail.
    runs = [run(BIG, i > 0, task="a", trial=str(i)) for i in range(3)] + [
        run(BIG, False, task="b", trial=t) for t in "12"
    ]
    found = control(runs, BIG, ["a", "b"], 200)
    assert found is not None
    assert (found.tasks, found.runs) == (2, 5)
    assert found.SAFE.value == pytest.approx((1 / 3 + 0) / 2)
    assert found.LOSS.value == found.RESCUE.value == found.headroom.value == pytest.approx((1 / 3 + 0) / 2)
    assert found.HARD.value == pytest.approx((0 + 1) / 2)


def test_without_repeated_trials_there_is_no_control() -> None:
    runs = [
        run(BIG, True, task="a"),
        run(SMALL, True, task="a"),
        run(BIG, True, task="b", trial="1"),
        run(BIG, True, task="b", trial="1"),
    ]
    assert control(runs, BIG, ["a", "b"], 100) is None


def test_other_tasks_are_not_looked_at() -> None:
    runs = [run(BIG, True, task="a", trial=t) for t in "12"]
    assert control(runs, BIG, ["b"], 100) is None


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.booleans(), min_size=2, max_size=5), min_size=1))
def test_the_control_is_the_mean_over_all_ordered_pairs(trials: dict[str, list[bool]]) -> None:
    runs = [run(BIG, s, task=task, trial=str(i)) for task, of in trials.items() for i, s in enumerate(of)]
    found = control(runs, BIG, trials, 100)
    assert found is not None
    expected = {"SAFE": 0.0, "LOSS": 0.0, "RESCUE": 0.0, "HARD": 0.0}
    for of in trials.values():
        pairs = list(permutations(of, 2))
        for a, b in pairs:
            expected[("SAFE" if b else "LOSS") if a else ("RESCUE" if b else "HARD")] += 1 / len(pairs) / len(trials)
    assert {name: getattr(found, name).value for name in expected} == pytest.approx(expected)
