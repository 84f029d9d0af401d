"""What each way of choosing between two models would have made of recorded units: single models, mixes, oracles. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import QUADRANTS, oracle, quadrant
from turnout.evaluate.tails import Tails, tails
from turnout.statistics.bootstrap import RESAMPLES, SEED, Matrix, Sums, Told
from turnout.statistics.interval import UNKNOWN, Interval

ASSUMPTIONS = {
    "capable": "every unit by the capable model",
    "efficient": "every unit by the efficient model",
    "routed": "as recorded",
    "oracle": "per unit the cheaper success, else the cheaper failure: knows every outcome beforehand",
    "random_mix": "a coin for each unit: expected values, no dice",
    "oracle_by_rate": "per task the model with the higher success rate over its trials (as good: the cheaper); chosen and "
    "judged on the same runs",
    "held_out": "per unit the model that did better in the task's other trials; where these are even or there are none, "
    "the capable one if it leads by more than 2 points in other tasks of the category, else the efficient: "
    "nothing of the unit is looked at",
    "cascade": "efficient first, a verifier that is free and never wrong, then the capable model: both are paid where the "
    "first fails",
}


class Played(Struct, frozen=True):
    """What became of one unit: `success` in [0, 1] (a probability for mixes), `cost_usd` None = unknown, and the part of the
    unit that the efficient model served, None = unknown."""

    success: float
    cost_usd: float | None
    efficient: float | None


class Cost(Struct, frozen=True):
    """Cost over the units whose cost is known for every arm compared. `value`: USD per unit, with its interval
    `low`..`high`; `total`: of all those units; `per_completed`: `total` over those of them that succeeded."""

    value: float | None
    low: float | None
    high: float | None
    total: Interval
    per_completed: Interval
    tails: Tails | None


class Baseline(Struct, frozen=True):
    """What one way of choosing makes of the units. `efficient_share`: of the units, the part served by the efficient model.
    `risk`: tasks lost against the capable model, each weighted, less tasks gained, per unit; below 0 = better than it."""

    success: Interval
    cost_usd: Cost
    efficient_share: Interval
    risk: Interval
    assumption: str = ""


WORTH_IT = 0.02
"""Lead in success in a category beyond which `held_out` takes the capable model."""

Plays = Mapping[str, Sequence[Played]]


def play(units: Sequence[Unit]) -> dict[str, list[Played]]:
    """Every baseline, unit by unit. The mix sends as many units to the efficient model as the routed run did, else the oracle."""
    found = {
        "capable": [_as_recorded(unit.capable, 0.0) for unit in units],
        "efficient": [_as_recorded(unit.efficient, 1.0) for unit in units],
        "oracle": [_chosen(unit, oracle(unit)) for unit in units],
        "cascade": [_cascade(unit) for unit in units],
    }
    if any(unit.routed is not None for unit in units):
        found["routed"] = [_as_recorded(unit.routed, unit.routed.efficient_share) for unit in units if unit.routed]
    share = mixing_share(found)
    found["random_mix"] = [mixed(unit, share) for unit in units]
    by_task = grouped(units)
    is_repeated = any(len(trials) > 1 for trials in by_task.values())
    if is_repeated or len({unit.category for unit in units}) > 1:
        found["held_out"] = _held_out(units, by_task)
    if is_repeated:
        found["oracle_by_rate"] = _by_rate(units, by_task)
    return found


def mixing_share(plays: Plays) -> float:
    """The share of units that a mix sends to the efficient model: that of the routed run where it is known, else the oracle's."""
    for name in ("routed", "oracle"):
        known = [played.efficient for played in plays.get(name, ()) if played.efficient is not None]
        if known and len(known) == len(plays[name]):
            return sum(known) / len(known)
    return 0.0


def mixed(unit: Unit, share: float) -> Played:
    """A unit sent to the efficient model with this probability."""
    capable, efficient = unit.capable, unit.efficient
    cost = None
    if capable.cost_usd is not None and efficient.cost_usd is not None:
        cost = share * efficient.cost_usd + (1 - share) * capable.cost_usd
    return Played(share * efficient.success + (1 - share) * capable.success, cost, share)


def grouped(units: Iterable[Unit]) -> dict[str, list[Unit]]:
    """Units by task."""
    found: dict[str, list[Unit]] = {}
    for unit in units:
        found.setdefault(unit.task, []).append(unit)
    return found


def _as_recorded(outcome: Outcome, efficient: float | None) -> Played:
    return Played(float(outcome.success), outcome.cost_usd, efficient)


def _chosen(unit: Unit, outcome: Outcome) -> Played:
    return _as_recorded(outcome, float(outcome is unit.efficient))


def _cascade(unit: Unit) -> Played:
    first, second = unit.efficient, unit.capable
    if first.success:
        return _as_recorded(first, 1.0)
    cost = None if first.cost_usd is None or second.cost_usd is None else first.cost_usd + second.cost_usd
    return Played(float(second.success), cost, 0.0)


def _by_rate(units: Sequence[Unit], by_task: Mapping[str, Sequence[Unit]]) -> list[Played]:
    return [_chosen(unit, unit.capable if _prefers_capable(by_task[unit.task]) else unit.efficient) for unit in units]


def _prefers_capable(seen: Sequence[Unit]) -> bool:
    """Whether the capable model did better in these units, or as well for less."""
    lead = sum(map(_lead, seen))
    if lead:
        return lead > 0
    costs = [(a, b) for u in seen if (a := u.capable.cost_usd) is not None and (b := u.efficient.cost_usd) is not None]
    return sum(a for a, _ in costs) < sum(b for _, b in costs)


def _held_out(units: Sequence[Unit], by_task: Mapping[str, Sequence[Unit]]) -> list[Played]:
    """Every unit to the model that what is known without looking at it speaks for."""
    of_task = {task: sum(map(_lead, seen)) for task, seen in by_task.items()}
    of_category: dict[str, tuple[int, int]] = {}
    in_category: dict[tuple[str, str], tuple[int, int]] = {}
    for unit in units:
        total, count = of_category.get(unit.category, (0, 0))
        of_category[unit.category] = total + _lead(unit), count + 1
        total, count = in_category.get((unit.category, unit.task), (0, 0))
        in_category[unit.category, unit.task] = total + _lead(unit), count + 1
    played = []
    for unit in units:
        lead: float = of_task[unit.task] - _lead(unit)
        if not lead and len(of_category) > 1:
            total, count = of_category[unit.category]
            own, mine = in_category[unit.category, unit.task]
            lead = (total - own) / (count - mine) - WORTH_IT if count > mine else 0.0
        played.append(_chosen(unit, unit.capable if lead > 0 else unit.efficient))
    return played


def _lead(unit: Unit) -> int:
    """1 where only the capable model succeeds, -1 where only the efficient one does."""
    return unit.capable.success - unit.efficient.success


def is_costed(unit: Unit) -> bool:
    """Whether the cost of every arm of a unit is known, so that it counts in the cost figures."""
    arms = (unit.capable, unit.efficient, unit.routed)
    return all(one.cost_usd is not None for one in arms if one is not None)


def weight_of(weights: Mapping[str, float], category: str) -> float:
    """How many gained tasks one lost task of a category outweighs; "" holds the weight of all others."""
    return weights.get(category, weights.get("", 1.0))


class Baselines:
    """Figures of all ways of choosing over the same units, from the same resamples."""

    def __init__(
        self,
        units: Sequence[Unit],
        plays: Plays,
        weights: Mapping[str, float] | None = None,
        resamples: int = RESAMPLES,
        seed: int = SEED,
        told: Told | None = None,
    ) -> None:
        """`plays`: for each way what became of each unit. `weights`: of lost tasks, by category, "" = all others."""
        self.units = units
        self.plays = plays
        self.costed = [is_costed(unit) for unit in units]
        self.n_cost = sum(self.costed)
        columns: dict[str, list[float]] = {"n": [1.0] * len(units), "costed": [float(one) for one in self.costed]}
        columns |= {name: [float(quadrant(unit) == name) for unit in units] for name in QUADRANTS}
        for name, played in plays.items():
            columns |= self._columns(name, played, weights or {})
        columns |= self._judging()
        self.sums = Sums([unit.task for unit in units], columns, resamples, seed, told)

    def _columns(self, name: str, played: Sequence[Played], weights: Mapping[str, float]) -> dict[str, list[float]]:
        units, costed = self.units, self.costed
        lost = [
            weight_of(weights, unit.category) * unit.capable.success * (1 - one.success)
            - (1 - unit.capable.success) * one.success
            for unit, one in zip(units, played, strict=True)
        ]
        paid = [one.cost_usd or 0.0 if is_in else 0.0 for one, is_in in zip(played, costed, strict=True)]
        done = [one.success if is_in else 0.0 for one, is_in in zip(played, costed, strict=True)]
        return {
            f"success {name}": [one.success for one in played],
            f"cost {name}": paid,
            f"completed {name}": done,
            f"risk {name}": lost,
            f"efficient {name}": [one.efficient or 0.0 for one in played],
        }

    def _judging(self) -> dict[str, list[float]]:
        routed = [unit.routed for unit in self.units]
        known = [one is not None and one.judge_cost_usd is not None and one.cost_usd is not None for one in routed]
        if not any(known):
            return {}
        return {
            "judge": [
                one.judge_cost_usd or 0.0 if one and is_in else 0.0 for one, is_in in zip(routed, known, strict=True)
            ],
            "judged": [one.cost_usd or 0.0 if one and is_in else 0.0 for one, is_in in zip(routed, known, strict=True)],
        }

    def figures(self, name: str) -> Baseline:
        """The figures of one way of choosing."""
        costs = [
            played.cost_usd
            for played, is_in in zip(self.plays[name], self.costed, strict=True)
            if is_in and played.cost_usd is not None
        ]
        mean = self.sums.ratio(f"cost {name}", "costed")
        shares_known = all(one.efficient is not None for one in self.plays[name])
        return Baseline(
            success=self.sums.share(f"success {name}", "n"),
            cost_usd=Cost(
                mean.value,
                mean.low,
                mean.high,
                mean.scaled(self.n_cost),
                self.sums.ratio(f"cost {name}", f"completed {name}"),
                None if name == "random_mix" else tails(costs),
            ),
            efficient_share=self.sums.share(f"efficient {name}", "n") if shares_known else UNKNOWN,
            risk=self.sums.ratio(f"risk {name}", "n"),
            assumption=ASSUMPTIONS.get(name, ""),
        )

    def quadrant_shares(self) -> dict[str, Interval]:
        """The share of units in each of the four sets."""
        return {name: self.sums.share(name, "n") for name in QUADRANTS}

    def success_difference(self, name: str, other: str) -> Interval:
        """Success of one way less that of another, paired."""
        return self.sums.ratio({f"success {name}": 1, f"success {other}": -1}, "n")

    def cost_difference(self, name: str, other: str) -> Interval:
        """USD per unit of one way less that of another, paired, over the units whose costs are known."""
        return self.sums.ratio({f"cost {name}": 1, f"cost {other}": -1}, "costed")

    def above_mix(self, name: str) -> Interval:
        """Success of one way above that of the random mix of the two models that costs the same, over the units whose costs
        are known; UNKNOWN where it costs less or more than both."""

        def above(column: Callable[[str], Matrix]) -> Matrix:
            cheap, dear = column("cost efficient"), column("cost capable")
            low, high = column("completed efficient"), column("completed capable")
            with np.errstate(divide="ignore", invalid="ignore"):
                share = (column(f"cost {name}") - cheap) / (dear - cheap)
                found: Matrix = (column(f"completed {name}") - low - share * (high - low)) / column("costed")
            return np.where((share >= -1e-9) & (share <= 1 + 1e-9), found, np.nan)

        return self.sums.figure(above)

    def judge_share(self) -> Interval:
        """The part of the routed run's cost that went to judges, where both were recorded."""
        return self.sums.ratio("judge", "judged") if "judge" in self.sums.names else UNKNOWN
