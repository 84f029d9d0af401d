"""What scores make of a pool of models: Given and Received, the five categories, C and C', and who looks at whose answers.

Low Given: at most the percentile d1 of Given; high Received: at least the percentile 100 - d1 of Received. Percentiles are
interpolated linearly between the two nearest values, and a model that stands on one is on the side of C. Judges are never brought
to a common level first: that one of them is strict is what the graph is made of. Pure.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from turnout.routing.collaboration.graph import Category, EdgeScore, Relations, Scores

LEAST_MODELS = 3
"""Fewer models make no graph: of two, each is the only judge of the other."""

_TIE = 1e-9
"""Scores as close as this are equal: they differ by how they were added up."""


class Settings(Struct, frozen=True):
    """How relations are made. `d1`: percentile that parts low from high. `d2`: percent of an author's scores that are low.
    `edge_score`: `raw`, or `judge_centered`, a score less what its judge gives on the whole, which keeps a strict judge from
    being among the lowest for everybody."""

    d1: float = 50.0
    d2: float = 50.0
    edge_score: EdgeScore = "raw"

    def __post_init__(self) -> None:
        for name, value in (("d1", self.d1), ("d2", self.d2)):
            if not 0 <= value <= 100:
                raise ValueError(f"{name} must be from 0 to 100, got {value:g}")


def relate(
    models: Sequence[str],
    scores: Mapping[str, Mapping[str, float | None]],
    settings: Settings,
    *,
    questions: int = 0,
    flags: Iterable[str] = (),
) -> Relations:
    """The relations that `scores[judge][author]` make; what a model scores itself is left out. Raises ValueError for fewer than
    three models."""
    if len(models) < LEAST_MODELS:
        raise ValueError(f"a graph needs at least {LEAST_MODELS} models, got {len(models)}")
    known: Scores = {
        judge: {author: _known(scores, judge, author) for author in models if author != judge} for judge in models
    }
    given = {judge: _mean(known[judge].values()) for judge in models}
    received = {author: _mean(known[judge][author] for judge in models if judge != author) for author in models}
    category = categories(given, received, settings.d1)
    anchors = tuple(model for model in models if category[model] == "LH")
    idiosyncratic = tuple(model for model in models if category[model] == "LL")
    voters: dict[str, tuple[str, ...]] = {}
    others: dict[str, tuple[str, ...]] = {}
    for author in models:
        low = lowest(author, known, given, settings)
        if low is None:
            voters[author], others[author] = tuple(model for model in anchors if model != author), ()
            continue
        voters[author] = tuple(model for model in anchors if model in low)
        others[author] = tuple(model for model in idiosyncratic if model in low)
    return Relations(
        scores={judge: {author: known[judge].get(author) for author in models} for judge in models},
        given=given,
        received=received,
        category=category,
        anchors=anchors,
        idiosyncratic=idiosyncratic,
        voters=voters,
        others=others,
        questions=questions,
        flags=(*flags, *_flags(known, category)),
    )


def _known(scores: Mapping[str, Mapping[str, float | None]], judge: str, author: str) -> float | None:
    return scores.get(judge, {}).get(author)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _flags(known: Scores, category: Mapping[str, Category | None]) -> list[str]:
    values = [value for row in known.values() for value in row.values()]
    there = [value for value in values if value is not None]
    found = []
    if there and max(there) - min(there) <= _TIE:
        found.append("degenerate")
    if len(there) < len(values):
        found.append("missing_scores")
    if None in category.values():
        found.append("unclassified")
    return found


def percentile(values: Iterable[float], percent: float) -> float:
    """The percentile of some values, interpolated linearly between the two nearest."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100
    below = min(math.floor(at + _TIE), len(ordered) - 1)
    share = max(0.0, at - below)
    if share <= _TIE or below + 1 == len(ordered):
        return ordered[below]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * share


def categories(
    given: Mapping[str, float | None], received: Mapping[str, float | None], d1: float
) -> dict[str, Category | None]:
    """The category of each model; None where its Given or Received is not known."""
    given_level = _levels([value for value in given.values() if value is not None], d1, low_first=True)
    received_level = _levels([value for value in received.values() if value is not None], d1, low_first=False)
    found: dict[str, Category | None] = {}
    for model, gives in given.items():
        gets = received[model]
        found[model] = (
            None if gives is None or gets is None else _CELLS.get(given_level(gives) + received_level(gets), "MID")
        )
    return found


_CELLS: dict[str, Category] = {"LL": "LL", "LH": "LH", "HL": "HL", "HH": "HH"}
"""Levels of Given and Received to category; all others are in the middle on an axis."""


def _levels(values: Sequence[float], d1: float, *, low_first: bool) -> Callable[[float], str]:
    """What tells whether a value is L, H or, below d1 = 50, M. `low_first`: a value that is both is low."""
    if not values:
        return lambda value: "M"
    low, high = percentile(values, d1), percentile(values, 100 - d1)

    def level(value: float) -> str:
        is_low, is_high = value <= low + _TIE, value >= high - _TIE
        if low_first:
            return "L" if is_low else "H" if is_high or d1 >= 50 else "M"
        return "H" if is_high else "L" if is_low or d1 >= 50 else "M"

    return level


def lowest(author: str, scores: Scores, given: Mapping[str, float | None], settings: Settings) -> frozenset[str] | None:
    """The judges whose scores for `author` are among its lowest d2 %: k = max(1, ceil(d2 / 100 x judges)), and all whose score
    is that of the k-th. None where nobody scored it."""
    found: dict[str, float] = {}
    for judge, row in scores.items():
        score, level = row.get(author), given[judge]
        if score is not None and level is not None:
            found[judge] = score - level if settings.edge_score == "judge_centered" else score
    if not found:
        return None
    k = max(1, math.ceil(settings.d2 / 100 * len(found) - _TIE))
    cut = sorted(found.values())[k - 1]
    return frozenset(judge for judge, score in found.items() if score <= cut + _TIE)
