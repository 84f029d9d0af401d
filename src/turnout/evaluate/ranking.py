"""Which pairs of models are worth a router: all pairs by what an oracle would gain, and by how far their prices are apart.
Pure."""

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.control import control
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit, pair
from turnout.evaluate.quadrants import count, oracle

LEAST_TASKS = 10
"""Tasks two arms must share to be ranked."""


class RankedPair(Struct, frozen=True):
    """Two arms over the tasks both ran: the dearer as capable (without costs: the more successful). Success shares in [0,
    1]; USD per unit over `n_cost` units whose costs are known.

    `headroom`: oracle success above that of the better model. `noise`: what an oracle would gain from two runs of the better
    model alone, None = no control. `price_gap`: capable cost over efficient cost. `saving`: the part of the better model's
    cost that the oracle saves.
    """

    capable: Arm
    efficient: Arm
    n: int
    tasks: int
    n_cost: int
    success_capable: float
    success_efficient: float
    success_oracle: float
    headroom: float
    noise: float | None
    price_gap: float | None
    saving: float | None
    SAFE: int
    LOSS: int
    RESCUE: int
    HARD: int


def rank(outcomes: Iterable[Outcome], told: Callable[[int, int], None] | None = None) -> list[RankedPair]:
    """All pairs of arms that share enough tasks: most headroom first, then the wider price gap."""
    by_arm: dict[Arm, list[Outcome]] = {}
    for outcome in outcomes:
        by_arm.setdefault(outcome.arm, []).append(outcome)
    pairs = list(combinations(sorted(by_arm), 2))
    noise: dict[Arm, float | None] = {}
    for arm, runs in by_arm.items():
        found = control(runs, arm, {one.task for one in runs}, resamples=0)
        noise[arm] = None if found is None else found.headroom.value
    ranked = []
    for done, (first, second) in enumerate(pairs):
        paired = pair([*by_arm[first], *by_arm[second]], first, second)
        if paired.tasks >= LEAST_TASKS:
            ranked.append(_ranked(paired.units, paired.tasks, noise))
        if told is not None:
            told(done + 1, len(pairs))
    ranked.sort(key=lambda one: (-one.headroom, -(one.price_gap or 0.0), one.capable, one.efficient))
    return ranked


def _ranked(units: tuple[Unit, ...], tasks: int, noise: Mapping[Arm, float | None]) -> RankedPair:
    units = _dearer_first(units)
    costed = [u for u in units if u.capable.cost_usd is not None and u.efficient.cost_usd is not None]
    n = len(units)
    capable = sum(unit.capable.success for unit in units) / n
    efficient = sum(unit.efficient.success for unit in units) / n
    best = sum(oracle(unit).success for unit in units) / n
    paid_capable = sum(unit.capable.cost_usd or 0.0 for unit in costed)
    paid_efficient = sum(unit.efficient.cost_usd or 0.0 for unit in costed)
    paid_oracle = sum(oracle(unit).cost_usd or 0.0 for unit in costed)
    better, paid_better = (units[0].capable.arm, paid_capable)
    if efficient > capable:
        better, paid_better = (units[0].efficient.arm, paid_efficient)
    counts = count(units)
    return RankedPair(
        capable=units[0].capable.arm,
        efficient=units[0].efficient.arm,
        n=n,
        tasks=tasks,
        n_cost=len(costed),
        success_capable=capable,
        success_efficient=efficient,
        success_oracle=best,
        # What the better model fails and the other solves; the oracle less the better one, without rounding.
        headroom=min(counts["LOSS"], counts["RESCUE"]) / n,
        noise=noise[better],
        price_gap=paid_capable / paid_efficient if paid_efficient else None,
        saving=1 - paid_oracle / paid_better if paid_better else None,
        **counts,
    )


def _dearer_first(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    costed = [u for u in units if u.capable.cost_usd is not None and u.efficient.cost_usd is not None]
    lead = sum((u.capable.cost_usd or 0.0) - (u.efficient.cost_usd or 0.0) for u in costed)
    if not costed:
        lead = sum(float(u.capable.success) - float(u.efficient.success) for u in units)
    if lead >= 0:
        return units
    return tuple(Unit(u.number, u.task, u.trial, u.category, u.efficient, u.capable) for u in units)
