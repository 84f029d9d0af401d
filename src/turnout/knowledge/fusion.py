"""Reciprocal-rank fusion of the rankings of many queries at once."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_UNRANKED = np.iinfo(np.int64).max


class Ranking(Struct, frozen=True):
    """What one path found, for all queries. `queries`, `rows`, `ranks`: of every hit, in step; ranks count from 1, and a row
    is ranked once for a query."""

    queries: Ints
    rows: Ints
    ranks: Ints


class Fused(Struct, frozen=True):
    """Hits by query, best first. `scores`: the sum of 1 / rank over the paths that found the row."""

    queries: Ints
    rows: Ints
    scores: NDArray[np.float64]


def ranking(queries: Ints, rows: Ints) -> Ranking:
    """A ranking of hits that stand by query, best first."""
    return Ranking(queries, rows, ranks_of(queries))


def ranks_of(queries: Ints) -> Ints:
    """The place, from 1, of every hit among those of its query, where the hits of a query stand together."""
    if not len(queries):
        return queries
    first = np.flatnonzero(np.concatenate([[True], queries[1:] != queries[:-1]]))
    lengths = np.diff(np.append(first, len(queries)))
    return np.arange(len(queries)) - np.repeat(first, lengths) + 1


def fuse(paths: Sequence[Ranking], at_most: Ints) -> Fused:
    """Fuse rankings; of equal scores the row that an earlier path ranks better comes first, then the lower row.

    `at_most`: hits kept for each query.
    """
    queries = np.concatenate([path.queries for path in paths])
    rows = np.concatenate([path.rows for path in paths])
    ranks = np.concatenate([path.ranks for path in paths])
    if not len(queries):
        return Fused(queries, rows, np.zeros(0))
    width = int(rows.max()) + 1
    hits, which = np.unique(queries * width + rows, return_inverse=True)
    scores = np.bincount(which, 1.0 / ranks, len(hits))
    queries, rows = hits // width, hits % width
    keys, start = [], 0
    for path in paths:
        by_path = np.full(len(hits), _UNRANKED)
        by_path[which[start : start + len(path.rows)]] = path.ranks
        keys.append(by_path)
        start += len(path.rows)
    order = np.lexsort((rows, *reversed(keys), -scores, queries))
    kept = order[ranks_of(queries[order]) <= at_most[queries[order]]]
    return Fused(queries[kept], rows[kept], scores[kept])
