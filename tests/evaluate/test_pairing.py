"""Units are the same task and trial by each arm, by the stated rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcomes import BIG, ROUTER, SMALL, run

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import pair


def labels(*runs: Outcome, routed: Arm | None = None) -> list[tuple[str, int, int]]:
    return [(one.task, one.capable.line, one.efficient.line) for one in pair(runs, BIG, SMALL, routed).units]


def test_trials_with_the_same_label_belong_together() -> None:
    runs = [
        run(BIG, True, task="a", trial="2", line=1),
        run(BIG, True, task="a", trial="10", line=2),
        run(SMALL, True, task="a", trial="10", line=3),
        run(SMALL, True, task="a", trial="2", line=4),
    ]
    assert labels(*runs) == [("a", 1, 4), ("a", 2, 3)]


def test_without_labels_in_common_the_order_in_the_file_decides() -> None:
    runs = [
        run(BIG, True, task="a", line=1),
        run(BIG, True, task="a", line=2),
        run(SMALL, True, task="a", trial="x", line=3),
        run(SMALL, True, task="a", trial="y", line=4),
        run(SMALL, True, task="a", trial="z", line=5),
    ]
    assert labels(*runs) == [("a", 1, 3), ("a", 2, 4)]
    assert pair(runs, BIG, SMALL).left_over == {"big": 0, "small": 1}


def test_tasks_of_one_arm_only_are_left_over() -> None:
    runs = [run(BIG, True, task="a"), run(BIG, True, task="b"), run(SMALL, True, task="b")]
    found = pair(runs, BIG, SMALL)
    assert (len(found.units), found.tasks, found.left_over) == (1, 1, {"big": 1, "small": 0})


def test_a_label_an_arm_has_twice_counts_once() -> None:
    runs = [run(BIG, True, trial="1", line=1), run(BIG, False, trial="1", line=2), run(SMALL, True, trial="1", line=3)]
    found = pair(runs, BIG, SMALL)
    assert [one.capable.line for one in found.units] == [1]
    assert found.repeated == 1


def test_a_router_has_to_have_run_the_unit_too() -> None:
    runs = [
        run(BIG, True, task="a"), run(SMALL, True, task="a"), run(ROUTER, False, task="a"),
        run(BIG, True, task="b"), run(SMALL, True, task="b"),
    ]  # fmt: skip
    found = pair(runs, BIG, SMALL, ROUTER)
    assert [(one.task, one.routed is not None) for one in found.units] == [("a", True)]
    assert found.left_over == {"big": 1, "small": 1, "router": 0}


def test_the_category_is_that_of_any_run_that_knows_it() -> None:
    runs = [run(BIG, True), run(SMALL, True, category="c")]
    assert pair(runs, BIG, SMALL).units[0].category == "c"


def test_an_arm_is_not_compared_with_itself() -> None:
    with pytest.raises(ValueError, match="same"):
        pair([], BIG, BIG)


RUNS = st.lists(
    st.builds(
        lambda arm, task, trial, success: run(arm, success, task=task, trial=trial),
        st.sampled_from([BIG, SMALL]),
        st.sampled_from("ab"),
        st.sampled_from(["", "1", "2"]),
        st.booleans(),
    ),
    max_size=15,
)


@given(RUNS)
def test_every_run_is_in_one_unit_or_counted(runs: list[Outcome]) -> None:
    found = pair(runs, BIG, SMALL)
    assert 2 * len(found.units) + sum(found.left_over.values()) + found.repeated == len(runs)


@given(RUNS)
def test_swapping_the_arms_pairs_the_same_runs(runs: list[Outcome]) -> None:
    there, back = pair(runs, BIG, SMALL).units, pair(runs, SMALL, BIG).units
    assert [(one.capable, one.efficient) for one in there] == [(one.efficient, one.capable) for one in back]
