"""What a simulation found: every strategy with intervals, paired differences, and equal budgets. Needs numpy.

Intervals are percentile bootstraps over questions. A question is drawn with all the splits it was tested in and all strategies,
so that differences are paired.
"""

from collections.abc import Mapping, Sequence
from statistics import stdev

import numpy as np
from msgspec import Struct

from turnout.peers.simulate.arms import Arm
from turnout.peers.simulate.running import COLUMNS, Totals
from turnout.statistics.bootstrap import SEED, Matrix, bounds, draws
from turnout.statistics.interval import Estimate

RESAMPLES = 1_000


class Budget(Struct, frozen=True):
    """What the same cost buys without a graph: a mix of majorities of the best scored models. `made_of`: which. `accuracy`: what
    the mix reaches; `difference`: of the strategy from it. `cost`: of the mix, which is lower where all models together cost less
    than the strategy."""

    made_of: str
    cost: float
    accuracy: float
    difference: Estimate


class Optimistic(Struct, frozen=True):
    """The upper end of the bracket: improving an answer never makes it worse."""

    accuracy: Estimate
    generations: float
    votes: float
    cost: float


class Strategy(Struct, frozen=True):
    """A strategy on the test halves; means over questions.

    `accuracy`: share of right answers, or mean worth where answers are judged. `generations`, `votes`: answers written and votes
    asked for. `cost`: in the unit of the prices. `agreed`: share of questions on which all voters approved, `accuracy_agreed`:
    there. `unseen`: share of first answers for whose author the graph names nobody. `sd`: of the accuracy over splits.
    `minus_first`: from the first model's answer kept as it is; `minus_best_single`: from the best single model's. `optimistic`:
    None where nobody improves anything.
    """

    strategy: str
    first: str
    alpha: int
    d1: float
    d2: float
    edge_score: str
    picker: str
    accuracy: Estimate
    generations: float
    votes: float
    cost: float
    sd: float | None
    minus_best_single: Estimate | None = None
    agreed: float | None = None
    accuracy_agreed: float | None = None
    unseen: float | None = None
    minus_first: Estimate | None = None
    equal_budget: Budget | None = None
    optimistic: Optimistic | None = None


class Comparison(Struct, frozen=True):
    """One strategy beside another on the same questions. `sd`: of the difference over splits; `positive`: in how many of `splits`
    the first did better."""

    one: str
    other: str
    difference: Estimate
    sd: float | None
    positive: int
    splits: int


class Figures:
    """All strategies' columns, and resamples of the questions to see how far they hold."""

    def __init__(self, totals: Totals, arms: Mapping[str, Arm], resamples: int = RESAMPLES, seed: int = SEED) -> None:
        self.arms = arms
        self._totals = totals
        self._place = {name: at for at, name in enumerate(arms)}
        self._columns: Matrix = np.concatenate([totals.sums[name] for name in arms], axis=1)
        times = np.array(list(draws(totals.questions, resamples, seed)), float)
        self._tested = float(totals.times.sum())
        values = self._columns[:, [self._at(name, "value", half) for name in arms for half in (False, True)]]
        self._drawn: Matrix = (times @ values) / (times @ totals.times)[:, None]

    def _at(self, name: str, column: str, optimistic: bool = False) -> int:
        return (2 * self._place[name] + optimistic) * len(COLUMNS) + COLUMNS.index(column)

    def mean(self, name: str, column: str, optimistic: bool = False) -> float:
        """The mean of a column over all questions and the splits they were tested in."""
        return float(self._columns[:, self._at(name, column, optimistic)].sum()) / self._tested

    def _resampled(self, name: str, optimistic: bool = False) -> Matrix:
        drawn: Matrix = self._drawn[:, 2 * self._place[name] + optimistic]
        return drawn

    def accuracy(self, name: str, optimistic: bool = False) -> Estimate:
        """The accuracy of a strategy."""
        value = self.mean(name, "value", optimistic)
        return Estimate(value, *bounds(value, self._resampled(name, optimistic)))

    def difference(self, one: str, other: str) -> Estimate:
        """By how much the accuracy of one exceeds that of the other, paired."""
        value = self.mean(one, "value") - self.mean(other, "value")
        return Estimate(value, *bounds(value, self._resampled(one) - self._resampled(other)))

    def comparison(self, one: str, other: str) -> Comparison:
        """One strategy beside another, also split by split."""
        first, second = self._totals.by_split[one], self._totals.by_split[other]
        apart = [first[seed] - second[seed] for seed in first]
        spread = stdev(apart) if len(apart) > 1 else None
        return Comparison(one, other, self.difference(one, other), spread, sum(d > 0 for d in apart), len(apart))

    def equal_budget(self, name: str) -> Budget | None:
        """What majorities of the best scored models reach for the cost of a strategy; None where the cheapest of them costs more,
        or where answers cannot be counted."""
        ladder = [one for one in self.arms if one == "best_single" or self.arms[one].kind == "majority"]
        costs = [self.mean(one, "cost") for one in ladder]
        cost = self.mean(name, "cost")
        if len(ladder) < 2 or cost < costs[0] - 1e-9:
            return None
        above = next((at for at, one in enumerate(costs) if one >= cost - 1e-9), None)
        if above is None:
            mix, said = {ladder[-1]: 1.0}, f"{ladder[-1]}, which costs less"
        elif abs(costs[above] - cost) <= 1e-9 or above == 0:
            mix, said = {ladder[above]: 1.0}, ladder[above]
        else:
            share = (cost - costs[above - 1]) / (costs[above] - costs[above - 1])
            mix = {ladder[above - 1]: 1 - share, ladder[above]: share}
            said = " and ".join(f"{part:.0%} {one}" for one, part in mix.items())
        reached = sum(part * self.mean(one, "value") for one, part in mix.items())
        drawn = self._resampled(name) - sum(part * self._resampled(one) for one, part in mix.items())
        spent = sum(part * self.mean(one, "cost") for one, part in mix.items())
        apart = self.mean(name, "value") - reached
        return Budget(said, spent, reached, Estimate(apart, *bounds(apart, drawn)))

    def strategy(self, name: str) -> Strategy:
        """Everything about one strategy."""
        arm, chained = self.arms[name], self.arms[name].kind == "chain"
        agreed = self.mean(name, "agreed")
        first = "best_single" if arm.first == "best" else f"single first={arm.first}"
        if arm.by_type and arm.first == "best" and "best_single graph=by_type" in self.arms:
            first = "best_single graph=by_type"
        splits = list(self._totals.by_split[name].values())
        improves = arm.kind in ("chain", "random_chain")
        return Strategy(
            strategy=arm.strategy,
            first=arm.first,
            alpha=arm.alpha,
            d1=arm.settings.d1,
            d2=arm.settings.d2,
            edge_score=arm.settings.edge_score,
            picker=arm.picker,
            accuracy=self.accuracy(name),
            generations=self.mean(name, "generations"),
            votes=self.mean(name, "votes"),
            cost=self.mean(name, "cost"),
            sd=stdev(splits) if len(splits) > 1 else None,
            minus_best_single=None if name == "best_single" else self.difference(name, "best_single"),
            agreed=agreed if chained else None,
            accuracy_agreed=self.mean(name, "agreed_value") / agreed if chained and agreed else None,
            unseen=self.mean(name, "unseen") if chained else None,
            minus_first=self.difference(name, first) if improves else None,
            equal_budget=self.equal_budget(name) if arm.kind not in ("single", "majority") else None,
            optimistic=self._optimistic(name) if improves else None,
        )

    def _optimistic(self, name: str) -> Optimistic:
        generations, votes, cost = (self.mean(name, one, True) for one in ("generations", "votes", "cost"))
        return Optimistic(self.accuracy(name, True), generations, votes, cost)


def told_apart(arms: Mapping[str, Arm]) -> Sequence[tuple[str, str]]:
    """The pairs of strategies whose order is of interest: with and without the graph, with and without its choice of voters, both
    sets of rules, and the first answer kept."""
    found: list[tuple[str, str]] = []
    for name, arm in arms.items():
        if arm.kind != "chain" or arm.by_type:
            continue
        alone = "best_single" if arm.first == "best" else f"single first={arm.first}"
        settings = name.removeprefix(arm.strategy)
        others = {
            "paper": ("non_targeted", "random_chain", alone),
            "default": ("default_non_targeted", "paper", alone),
            "non_targeted": ("random_chain",),
        }.get(arm.strategy, ())
        for other in others:
            beside = other if other == alone else other + settings
            if other == "random_chain" and beside not in arms:
                beside = _random_chain(arms, arm)
            if beside in arms:
                found.append((name, beside))
    return found


def _random_chain(arms: Mapping[str, Arm], arm: Arm) -> str:
    return next(
        (
            name
            for name, one in arms.items()
            if one.kind == "random_chain" and (one.first, one.alpha) == (arm.first, arm.alpha)
        ),
        "",
    )
