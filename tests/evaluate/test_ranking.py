"""All pairs of arms, by what an oracle would gain."""

import pytest
from tests.outcomes import run

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.ranking import LEAST_TASKS, rank

A, B, C = Arm("a"), Arm("b"), Arm("c")


def tried(arm: Arm, successes: str, cost_usd: float | None, trial: str = "") -> list[Outcome]:
    return [run(arm, letter == "+", cost_usd, task=str(i), trial=trial) for i, letter in enumerate(successes)]


RUNS = [*tried(A, "+++++-----", 5.0), *tried(B, "-----+++--", 1.0), *tried(C, "++++------", 0.5)]


def test_pairs_come_with_most_headroom_first() -> None:
    found = rank(RUNS)
    assert [(str(one.capable), str(one.efficient)) for one in found] == [("a", "b"), ("b", "c"), ("a", "c")]
    second, first, third = found
    assert first.headroom == pytest.approx(0.7 - 0.4)
    assert second.headroom == pytest.approx(0.8 - 0.5)
    assert third.headroom == pytest.approx(0.0)
    assert (second.SAFE, second.LOSS, second.RESCUE, second.HARD) == (0, 5, 3, 2)
    assert second.price_gap == pytest.approx(5.0)
    # The oracle pays 5 for five tasks and 1 for the other five; the better model alone costs 50.
    assert second.saving == pytest.approx(1 - 30 / 50)
    assert all(one.noise is None for one in found)


def test_the_dearer_arm_is_the_capable_one_and_without_costs_the_better() -> None:
    (found,) = rank([*tried(A, "+" * 10, 1.0), *tried(B, "-" * 10, 2.0)])
    assert found.capable == B
    (found,) = rank([*tried(B, "+" * 10, None), *tried(A, "-" * 10, None)])
    assert (found.capable, found.price_gap, found.saving, found.n_cost) == (B, None, None, 0)


def test_arms_with_few_tasks_in_common_are_not_ranked() -> None:
    few = "+" * (LEAST_TASKS - 1)
    assert rank([*tried(A, few, 1.0), *tried(B, few, 1.0)]) == []


def test_the_noise_is_that_of_the_better_model() -> None:
    runs = [run_ for trial, said in (("1", "++++++++--"), ("2", "++++++++++")) for run_ in tried(A, said, 2.0, trial)]
    runs += [run_ for trial in "12" for run_ in tried(B, "-" * 10, 1.0, trial)]
    (found,) = rank(runs)
    assert found.noise == pytest.approx(2 / 10 / 2)


def test_progress_is_told_for_every_pair() -> None:
    seen: list[tuple[int, int]] = []
    rank(RUNS, lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
