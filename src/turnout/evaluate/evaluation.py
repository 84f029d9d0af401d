"""The whole comparison of two models, and of a router between them, from recorded outcomes. Pure but for the price table it
is given."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.baselines import Baseline, Baselines, Played, play
from turnout.evaluate.cache_effects import CacheEffect, cache_effect
from turnout.evaluate.control import Control, control
from turnout.evaluate.frontier import Frontier, Point, frontier
from turnout.evaluate.off_policy import OffPolicy, estimate
from turnout.evaluate.outcomes import Outcome, Read
from turnout.evaluate.pairing import Paired, Unit, pair
from turnout.evaluate.quadrants import DEFINITIONS, QUADRANTS, Quadrant, count, quadrant
from turnout.evaluate.restart import ASSUMPTION, restart, sweep
from turnout.evaluate.switching import ASSUMPTION as FIRST_MOVE
from turnout.evaluate.verdict import MARGIN, Verdict, verdict
from turnout.pricing import Rates
from turnout.statistics.bootstrap import RESAMPLES, SEED, Told
from turnout.statistics.interval import UNKNOWN, Interval
from turnout.statistics.paired import PairedTest, mcnemar, sign_flip


class Method(Struct, frozen=True):
    """How the figures were made, so that they can be made again. `loss_weights`: of a lost task, by category, "" = all others."""

    resamples: int
    seed: int
    margin: float
    loss_weights: dict[str, float]
    intervals: str = "95 %, percentile bootstrap over tasks with all their trials; a share of 0 or 1: Wilson over tasks"
    percentiles: str = "linear interpolation between the two nearest units"
    pairing: str = "same task and trial label; where no label is shared, the k-th run with the k-th"


class Counted(Struct, frozen=True):
    """What of the file is in the figures and what is not. `damaged_lines` names the first of the damaged."""

    file: str
    rows: int
    damaged: int
    damaged_lines: tuple[tuple[int, str], ...]
    unknown_success: int
    left_over: dict[str, int]
    repeated: int
    unknown_cost: dict[str, int]


class Tests(Struct, frozen=True):
    """Capable against efficient. With repeated trials McNemar's test takes each task's first, as it needs independent pairs;
    the sign-flip permutation test takes success rates over trials."""

    mcnemar: PairedTest
    sign_flip_p: float | None


class GapClosed(Struct, frozen=True):
    """How much of the way to the oracle the router goes, 0 = none, 1 = all. `success`: from the better single model;
    `success_from_mix`: from the random mix with the router's share; `cost`: from capable-only."""

    success: Interval
    success_from_mix: Interval
    cost: Interval


class Controls(Struct, frozen=True):
    """Each model against itself, None where it was not tried twice. `headroom_beyond_noise`: oracle success above the better
    model, less what an oracle would gain from two runs of that model."""

    capable: Control | None
    efficient: Control | None
    headroom_beyond_noise: float | None


class Category(Struct, frozen=True):
    """The figures of one category of tasks."""

    name: str
    n: int
    tasks: int
    n_cost: int
    loss_weight: float
    quadrants: dict[Quadrant, int]
    arms: dict[str, Baseline]


class Restarts(Struct, frozen=True):
    """Escalation simulated as restarts, by the step after which a weak run is given up. `reason`: why there are none."""

    arms: dict[int, Baseline]
    assumption: str
    weak_cost: str
    reason: str


class Routing(Struct, frozen=True):
    """A router simulated on recorded trajectories. `success_difference`, `cost_difference_usd`: against the capable model;
    `above_mix`: success above that of a random mix of the two models at the same cost, over units whose costs are known."""

    figures: Baseline
    success_difference: Interval
    cost_difference_usd: Interval
    above_mix: Interval
    gap_closed: GapClosed


class Evaluation(Struct, frozen=True):
    """Everything `turnout evaluate` says of two models. Shares in [0, 1], costs in USD. None: not recorded, or cannot be said."""

    verdict: str
    decision: Verdict
    definitions: dict[str, str]
    method: Method
    counted: Counted
    arms: dict[str, Arm]
    n: int
    n_tasks: int
    n_cost: int
    capable: Baseline
    efficient: Baseline
    oracle: Baseline
    random_mix: Baseline
    cascade: Baseline
    oracle_by_rate: Baseline | None
    held_out: Baseline | None
    routed: Baseline | None
    quadrants: dict[Quadrant, int]
    quadrant_shares: dict[str, Interval]
    success_difference: Interval
    cost_difference_usd: Interval
    headroom: Interval
    gap_closed: GapClosed | None
    judge_share: Interval
    tests: Tests
    control: Controls | None
    spent_usd: dict[str, dict[str, float]]
    categories: tuple[Category, ...]
    frontier: Frontier | None
    restarts: Restarts
    routers: dict[str, Routing]
    cache: dict[str, CacheEffect]
    off_policy: tuple[OffPolicy, ...] | None
    notes: tuple[str, ...]


class Asked(Struct, frozen=True):
    """Which arms to compare and how. `weights`: of lost tasks by category, "" = all others."""

    capable: Arm
    efficient: Arm
    routed: Arm | None = None
    margin: float = MARGIN
    weights: Mapping[str, float] = {}
    resamples: int = RESAMPLES
    seed: int = SEED


def evaluate(
    read: Read,
    asked: Asked,
    rates_of: Callable[[str], Rates | None],
    told: Told | None = None,
    routers: Mapping[str, Callable[[Unit], Played]] | None = None,
) -> tuple[Evaluation, tuple[Unit, ...]]:
    """Compare arms over the outcomes of a file, and give the units that the figures were made from.

    `rates_of`: the rates of a model, for costs with and without caches. `routers`: what each makes of a unit (see `switching`).
    Raises ValueError when two arms are the same.
    """
    paired = pair(read.outcomes, asked.capable, asked.efficient, asked.routed)
    units = paired.units
    plays = play(units)
    giving_up = sweep(units)
    for step in giving_up.steps:
        plays[_after(step)] = [restart(unit, step) for unit in units]
    for name, simulate in (routers or {}).items():
        plays[_route(name)] = [simulate(unit) for unit in units]
    figures = Baselines(units, plays, asked.weights, asked.resamples, asked.seed, told)
    made = {name: figures.figures(name) for name in plays}
    decision = verdict(figures, asked.margin)
    better = max(("capable", "efficient"), key=lambda name: made[name].success.value or 0.0)
    headroom = figures.success_difference("oracle", better)
    controls = _controls(read.outcomes, asked, units, better, headroom)
    found = Evaluation(
        verdict=decision.sentence,
        decision=decision,
        definitions=DEFINITIONS,
        method=Method(asked.resamples, asked.seed, asked.margin, {"": 1.0, **asked.weights}),
        counted=_counted(read, paired),
        arms={name: arm for name in ("capable", "efficient", "routed") if (arm := getattr(asked, name)) is not None},
        n=len(units),
        n_tasks=paired.tasks,
        n_cost=figures.n_cost,
        capable=made["capable"],
        efficient=made["efficient"],
        oracle=made["oracle"],
        random_mix=made["random_mix"],
        cascade=made["cascade"],
        oracle_by_rate=made.get("oracle_by_rate"),
        held_out=made.get("held_out"),
        routed=made.get("routed"),
        quadrants=count(units),
        quadrant_shares=figures.quadrant_shares(),
        success_difference=figures.success_difference("capable", "efficient"),
        cost_difference_usd=figures.cost_difference("capable", "efficient"),
        headroom=headroom,
        gap_closed=_gap_closed(figures, better) if "routed" in made else None,
        judge_share=figures.judge_share(),
        tests=_tests(units, asked),
        control=controls,
        spent_usd=_spent(figures),
        categories=_categories(units, asked),
        frontier=_frontier(figures, made),
        restarts=Restarts(
            {step: made[_after(step)] for step in giving_up.steps},
            ASSUMPTION.format(step="N") if giving_up.steps else "",
            giving_up.weak_cost,
            giving_up.reason,
        ),
        routers={name: _routing(figures, made, _route(name), better) for name in routers or ()},
        cache={
            name: cache_effect([run for unit in units if (run := getattr(unit, name)) is not None], rates_of)
            for name in ("capable", "efficient")
        },
        off_policy=_off_policy(read.outcomes, asked),
        notes=(),
    )
    return _noted(found, units, figures), units


def _after(step: int) -> str:
    return f"restart after {step}"


def _route(name: str) -> str:
    return f"route {name}"


def _routing(figures: Baselines, made: Mapping[str, Baseline], name: str, better: str) -> Routing:
    return Routing(
        made[name],
        figures.success_difference(name, "capable"),
        figures.cost_difference(name, "capable"),
        figures.above_mix(name),
        _gap_closed(figures, better, name),
    )


def _counted(read: Read, paired: Paired) -> Counted:
    units = paired.units
    names = ("capable", "efficient", "routed") if units and units[0].routed else ("capable", "efficient")
    return Counted(
        file=read.file,
        rows=read.rows,
        damaged=read.damaged,
        damaged_lines=tuple((one.line, one.reason) for one in read.damaged_lines),
        unknown_success=read.unknown_success,
        left_over=paired.left_over,
        repeated=paired.repeated,
        unknown_cost={name: sum(getattr(unit, name).cost_usd is None for unit in units) for name in names},
    )


def _gap_closed(figures: Baselines, better: str, name: str = "routed") -> GapClosed:
    def closed(what: str, start: str) -> Interval:
        way = {f"{what} {name}": 1.0, f"{what} {start}": -1.0}
        whole = {f"{what} oracle": 1.0, f"{what} {start}": -1.0}
        return figures.sums.ratio(way, whole)

    # The mix has the share of the routed run; a simulated router has none, for a restart is neither model's alone.
    share_known = name == "routed" and all(one.efficient is not None for one in figures.plays[name])
    return GapClosed(
        closed("success", better),
        closed("success", "random_mix") if share_known else UNKNOWN,
        closed("cost", "capable") if figures.n_cost else UNKNOWN,
    )


def _tests(units: Sequence[Unit], asked: Asked) -> Tests:
    first: dict[str, tuple[bool, bool]] = {}
    rates: dict[str, list[int]] = {}
    for unit in units:
        first.setdefault(unit.task, (unit.capable.success, unit.efficient.success))
        rates.setdefault(unit.task, []).append(unit.capable.success - unit.efficient.success)
    means = [sum(of) / len(of) for of in rates.values()]
    return Tests(mcnemar(list(first.values())), sign_flip(means, asked.resamples, asked.seed))


def _controls(
    outcomes: Sequence[Outcome], asked: Asked, units: Sequence[Unit], better: str, headroom: Interval
) -> Controls | None:
    tasks = list(dict.fromkeys(unit.task for unit in units))
    found = {
        name: control(outcomes, arm, tasks, asked.resamples, asked.seed)
        for name, arm in (("capable", asked.capable), ("efficient", asked.efficient))
    }
    if not any(found.values()):
        return None
    own = found[better]
    beyond = None
    if own is not None and own.headroom.value is not None and headroom.value is not None:
        beyond = headroom.value - own.headroom.value
    return Controls(found["capable"], found["efficient"], beyond)


def _spent(figures: Baselines) -> dict[str, dict[str, float]]:
    """Who spent how much on which set of units, over those whose costs are known."""
    spent: dict[str, dict[str, float]] = {}
    for name in ("capable", "efficient", "oracle", "routed"):
        if name not in figures.plays:
            continue
        of = spent[name] = dict.fromkeys(QUADRANTS, 0.0)
        for unit, played, is_in in zip(figures.units, figures.plays[name], figures.costed, strict=True):
            if is_in:
                of[quadrant(unit)] += played.cost_usd or 0.0
    return spent


def _categories(units: Sequence[Unit], asked: Asked) -> tuple[Category, ...]:
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.category, []).append(unit)
    if len(groups) < 2:
        return ()
    found = []
    for name, of in sorted(groups.items()):
        plays = play(of)
        kept: dict[str, list[Played]] = {
            arm: plays[arm] for arm in ("capable", "efficient", "oracle", "routed") if arm in plays
        }
        figures = Baselines(of, kept, asked.weights, asked.resamples, asked.seed)
        weight = asked.weights.get(name, asked.weights.get("", 1.0))
        arms = {arm: figures.figures(arm) for arm in kept}
        found.append(Category(name, len(of), figures.sums.tasks, figures.n_cost, weight, count(of), arms))
    return tuple(found)


def _frontier(figures: Baselines, made: Mapping[str, Baseline]) -> Frontier | None:
    """Success and cost over the units whose costs are known, so that both are of the same units."""
    if not figures.n_cost:
        return None
    points = {}
    for name, baseline in made.items():
        success = figures.sums.ratio(f"completed {name}", "costed").value
        cost = baseline.cost_usd.value
        if success is not None and cost is not None:
            said = baseline.assumption
            if name.startswith("restart after "):
                said = ASSUMPTION.format(step=name.removeprefix("restart after "))
            elif name.startswith("route "):
                said = FIRST_MOVE
            points[name] = Point(name, success, cost, said)
    return frontier(list(points.values()), points["capable"], points["efficient"], figures.n_cost)


def _off_policy(outcomes: Sequence[Outcome], asked: Asked) -> tuple[OffPolicy, ...] | None:
    kept = [one for one in outcomes if one.arm in (asked.capable, asked.efficient)]
    if all(one.propensity is None for one in kept):
        return None
    with_candidate = any(one.candidate_propensity is not None for one in kept)
    policies = ("capable", "efficient", "candidate") if with_candidate else ("capable", "efficient")
    made = (
        estimate(kept, asked.capable, asked.efficient, policy, asked.resamples, asked.seed)  # type: ignore[arg-type]
        for policy in policies
    )
    return tuple(one for one in made if one is not None)


def _noted(found: Evaluation, units: Sequence[Unit], figures: Baselines) -> Evaluation:
    notes = []
    if 0 < found.n_cost < found.n:
        part = {
            name: figures.sums.ratio(f"completed {name}", "costed").value or 0.0 for name in ("capable", "efficient")
        }
        notes.append(
            f"costs are known for both models in {found.n_cost} of {found.n} units; the cost figures are of those, where "
            f"success is "
            f"{part['capable']:.1%} (capable) and {part['efficient']:.1%} (efficient), against "
            f"{found.capable.success.value or 0:.1%} and {found.efficient.success.value or 0:.1%} in all"
        )
    if not found.n_cost and units:
        notes.append("no unit has a known cost for every arm: there are no cost figures")
    if found.control is None:
        notes.append(
            "no control: no task was tried twice by the same model, so how much of LOSS, RESCUE and oracle is luck is not known"
        )
    for name in ("capable", "efficient") if found.control is not None else ():
        own = getattr(found.control, name)
        if own is None:
            notes.append(f"no control of the {name} model: it tried no task twice")
        elif own.tasks < figures.sums.tasks:
            notes.append(f"the control of the {name} model rests on {own.tasks} of {figures.sums.tasks} tasks")
    if figures.sums.tasks and figures.sums.tasks < found.n:
        notes.append(f"{found.n} units are {figures.sums.tasks} tasks: intervals rest on the tasks")
    for name, effect in found.cache.items():
        if effect.reason and units:
            notes.append(f"{name}: {effect.reason}")
    if found.routed is not None and found.routed.efficient_share.value is None:
        notes.append(
            "the routed runs do not say which share the efficient model served; the random mix has the oracle's share"
        )
    return msgspec.structs.replace(found, notes=tuple(notes))
