"""Whether an arm does worse: bets worked by hand, no false alarm under looking all the time, and true ones."""

import random

import pytest

from turnout.sequential.worse import Worse

ALPHA = 0.05


def test_bets_are_worked_by_hand() -> None:
    # m = 1/2: E = 1 - 0.2 * (1 - 1/4) * (0 - 1/2) / (1/4) = 1.3 for a candidate that fails.
    bet = Worse(effects=[0.2])
    bet.add(True, 0.0, 0.25)
    assert bet.evidence == pytest.approx(1.3)
    # m = (0 + 1) / (1 + 2) = 1/3: E = 1 - 0.2 * (0 - 1/4) * (1 - 1/3) / (2/9) = 1.15 for an incumbent that succeeds.
    bet.add(False, 1.0, 0.25)
    assert bet.evidence == pytest.approx(1.3 * 1.15)
    # m = 2/4: a candidate that succeeds takes 1 - 0.2 * 3/4 * 1/2 / (1/4) = 0.7 of it.
    bet.add(True, 1.0, 0.25)
    assert bet.evidence == pytest.approx(1.3 * 1.15 * 0.7)
    assert bet.peak == pytest.approx(1.3 * 1.15)


def test_the_expectation_is_one_for_equal_arms_and_less_for_a_better_candidate() -> None:
    def expected(candidate_rate: float, incumbent_rate: float, share: float, margin: float = 0.0) -> float:
        total = 0.0
        for candidate in (True, False):
            success = candidate_rate if candidate else incumbent_rate
            for value in (0.0, 1.0):
                bet = Worse(margin)
                for known in ((True, 1.0), (False, 1.0), (False, 0.0)):
                    bet.add(*known, share)
                before = bet.evidence
                bet.add(candidate, value, share)
                chance = (share if candidate else 1 - share) * (success if value else 1 - success)
                total += chance * bet.evidence / before
        return total

    assert expected(0.8, 0.8, 0.05) == pytest.approx(1.0)
    assert expected(0.9, 0.8, 0.05) < 1.0 < expected(0.7, 0.8, 0.05)
    assert expected(0.7, 0.8, 0.05, margin=0.1) == pytest.approx(1.0)


def stopped(seed: int, incumbent: float, candidate: float, share: float, most: int) -> int | None:
    """After how many units a bet at every unit stops the candidate; None = not within `most`."""
    dice, bet = random.Random(seed), Worse()
    for n in range(1, most + 1):
        drawn = dice.random() < share
        bet.add(drawn, float(dice.random() < (candidate if drawn else incumbent)), share)
        if bet.evidence >= 1 / ALPHA:
            return n
    return None


def test_equal_arms_are_stopped_no_more_often_than_stated() -> None:
    assert sum(stopped(seed, 0.7, 0.7, 0.2, 1000) is not None for seed in range(500)) <= ALPHA * 500


def test_ten_points_less_success_are_found() -> None:
    found = [stopped(seed, 0.7, 0.6, 0.2, 8000) for seed in range(40)]
    assert sum(n is not None for n in found) >= 0.95 * 40


def test_outcomes_of_any_size_between_0_and_1_count_and_others_do_not() -> None:
    dice, bet = random.Random(5), Worse()
    for _ in range(4000):
        drawn = dice.random() < 0.5
        bet.add(drawn, dice.uniform(0.2, 0.7) if drawn else dice.uniform(0.3, 0.8), 0.5)
    assert bet.evidence > 1 / ALPHA
    for value, share in ((1.5, 0.5), (float("nan"), 0.5), (0.5, 0.0), (0.5, 1.0)):
        with pytest.raises(ValueError, match=r"from 0 to 1|between 0 and 1"):
            bet.add(True, value, share)
