"""Every point of a sweep tried on every run: the step of its first move. On all cores; the same whatever their number."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from turnout.evaluate.calibration.settings import Settings, changed
from turnout.evaluate.switching import first_move, tiers_of
from turnout.routing.core import Router, TargetFacts, TargetName
from turnout.signals import Signals

Moves = tuple[int | None, ...]
"""For each run how many replies the efficient model gives before the first move; None = there is none."""

Told = Callable[[int, int], None]
"""Told how many points are done, of how many."""

SMALL = 200_000
"""Decisions, at most, below which more processes cost more time than they save."""
_CHUNK = 16

_Job = tuple[Router, tuple[tuple[str, tuple[Signals, ...]], ...], Mapping[TargetName, TargetFacts]]


def moves(
    router: Router,
    points: Sequence[Settings],
    runs: Sequence[tuple[str, tuple[Signals, ...]]],
    targets: Mapping[TargetName, TargetFacts] | None = None,
    jobs: int = 0,
    told: Told | None = None,
) -> list[Moves | None]:
    """The first moves of each point; None for settings that the router refuses. `runs`: by name, with their steps. `jobs`:
    processes, 0 = one a core."""
    job: _Job = (router, tuple(runs), dict(targets or {}))
    found: list[Moves | None] = []
    for one in _tried(job, points, jobs or os.cpu_count() or 1):
        found.append(one)
        if told is not None:
            told(len(found), len(points))
    return found


def _tried(job: _Job, points: Sequence[Settings], jobs: int) -> Iterator[Moves | None]:
    decisions = len(points) * sum(len(steps) for _, steps in job[1])
    if jobs == 1 or decisions < SMALL:
        yield from (_try(job, settings) for settings in points)
        return
    # A new interpreter each, on every system: a fork would copy whatever threads this process has, such as a progress bar's.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _take, (job,)) as pool:
        yield from pool.map(_try_mine, points, chunksize=_CHUNK)


def _try(job: _Job, settings: Settings) -> Moves | None:
    router, runs, targets = job
    try:
        one = changed(router, settings)
    except ValueError:
        return None
    tiers = tiers_of(one)
    return tuple(first_move(steps, one, tiers, name, targets) for name, steps in runs)


_mine: list[_Job] = []
"""What a process of the pool tries points on, given once."""


def _take(job: _Job) -> None:
    _mine[:] = [job]


def _try_mine(settings: Settings) -> Moves | None:
    return _try(_mine[0], settings)
