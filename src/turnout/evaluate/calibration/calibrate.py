"""Calibration from units whose efficient runs are recorded step by step: sweep, choice, judgement."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.baselines import Played, is_costed
from turnout.evaluate.calibration.figures import Figures, UpperBounds, baselines, played_by, side
from turnout.evaluate.calibration.reliability import highest_score, reliability
from turnout.evaluate.calibration.result import Calibration, Constraint, Data, Point, Tried
from turnout.evaluate.calibration.settings import Settings, changed, settings_of
from turnout.evaluate.calibration.sides import Split, TooLittle, require_enough, split
from turnout.evaluate.calibration.sweep import Moves, moves
from turnout.evaluate.calibration.words import judgement, notes
from turnout.evaluate.outcomes import Read
from turnout.evaluate.pairing import Unit, pair
from turnout.evaluate.quadrants import quadrant
from turnout.evaluate.restart import sweep as restarts
from turnout.evaluate.switching import ASSUMPTION, inside, name_of
from turnout.evaluate.trajectories import Trajectories
from turnout.routing.core import Router, TargetFacts, TargetName
from turnout.statistics.bootstrap import RESAMPLES

METHOD = (
    "chosen: of the points that keep the constraint on the tasks to choose by, the one that costs least there (without known "
    "costs: that moves least), among equals the one with more success, then the one that changes fewer settings, then the first; "
    "intervals: 95 %, percentile bootstrap over tasks with all their trials"
)
_EPSILON = 1e-9


class Asked(Struct, frozen=True):
    """What to calibrate and how. `jobs`: processes, 0 = one a core."""

    route: str
    capable: Arm
    efficient: Arm
    constraint: Constraint
    train_share: float = 0.5
    seed: int = 1
    resamples: int = RESAMPLES
    jobs: int = 0


class Swept(Struct, frozen=True):
    """The points of a sweep that the router takes, with the first move of every unit's run under each."""

    points: tuple[Settings, ...]
    moves: tuple[Moves, ...]
    refused: int

    def plays(self, point: int, units: Sequence[Unit], which: Sequence[int]) -> list[Played]:
        """What becomes of some of the units under a point; all points at once would not fit into memory."""
        moves = self.moves[point]
        return played_by([units[n] for n in which], [moves[n] for n in which])


def calibrate(
    read: Read,
    runs: Trajectories,
    router: Router,
    points: Sequence[Settings],
    asked: Asked,
    targets: Mapping[TargetName, TargetFacts] | None = None,
    told: Callable[[str, int, int], None] | None = None,
) -> Calibration:
    """Sweep `points` (the first is the policy in force), choose by one part of the tasks and judge on the other.

    `read`: outcomes of both arms, those of the efficient one with `runs`. Raises TooLittle, ValueError for a router that cannot
    be swept, TapeMiss for one that asks models.
    """
    units = tuple(unit for unit in pair(read.outcomes, asked.capable, asked.efficient).units if runs.of(unit.efficient))
    parts = split(units, asked.train_share, asked.seed)
    require_enough(units, parts)
    tell = told or (lambda what, done, of: None)
    swept = _swept(units, runs, router, points, targets, asked.jobs, lambda done, of: tell("sweeping", done, of))
    chosen, listed = _listed(units, swept, parts, asked)
    tell("judging", 0, 1)
    return _judged(units, read, runs, router, swept, chosen, listed, parts, asked)


def _swept(
    units: Sequence[Unit],
    runs: Trajectories,
    router: Router,
    points: Sequence[Settings],
    targets: Mapping[TargetName, TargetFacts] | None,
    jobs: int,
    told: Callable[[int, int], None],
) -> Swept:
    named = [(name_of(unit.efficient), runs.of(unit.efficient)) for unit in units]
    found = moves(router, points, named, targets, jobs, told)
    taken = [(settings, one) for settings, one in zip(points, found, strict=True) if one is not None]
    return Swept(tuple(settings for settings, _ in taken), tuple(one for _, one in taken), len(points) - len(taken))


def _listed(units: Sequence[Unit], swept: Swept, parts: Split, asked: Asked) -> tuple[int | None, tuple[Point, ...]]:
    """The number of the chosen point, and all points. Only the tasks to choose by have a say."""
    weights, bound = asked.constraint.loss_weights, asked.constraint
    chooses, judges = _numbers(units, parts.train), _numbers(units, parts.held_out)
    by, on = [units[n] for n in chooses], [units[n] for n in judges]
    bounds = UpperBounds(by, weights, min(asked.resamples, 2000), asked.seed)
    found = []
    for n, settings in enumerate(swept.points):
        played = swept.plays(n, units, chooses)
        train, high = side(by, played, weights), bounds.of(played)
        allowed = (train.lost if bound.by == "estimate" else high) <= bound.max_loss + _EPSILON
        held_out = side(on, swept.plays(n, units, judges), weights)
        found.append(Point(settings, train, held_out, high, allowed, in_force=not settings))
    chosen = _choice(found)
    if chosen is not None:
        found[chosen] = msgspec.structs.replace(found[chosen], chosen=True)
    return chosen, tuple(found)


def _numbers(units: Sequence[Unit], tasks: Collection[str]) -> list[int]:
    within = set(tasks)
    return [n for n, unit in enumerate(units) if unit.task in within]


def _choice(points: Sequence[Point]) -> int | None:
    """The cheapest of the allowed points by the tasks to choose by (see METHOD); None when there is none."""
    costed = all(one.train.cost_usd is not None for one in points)

    def rank(n: int) -> tuple[float, float, int, int]:
        one = points[n].train
        price = one.cost_usd if costed and one.cost_usd is not None else one.moved
        # Sums of the same numbers in another order must not decide.
        return round(price, 9), -round(one.success, 9), len(points[n].settings), n

    return min((n for n, one in enumerate(points) if one.allowed), key=rank, default=None)


def _judged(
    units: Sequence[Unit],
    read: Read,
    runs: Trajectories,
    router: Router,
    swept: Swept,
    chosen: int | None,
    listed: tuple[Point, ...],
    parts: Split,
    asked: Asked,
) -> Calibration:
    sides = {}
    for name, tasks in (("train", parts.train), ("held_out", parts.held_out)):
        of = _numbers(units, tasks)
        some = [units[n] for n in of]
        plays = {"in_force": swept.plays(0, units, of)}
        if chosen is not None:
            plays = {"chosen": swept.plays(chosen, units, of)} | plays
        plays |= baselines(some, next(iter(plays.values())))
        sides[name] = Figures(some, plays, asked.constraint.loss_weights, asked.resamples, asked.seed)
    train, held = sides["train"], sides["held_out"]
    best = router if chosen is None else changed(router, swept.points[chosen])
    on = [units[n] for n in _numbers(units, parts.held_out)]
    scores = [highest_score(runs.of(unit.efficient), best, name_of(unit.efficient)) for unit in on]
    own = settings_of(router)
    names = sorted({name for settings in swept.points for name in settings})
    found = Calibration(
        verdict="",
        result="none allowed",
        route=asked.route,
        router=str(inside(router)[1].__struct_config__.tag),
        data=_data(units, read, runs, asked),
        split=parts,
        constraint=asked.constraint,
        in_force={name: own[name] for name in names},
        chosen=None if chosen is None else {name: swept.points[chosen].get(name, own[name]) for name in names},
        points=listed,
        refused=swept.refused,
        train={name: train.judged(name) for name in train.plays},
        held_out={name: held.judged(name) for name in held.plays},
        against={n: held.difference("chosen", n) for n in held.plays if n != "chosen"} if chosen is not None else {},
        holds=None if chosen is None else listed[chosen].held_out.lost <= asked.constraint.max_loss + _EPSILON,
        reliability=reliability(on, scores),
        assumption=f"{ASSUMPTION}; {restarts(units).weak_cost}",
        method=METHOD,
        notes=(),
        units=_tried(units, swept, chosen, parts, dict(zip((id(unit) for unit in on), scores, strict=True))),
    )
    result, verdict = judgement(found, None if chosen is None else swept.points[chosen])
    return msgspec.structs.replace(found, result=result, verdict=verdict, notes=notes(found))


def _tried(
    units: Sequence[Unit], swept: Swept, chosen: int | None, parts: Split, scores: Mapping[int, float | None]
) -> tuple[Tried, ...]:
    """The units as they were calibrated on. `scores`: by the identity of a unit."""
    held_out = set(parts.held_out)
    return tuple(
        Tried(
            task=unit.task,
            trial=unit.trial,
            category=unit.category,
            side="held_out" if unit.task in held_out else "train",
            quadrant=quadrant(unit),
            capable_line=unit.capable.line,
            capable_success=unit.capable.success,
            capable_usd=unit.capable.cost_usd,
            efficient_line=unit.efficient.line,
            efficient_success=unit.efficient.success,
            efficient_usd=unit.efficient.cost_usd,
            score=scores.get(id(unit)),
            in_force=swept.moves[0][n],
            chosen=None if chosen is None else swept.moves[chosen][n],
        )
        for n, unit in enumerate(units)
    )


def _data(units: Sequence[Unit], read: Read, runs: Trajectories, asked: Asked) -> Data:
    digest = hashlib.sha256()
    for unit in units:
        for run in (unit.capable, unit.efficient):
            digest.update(msgspec.json.encode(run, order="deterministic"))
        digest.update(msgspec.json.encode(runs.of(unit.efficient), order="deterministic"))
    return Data(
        read.file,
        f"sha256:{digest.hexdigest()}",
        read.rows,
        read.damaged,
        len(units),
        len({unit.task for unit in units}),
        sum(is_costed(unit) for unit in units),
        {"capable": asked.capable, "efficient": asked.efficient},
    )


__all__ = ["Asked", "TooLittle", "calibrate"]
