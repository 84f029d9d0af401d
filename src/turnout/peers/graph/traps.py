"""Scores that cannot make a graph, whatever they say: found from the matrix alone. Pure.

The graph needs absolute scores by a directional judge. Two kinds of scores look like them and are not:

- Symmetric ones, s(j -> i) = s(i -> j), such as how often two models agree: Given equals Received, so nobody gives little and
  gets much.
- Shares of pairwise comparisons that a judge decides for an author. A judge has as many wins to hand out as there are
  comparisons: Given is one half for all, or with the judge's own answers among those compared what self-preference leaves over;
  where judges are the opponents, it is what they lost.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from turnout.routing.collaboration.graph import Relations, Scores

_SAME = 1e-6
"""Relative to the range of the scores: less is rounding."""
_SCALES = (1.0, 10.0, 100.0)


class Trap(Struct, frozen=True):
    """A kind of scores that cannot make a graph. `certain`: False = they may be of that kind. `what`: said to people."""

    name: Literal["symmetric_scores", "fixed_given"]
    certain: bool
    what: str


def traps(
    models: Sequence[str], scores: Mapping[str, Mapping[str, float | None]], relations: Relations
) -> tuple[Trap, ...]:
    """The traps that scores run into. `scores` may hold what models score themselves."""
    if "degenerate" in relations.flags:
        return ()
    known = relations.scores
    spread = _spread(known)
    found = []
    if _symmetric(models, known, spread):
        found.append(
            Trap(
                "symmetric_scores",
                True,
                "scores are symmetric: every two models score each other alike, so Given equals Received and nobody can give "
                "little and get much; the judge must be directional",
            )
        )
    if (pairwise := _fixed(models, scores, relations, spread)) is not None:
        found.append(pairwise)
    return tuple(found)


def _spread(scores: Scores) -> float:
    values = [value for row in scores.values() for value in row.values() if value is not None]
    return max(values) - min(values) if values else 0.0


def _pairs(models: Sequence[str], scores: Scores) -> list[tuple[float, float]]:
    """The two scores of every two models that score each other."""
    found = []
    for at, one in enumerate(models):
        for other in models[at + 1 :]:
            there, back = scores[one].get(other), scores[other].get(one)
            if there is not None and back is not None:
                found.append((there, back))
    return found


def _symmetric(models: Sequence[str], scores: Scores, spread: float) -> bool:
    pairs = _pairs(models, scores)
    return len(pairs) >= len(models) and all(abs(there - back) <= _SAME * spread for there, back in pairs)


def _fixed(
    models: Sequence[str], scores: Mapping[str, Mapping[str, float | None]], relations: Relations, spread: float
) -> Trap | None:
    """Whether Given is fixed by how the scores were made."""
    given = [value for value in relations.given.values() if value is not None]
    complete = all(relations.scores[j].get(i) is not None for j in models for i in models if i != j)
    if not complete or not given:
        return None
    close = _SAME * spread
    if max(given) - min(given) <= close:
        return _fixed_given(
            True, "every judge hands out the same on the whole, as comparisons without own answers and ranks do"
        )
    pairs = _pairs(models, relations.scores)
    if max(map(sum, pairs)) - min(map(sum, pairs)) <= close:
        return _fixed_given(
            True, "the two scores of every pair add up to the same, as shares of games won against each other do"
        )
    with_own = [math.fsum(v for i in models if (v := scores[j].get(i)) is not None) for j in models]
    if all(scores[j].get(j) is not None for j in models) and max(with_own) - min(with_own) <= close:
        return _fixed_given(
            True, "with what it scores itself every judge hands out the same, as comparisons with own answers do"
        )
    top = max(value for row in relations.scores.values() for value in row.values() if value is not None)
    scale = next((scale for scale in _SCALES if top <= scale + _SAME), None)
    n = len(models)
    low, high = (n / 2 - 1) / (n - 1), n / 2 / (n - 1)
    if scale is None or (scale > 1 and n < 5) or not all(low * scale <= value <= high * scale for value in given):
        return None
    return _fixed_given(
        False,
        f"all Given lie within {low * scale:.3g} and {high * scale:.3g}, where comparisons with own answers would put them",
    )


def _fixed_given(certain: bool, why: str) -> Trap:
    said = "Given is fixed and says nothing of a judge's standards" if certain else "these may be pairwise wins"
    return Trap("fixed_given", certain, f"{said}: {why}; the graph needs scores of one answer at a time")
