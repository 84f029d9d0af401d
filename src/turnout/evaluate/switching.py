"""Routers on recorded runs: who each would have sent every turn to, and the step of its first move to the capable model. Pure.

A router is asked turn by turn, with what it remembers of its own decisions. What a run's later turns show is what the recorded
model did, so after the first move they are no longer those of the run the router would have had: what became of the task is
simulated as a restart (see `restart`) or not said at all.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from turnout.conversation import Conversation, Settings
from turnout.errors import TapeMiss
from turnout.evaluate.baselines import Played
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit
from turnout.evaluate.restart import cost_up_to, restart
from turnout.evaluate.trajectories import Trajectories
from turnout.routing.core import Decision, Lane, Router, State, TargetFacts, TargetName, Turn
from turnout.sessions.store import folded
from turnout.signals import Signals
from turnout.statistics.bootstrap import RESAMPLES, SEED, Sums
from turnout.statistics.interval import Interval
from turnout.steps import Run

ASSUMPTION = (
    "simulated: at a router's first move to the capable model the efficient run is thrown away and the capable model starts "
    "afresh (efficient cost up to the move + full capable cost, recorded capable outcome); a run without a move stands"
)

_EMPTY = Conversation(messages=(), roles=())
_PAIRS = (("efficient", "capable"), ("weak", "strong"))
_WITHIN = ("router", "incumbent", "main")
"""Fields that hold the router another one goes by."""


class Tiers(Struct, frozen=True):
    """The two targets between which a router chooses."""

    efficient: TargetName
    capable: TargetName


def tiers_of(router: Router) -> Tiers:
    """The tiers of a router, or of the one within it. Raises ValueError for a router without two."""
    _, tiered = inside(router)
    return next(tiers for low, high in _PAIRS if (tiers := _named(tiered, low, high)) is not None)


def _named(router: Router, low: str, high: str) -> Tiers | None:
    efficient, capable = getattr(router, low, None), getattr(router, high, None)
    if isinstance(efficient, str) and isinstance(capable, str):
        return Tiers(TargetName(efficient), TargetName(capable))
    return None


def inside(router: Router) -> tuple[tuple[str, ...], Any]:
    """The router with two tiers, be it this one or one within it, and the names of the tables on the way to it. Raises ValueError
    where there is none."""
    if any(_named(router, low, high) is not None for low, high in _PAIRS):
        return (), router
    for field in _WITHIN:
        inner: Any = getattr(router, field, None)
        if hasattr(inner, "route"):
            path, found = inside(inner)
            # A route with `subagents` or `background` holds its own router as `main`, whose table is the route's.
            return (path if field == "main" else (field, *path)), found
    raise ValueError("it names no efficient and capable (or weak and strong) target, so there is no move to simulate")


def decisions(
    steps: Sequence[Signals], router: Router, run: str = "run", targets: Mapping[TargetName, TargetFacts] | None = None
) -> Iterator[Decision]:
    """What a router decides on each turn of a run, remembering its own decisions. `run`: names the run, for its dice. Raises
    TapeMiss where it would ask a model: nothing that was recorded answers."""
    memory: dict[str, State] = {}
    lane = Lane("", run, "", "session_header")
    for number, signals in enumerate(steps):
        turn = Turn(
            id=f"{run}/{number}",
            lane=lane,
            conversation=_EMPTY,
            settings=_SETTINGS,
            signals=signals,
            targets=targets or {},
            memory=memory,
            now=float(number),
        )
        asking: Run[object, object, Decision] = Run(router.route(turn))
        if not asking.done:
            call = next(iter(asking.pending))
            asking.close()
            raise TapeMiss(f"it asks {getattr(call, 'target', 'a model')}, whose answers no run holds")
        decision = asking.result
        if decision.remember:
            memory = {**memory, **folded(memory, decision.remember)}
        yield decision


_SETTINGS = Settings()


def first_move(
    steps: Sequence[Signals],
    router: Router,
    tiers: Tiers,
    run: str = "run",
    targets: Mapping[TargetName, TargetFacts] | None = None,
) -> int | None:
    """How many replies the efficient model has given when a router first sends a turn elsewhere; None = it never does."""
    for number, decision in enumerate(decisions(steps, router, run, targets)):
        if decision.target != tiers.efficient:
            return number
    return None


def name_of(run: Outcome) -> str:
    """A name for a run that no other has."""
    return f"{run.arm}/{run.task}/{run.trial}/{run.line}"


def simulated(
    router: Router, runs: Trajectories, targets: Mapping[TargetName, TargetFacts] | None = None
) -> Callable[[Unit], Played]:
    """What a router makes of a unit whose efficient run is recorded step by step. Raises ValueError where it has no tiers."""
    tiers = tiers_of(router)

    def play(unit: Unit) -> Played:
        run = unit.efficient
        return restart(unit, first_move(runs.of(run), router, tiers, name_of(run), targets))

    return play


class Decided(Struct, frozen=True):
    """What a router would have decided on every turn of recorded runs; no success is claimed. `capable_turns`: share of
    turns sent to the capable model; `moved`: share of runs with a move; `first`: step of the first move, median over runs that
    move; `switches`: changes of model per run; `kept_cost`: share of the recorded cost that was spent before the first move."""

    runs: int
    turns: int
    capable_turns: Interval
    moved: Interval
    first: float | None
    switches: Interval
    kept_cost: Interval


def decided(
    router: Router,
    runs: Trajectories,
    targets: Mapping[TargetName, TargetFacts] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Decided:
    """A router's decisions on runs, intervals over tasks. Raises ValueError or TapeMiss for one that cannot be asked."""
    tiers = tiers_of(router)

    def ups(run: Outcome) -> list[bool]:
        made = decisions(runs.of(run), router, name_of(run), targets)
        return [decision.target != tiers.efficient for decision in made]

    return summed(runs.read.outcomes, ups, resamples, seed)


def summed(
    runs: Sequence[Outcome], ups: Callable[[Outcome], Sequence[bool]], resamples: int = RESAMPLES, seed: int = SEED
) -> Decided:
    """Decisions on runs added up. `ups`: for each turn of a run, whether it goes to the capable model."""
    columns: dict[str, list[float]] = {name: [] for name in ("n", "turns", "up", "moved", "switches", "cost", "kept")}
    tasks, firsts = [], []
    for run in runs:
        up = list(ups(run))
        first = up.index(True) if any(up) else None
        if first is not None:
            firsts.append(first)
        kept = cost_up_to(run, len(up) if first is None else first)
        known = kept is not None and run.cost_usd is not None
        tasks.append(run.task)
        switches = sum(a != b for a, b in zip([False, *up], up, strict=False))
        row = (
            1.0,
            len(up),
            sum(up),
            first is not None,
            switches,
            run.cost_usd if known else 0.0,
            kept if known else 0.0,
        )
        for name, value in zip(columns, row, strict=True):
            columns[name].append(float(value or 0.0))
    sums = Sums(tasks, columns, resamples, seed)
    return Decided(
        len(tasks),
        int(sum(columns["turns"])),
        sums.share("up", "turns"),
        sums.share("moved", "n"),
        statistics.median(firsts) if firsts else None,
        sums.ratio("switches", "n"),
        sums.ratio("kept", "cost"),
    )
