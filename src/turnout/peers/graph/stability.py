"""How far a graph depends on the questions that happened to be asked: what holds in resamples of them. Pure.

Everything is derived again from each resample: means, percentiles, categories, edges. A cell that is left out for too few scores
is left out of all of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from turnout.peers.graph.relations import Settings, percentile, relate
from turnout.routing.collaboration.graph import Relations, Scores

LEAST = 0.8
"""Of a category or an edge: below this probability it is unstable."""

Bounds: TypeAlias = tuple[float, float]
Told: TypeAlias = Callable[[int, int], None]
Means: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""Of every judge and author, the mean score in each resample; NaN where it holds no score of theirs."""


class Edge(Struct, frozen=True):
    """How sure it is that `judge` looks at `author`'s answers. `there`: whether the graph says so."""

    judge: str
    author: str
    there: bool
    probability: float


class Stability(Struct, frozen=True):
    """How far relations depend on the questions.

    `given`, `received`: 95 % intervals. `category`: probability of each, by model. `C_i`, `C_prime_i`: by author, the probability
    of each judge that has any. `agreement`: mean Jaccard overlap of C with that of other questions. `unstable`: models whose most
    probable category has less than 0.8. `unstable_edges`: those of C_i that are surer neither to be there nor not to be.
    """

    resamples: int
    questions: int
    given: dict[str, Bounds | None]
    received: dict[str, Bounds | None]
    category: dict[str, dict[str, float]]
    C_i: dict[str, dict[str, float]]
    C_prime_i: dict[str, dict[str, float]]
    agreement: float
    unstable: tuple[str, ...]
    unstable_edges: tuple[Edge, ...]


def stability(
    means: Means, resamples: int, found: Relations, settings: Settings, told: Told = lambda done, of: None
) -> Stability:
    """How far the relations `found` hold in resamples of their questions."""
    models = tuple(found.given)
    cells = [(judge, author) for judge, author in means if found.scores[judge][author] is not None]
    category = {model: dict.fromkeys(("LH", "LL", "HH", "HL", "MID"), 0) for model in models}
    voters, others = ({author: dict.fromkeys(models, 0) for author in models} for _ in range(2))
    given: dict[str, list[float]] = {model: [] for model in models}
    received: dict[str, list[float]] = {model: [] for model in models}
    overlap = 0.0
    for done in range(resamples):
        scores: Scores = {model: {} for model in models}
        for judge, author in cells:
            value = means[judge, author][done]
            scores[judge][author] = None if math.isnan(value) else value
        one = relate(models, scores, settings)
        overlap += _jaccard(one.anchors, found.anchors)
        for model in models:
            if (cell := one.category[model]) is not None:
                category[model][cell] += 1
            for judge in one.voters[model]:
                voters[model][judge] += 1
            for judge in one.others[model]:
                others[model][judge] += 1
            for values, mean in ((given, one.given[model]), (received, one.received[model])):
                if mean is not None:
                    values[model].append(mean)
        if done % 50 == 49:
            told(done + 1, resamples)
    edges = _edges(voters, found, resamples)
    return Stability(
        resamples=resamples,
        questions=found.questions,
        given={model: _bounds(given[model]) for model in models},
        received={model: _bounds(received[model]) for model in models},
        category={model: _shares(category[model], resamples) for model in models},
        C_i={author: _shares(voters[author], resamples) for author in models},
        C_prime_i={author: _shares(others[author], resamples) for author in models},
        agreement=overlap / resamples,
        unstable=tuple(model for model in models if max(category[model].values()) < LEAST * resamples),
        unstable_edges=tuple(edge for edge in edges if 1 - LEAST < edge.probability < LEAST),
    )


def _jaccard(one: Sequence[str], other: Sequence[str]) -> float:
    union = {*one, *other}
    return len({*one} & {*other}) / len(union) if union else 1.0


def _shares(counts: Mapping[str, int], of: int) -> dict[str, float]:
    return {name: count / of for name, count in counts.items() if count}


def _edges(voters: Mapping[str, Mapping[str, int]], found: Relations, of: int) -> list[Edge]:
    return [
        Edge(judge, author, judge in found.voters[author], count / of)
        for author, counts in voters.items()
        for judge, count in counts.items()
        if judge != author
    ]


def _bounds(values: Sequence[float]) -> Bounds | None:
    if not values:
        return None
    return percentile(values, 2.5), percentile(values, 97.5)
