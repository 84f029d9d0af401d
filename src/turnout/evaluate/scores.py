"""Precision, recall and F1 with 95 % intervals, and confusion counts. Pure.

Intervals are Wilson score intervals: they hold for small counts and at 0 and 1. F1 = 2J / (1 + J) grows with
J = right / (right + false + missed), which is a share; its interval is the Wilson interval of J put through the same formula.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

from msgspec import Struct

from turnout.statistics.shares import Share, share

T = TypeVar("T", bound=Hashable)


class Score(Struct, frozen=True):
    """How well one class is found. `labelled`: results that belong to it; `called`: results said to; `right`: both."""

    labelled: int
    called: int
    right: int
    precision: Share
    recall: Share
    f1: Share


def score(pairs: Iterable[tuple[bool, bool]]) -> Score:
    """How well (labelled, called) pairs agree."""
    labelled = called = right = 0
    for truth, said in pairs:
        labelled += truth
        called += said
        right += truth and said
    return Score(
        labelled,
        called,
        right,
        share(right, called),
        share(right, labelled),
        f1(right, called - right, labelled - right),
    )


def f1(right: int, false: int, missed: int) -> Share:
    """The harmonic mean of precision and recall, from counts; `hits`, `of` are those of the share J."""
    jaccard = share(right, right + false + missed)
    value = None if jaccard.value is None else _f1(jaccard.value)
    return Share(jaccard.hits, jaccard.of, value, _f1(jaccard.low), _f1(jaccard.high))


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def confusion(pairs: Iterable[tuple[T, T]]) -> dict[T, dict[T, int]]:
    """How often each label (outer key) was called what (inner key)."""
    counts: dict[T, dict[T, int]] = {}
    for truth, said in pairs:
        row = counts.setdefault(truth, {})
        row[said] = row.get(said, 0) + 1
    return counts


def kappa(pairs: Iterable[tuple[T, T]]) -> float | None:
    """Cohen's kappa: how far two agree beyond what their habits alone would give. 1 = always, 0 = no more than by chance; None
    for no pairs, and where both only ever say one and the same."""
    said = list(pairs)
    of = len(said)
    if not of:
        return None
    agreed = sum(a == b for a, b in said) / of
    first, second = Counter(a for a, _ in said), Counter(b for _, b in said)
    chance = sum(count * second[name] for name, count in first.items()) / of**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)
