"""What another policy would have made of a log, from the log alone: inverse propensity scores and the doubly robust
estimate. Pure.

A randomised policy chose one of two models for each task and wrote down how likely it was to (the propensity). Runs that the
other policy would have chosen too then stand for those that were not tried: IPS weighs each by (probability under the
policy) / propensity. The doubly robust estimate predicts every outcome by the mean of the model's runs in other tasks of the
category, and corrects it by the weighted errors; it is right if either the propensities or the predictions are.

Where a policy would choose what the log never could have, no estimate is given.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome
from turnout.statistics.bootstrap import RESAMPLES, SEED, Sums
from turnout.statistics.interval import Interval

LEAST_EFFECTIVE = 10.0
"""Runs that the weights must be worth, (sum w)^2 / sum w^2, for an estimate to be given."""

Policy: TypeAlias = Literal["capable", "efficient", "candidate"]


class Estimate(Struct, frozen=True):
    """`ips`, `self_normalised` (weights made to sum to one) and `doubly_robust` with intervals; `runs` used."""

    runs: int
    ips: Interval
    self_normalised: Interval
    doubly_robust: Interval


class OffPolicy(Struct, frozen=True):
    """What a policy would have made of the log. `refused`: why there is no estimate. `effective`: what the weighted runs are
    worth. `without_propensity`: runs that were left out for the lack of one."""

    policy: str
    runs: int
    without_propensity: int
    effective: float | None = None
    success: Estimate | None = None
    cost_usd: Estimate | None = None
    refused: str = ""


def estimate(
    outcomes: Sequence[Outcome],
    capable: Arm,
    efficient: Arm,
    policy: Policy,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> OffPolicy | None:
    """What a policy (either model alone, or the candidate whose propensities were logged too) would have made of the logged
    runs of two models. None when no run has a propensity."""
    found = weigh(outcomes, capable, efficient, policy)
    if found is None:
        return None
    logged, left_out = found.logged, found.without_propensity
    if found.refused:
        return OffPolicy(policy, len(logged), left_out, found.effective, refused=found.refused)
    success = _estimate(found, [float(one.success) for one in logged], resamples, seed)
    priced = found.priced()
    cost = _estimate(priced, [one.cost_usd or 0.0 for one in priced.logged], resamples, seed) if priced.logged else None
    return OffPolicy(policy, len(logged), left_out, found.effective, success, cost)


class Weighed(Struct, frozen=True):
    """Logged runs as another policy sees them. `chosen`: how likely it is to choose what was chosen; `weights`: that over the
    propensity. `effective`: what the weighted runs are worth. `refused`: why they cannot tell about it, "" when they can."""

    logged: tuple[Outcome, ...]
    without_propensity: int
    chosen: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    effective: float | None = None
    refused: str = ""

    def priced(self) -> "Weighed":
        """Those whose cost is known."""
        kept = [place for place, one in enumerate(self.logged) if one.cost_usd is not None]
        return Weighed(
            tuple(self.logged[place] for place in kept),
            self.without_propensity,
            tuple(self.chosen[place] for place in kept),
            tuple(self.weights[place] for place in kept),
            self.effective,
        )

    def robust(self, values: Sequence[float]) -> list[float]:
        """The doubly robust value of each run, whose mean is the estimate. `values`: what came of the runs."""
        found = []
        predictions = _Predictions(self.logged, values)
        for one, value, share, weight in zip(self.logged, values, self.chosen, self.weights, strict=True):
            own, other = predictions.of(one)
            found.append(share * own + (1 - share) * other + weight * (value - own))
        return found


def weigh(outcomes: Sequence[Outcome], capable: Arm, efficient: Arm, policy: Policy) -> Weighed | None:
    """The logged runs of two models as a policy sees them; None when no run has a propensity."""
    runs = [one for one in outcomes if one.arm in (capable, efficient)]
    logged = tuple(one for one in runs if one.propensity is not None)
    if not logged:
        return None
    left_out = len(runs) - len(logged)
    wanted = capable if policy == "capable" else efficient
    if policy == "candidate":
        missing = sum(one.candidate_propensity is None for one in logged)
        if missing:
            return Weighed(logged, left_out, refused=f"{missing} runs have no candidate_propensity")
        chosen = tuple(one.candidate_propensity or 0.0 for one in logged)
    else:
        chosen = tuple(float(one.arm == wanted) for one in logged)
    refused = _unsupported(logged, chosen, capable, efficient)
    if refused:
        return Weighed(logged, left_out, chosen, refused=refused)
    weights = tuple(share / (one.propensity or 1.0) for one, share in zip(logged, chosen, strict=True))
    effective = sum(weights) ** 2 / sum(w * w for w in weights) if any(weights) else 0.0
    if effective < LEAST_EFFECTIVE:
        refused = f"the runs it shares with the log are worth {effective:.1f} unweighted ones; {LEAST_EFFECTIVE:.0f} are needed"
    return Weighed(logged, left_out, chosen, weights, effective, refused)


def _unsupported(logged: Sequence[Outcome], chosen: Sequence[float], capable: Arm, efficient: Arm) -> str:
    """Why the log cannot tell about a policy; "" when it can. `chosen`: how likely the policy is to choose what was chosen."""
    if any(not one.propensity for one in logged):
        return "a run has propensity 0, which contradicts that it was made"
    never = 0
    for one, share in zip(logged, chosen, strict=True):
        # What was not chosen had the rest of the probability, under either policy.
        never += 1 - share > 0 and 1 - (one.propensity or 0.0) <= 0
    if never:
        return (
            f"support is missing: in {never} of {len(logged)} runs the log could not have chosen what the policy would"
        )
    return ""


def _estimate(found: Weighed, values: Sequence[float], resamples: int, seed: int) -> Estimate:
    columns = {
        "n": [1.0] * len(found.logged),
        "weight": list(found.weights),
        "weighted": [value * weight for value, weight in zip(values, found.weights, strict=True)],
        "robust": found.robust(values),
    }
    sums = Sums([one.task for one in found.logged], columns, resamples, seed)
    return Estimate(
        len(found.logged), sums.ratio("weighted", "n"), sums.ratio("weighted", "weight"), sums.ratio("robust", "n")
    )


class _Predictions:
    """The mean of a model in a category, without the task it is asked about; without any such run, over all categories, else
    0."""

    def __init__(self, logged: Sequence[Outcome], values: Sequence[float]) -> None:
        self._arms = {one.arm for one in logged}
        self._sums: dict[tuple[object, ...], tuple[float, int]] = {}
        for one, value in zip(logged, values, strict=True):
            for key in ((one.arm, one.category), (one.arm,)):
                for whole in (key, (*key, "task", one.task)):
                    total, count = self._sums.get(whole, (0.0, 0))
                    self._sums[whole] = total + value, count + 1

    def of(self, one: Outcome) -> tuple[float, float]:
        """What is expected of the model that was chosen, and of the other."""
        other = next((arm for arm in self._arms if arm != one.arm), None)
        return self._mean(one.arm, one), 0.0 if other is None else self._mean(other, one)

    def _mean(self, arm: Arm, one: Outcome) -> float:
        for key in ((arm, one.category), (arm,)):
            total, count = self._sums.get(key, (0.0, 0))
            own, mine = self._sums.get((*key, "task", one.task), (0.0, 0))
            if count > mine:
                return (total - own) / (count - mine)
        return 0.0
