"""Estimates of a policy from another's log: worked by hand, right on average, refused without support."""

import random

import pytest
from tests.outcomes import BIG, SMALL, run

from turnout.evaluate.off_policy import OffPolicy, Policy, estimate
from turnout.evaluate.outcomes import Outcome


def made(some: list[Outcome], policy: Policy) -> OffPolicy:
    found = estimate(some, BIG, SMALL, policy, 200)
    assert found is not None
    return found


def logged(n: int, seed: int, share: float = 0.4) -> list[Outcome]:
    """A log of a coin with two sides of hard and easy tasks: big succeeds in 90 % and 50 %, small in 80 % and 10 %."""
    dice = random.Random(seed)
    runs = []
    for i in range(n):
        easy = dice.random() < 0.5
        p = share if easy else share / 2  # small is tried less where it is known to fail
        small = dice.random() < p
        chance = (0.8 if easy else 0.1) if small else (0.9 if easy else 0.5)
        runs.append(
            run(
                SMALL if small else BIG,
                dice.random() < chance,
                0.1 if small else 1.0,
                task=str(i),
                category="easy" if easy else "hard",
                propensity=p if small else 1 - p,
                candidate_propensity=float(small == easy),
            )
        )
    return runs


def test_ips_weighs_each_run_by_the_inverse_of_its_propensity() -> None:
    runs = [run(BIG, i < 8, 2.0, task=f"b{i}", propensity=0.5) for i in range(10)]
    runs += [run(SMALL, i < 3, 1.0, task=f"s{i}", propensity=0.5) for i in range(10)]
    found = made(runs, "capable")
    assert found.success is not None
    assert found.success.ips.value == pytest.approx(8 * 2 / 20)
    assert found.success.self_normalised.value == pytest.approx(0.8)
    assert found.cost_usd is not None
    assert found.cost_usd.ips.value == pytest.approx(2.0)
    assert found.effective == pytest.approx(10.0)


def test_the_doubly_robust_estimate_is_as_worked_by_hand() -> None:
    # Uneven propensities; predictions leave the run's own task out.
    runs = [run(BIG, i < 9, task=f"b{i}", propensity=0.8) for i in range(12)] + [
        run(SMALL, False, task="s", propensity=0.2)
    ]
    found = made(runs, "capable")
    assert found.success is not None
    terms = [
        (y_hat := (9 - success) / 11) + (success - y_hat) / 0.8 for success in [1] * 9 + [0] * 3
    ] + [9 / 12]  # fmt: skip
    assert found.success.doubly_robust.value == pytest.approx(sum(terms) / 13)


def test_estimates_are_right_on_average() -> None:
    truth = {"capable": 0.7, "efficient": 0.45, "candidate": 0.5 * 0.8 + 0.5 * 0.5}
    for policy, expected in truth.items():
        found = [made(logged(400, seed), policy) for seed in range(40)]  # type: ignore[arg-type]
        for name in ("ips", "self_normalised", "doubly_robust"):
            values = [getattr(one.success, name).value for one in found]
            assert sum(values) / len(values) == pytest.approx(expected, abs=0.03), (policy, name)


def test_the_doubly_robust_estimate_scatters_less() -> None:
    found = [made(logged(400, seed), "efficient").success for seed in range(40)]
    spread = {
        name: sum((getattr(one, name).value - 0.45) ** 2 for one in found if one is not None)
        for name in ("ips", "doubly_robust")
    }
    assert spread["doubly_robust"] < spread["ips"]


def test_a_log_without_dice_is_refused() -> None:
    runs = [run(BIG if i % 2 else SMALL, True, task=str(i), propensity=1.0) for i in range(40)]
    assert "support is missing: in 20 of 40" in made(runs, "capable").refused
    assert made(runs, "capable").success is None


def test_a_policy_that_agrees_with_the_log_needs_no_support_elsewhere() -> None:
    runs = [run(BIG, i < 30, task=str(i), propensity=1.0) for i in range(40)]
    found = made(runs, "capable")
    assert found.success is not None
    assert found.success.ips.value == 0.75
    assert "support" in made(runs, "efficient").refused


def test_too_few_runs_in_common_are_refused() -> None:
    runs = [run(BIG, True, task=str(i), propensity=0.9) for i in range(40)]
    runs += [run(SMALL, True, task=f"s{i}", propensity=0.1) for i in range(3)]
    assert "worth 3.0" in made(runs, "efficient").refused


def test_a_propensity_of_zero_contradicts_the_run() -> None:
    assert "propensity 0" in made([run(BIG, True, propensity=0.0)], "capable").refused


def test_runs_without_a_propensity_are_counted_and_left_out() -> None:
    runs = [*logged(100, 1), run(BIG, True, task="x")]
    assert made(runs, "capable").without_propensity == 1
    assert estimate([run(BIG, True)], BIG, SMALL, "capable") is None


def test_a_candidate_needs_its_propensities() -> None:
    runs = [*logged(100, 1), run(BIG, True, task="x", propensity=0.5)]
    assert "candidate_propensity" in made(runs, "candidate").refused
