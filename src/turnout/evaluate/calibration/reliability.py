"""How well a router's score tells which runs of the efficient model fail: bins with counts. Pure."""

import itertools
from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import quadrant
from turnout.evaluate.switching import decisions
from turnout.routing.core import Router
from turnout.signals import Signals
from turnout.statistics.interval import UNKNOWN, Interval
from turnout.statistics.shares import wilson

EDGES = (-1.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Between which scores are counted together; each bin holds its upper edge, the first its lower too."""


class Bin(Struct, frozen=True):
    """Units whose highest score in the run lies above `low` and up to `high`. `score`: the mean of these. `failed`: share whose
    efficient run failed; `lost`: share of which only the capable model solved the task. Wilson intervals."""

    low: float
    high: float
    n: int
    score: float | None
    failed: Interval
    lost: Interval


def highest_score(steps: Sequence[Signals], router: Router, run: str) -> float | None:
    """The highest score that a router gives in a run as it was recorded; None for one without scores."""
    scores = [one.why.score for one in decisions(steps, router, run) if one.why.score is not None]
    return max(scores, default=None)


def reliability(units: Sequence[Unit], scores: Sequence[float | None]) -> tuple[Bin, ...]:
    """What became of the runs by their highest scores; () where the router gives none."""
    known = [(unit, score) for unit, score in zip(units, scores, strict=True) if score is not None]
    if not known:
        return ()
    bins = []
    for low, high in itertools.pairwise(EDGES):
        within = [(u, s) for u, s in known if low < s <= high or (low == s == EDGES[0])]
        n = len(within)
        bins.append(
            Bin(
                low,
                high,
                n,
                sum(score for _, score in within) / n if n else None,
                _share(sum(not unit.efficient.success for unit, _ in within), n),
                _share(sum(quadrant(unit) == "LOSS" for unit, _ in within), n),
            )
        )
    return tuple(bins)


def _share(count: int, n: int) -> Interval:
    return Interval(count / n, *wilson(count, n)) if n else UNKNOWN
