"""Reciprocal-rank fusion, by hand and against the plain way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from turnout.knowledge.fusion import fuse, ranking


def paths_of(lists: list[list[list[int]]]) -> list[object]:
    """Rankings of paths: for each path, for each query, the rows best first."""
    found = []
    for path in lists:
        queries = np.array([query for query, rows in enumerate(path) for _ in rows], np.int64)
        rows = np.array([row for rows in path for row in rows], np.int64)
        found.append(ranking(queries, rows))
    return found


def test_the_scores_are_the_sums_of_reciprocal_ranks() -> None:
    # By hand: row 7 is 1st and 2nd (1 + 1/2), row 4 is 2nd and 1st (the same), row 9 is 3rd on one path alone (1/3).
    fused = fuse(paths_of([[[7, 4, 9]], [[4, 7]]]), np.array([10]))  # type: ignore[arg-type]
    assert fused.rows.tolist() == [7, 4, 9], "of equals, the one that the first path ranks better"
    assert fused.scores.tolist() == [1.5, 1.5, 1 / 3]


def test_no_more_than_asked_for_by_each_query() -> None:
    fused = fuse(paths_of([[[1, 2, 3], [1, 2, 3], [1]]]), np.array([2, 0, 5]))  # type: ignore[arg-type]
    assert list(zip(fused.queries.tolist(), fused.rows.tolist(), strict=True)) == [(0, 1), (0, 2), (2, 1)]


rows = st.lists(st.integers(0, 9), unique=True, max_size=6)


@given(st.lists(st.tuples(rows, rows, rows), min_size=1, max_size=4), st.integers(1, 6))
def test_it_is_what_a_loop_over_queries_gives(
    found: list[tuple[list[int], list[int], list[int]]], at_most: int
) -> None:
    fused = fuse(paths_of([list(path) for path in zip(*found, strict=True)]), np.full(len(found), at_most))  # type: ignore[arg-type]
    for query, paths in enumerate(found):
        scores = {
            row: sum(1 / (path.index(row) + 1) for path in paths if row in path) for path in paths for row in path
        }
        places = {row: [path.index(row) if row in path else 99 for path in paths] for row in scores}
        plain = sorted(scores, key=lambda row: (-scores[row], places[row], row))[:at_most]
        here = fused.queries == query
        got = fused.rows[here].tolist()
        assert [round(scores[row], 9) for row in got] == [round(scores[row], 9) for row in plain]
        assert np.allclose(fused.scores[here], [scores[row] for row in got])
