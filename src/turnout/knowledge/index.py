"""Nearest vectors by inner product: exact, or approximate."""

import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from turnout.knowledge.embedding.embedder import Vectors

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]

_BLOCK = 16384
_LINKS = 32
_EFFORT_BUILDING = 80
_EFFORT_SEARCHING = 128


class Index(Protocol):
    """Something that finds the nearest of its vectors."""

    def search(self, queries: Vectors, count: int) -> tuple[Scores, Rows]:
        """For each query the `count` nearest (fewer where there are fewer), best first, the lower row first of equals; which of
        equals at the end are left out is not said. A row of -1 stands where an approximate index found none."""
        ...


def faiss_module() -> Any:
    """The package faiss, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of its bindings, which are not ours to mend
            import faiss
    except ImportError:
        return None
    return faiss


class Exact:
    """Compares with every vector; they are not copied. `faiss`: None for numpy alone."""

    def __init__(self, vectors: Vectors, faiss: Any) -> None:
        self._vectors = vectors
        self._faiss = faiss

    def search(self, queries: Vectors, count: int) -> tuple[Scores, Rows]:
        """See Index."""
        count = min(count, len(self._vectors))
        if count == 0 or not len(queries):
            return np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
        if self._faiss is not None:
            scores, rows = self._faiss.knn(queries, self._vectors, count, metric=self._faiss.METRIC_INNER_PRODUCT)
        else:
            scores, rows = _blockwise(queries, self._vectors, count)
        return ordered(scores, rows)


def _blockwise(queries: Vectors, vectors: Vectors, count: int) -> tuple[Scores, Rows]:
    scores = np.zeros((len(queries), 0), np.float32)
    rows = np.zeros((len(queries), 0), np.int64)
    for start in range(0, len(vectors), _BLOCK):
        block = queries @ vectors[start : start + _BLOCK].T
        scores = np.concatenate([scores, block], axis=1)
        here = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        rows = np.concatenate([rows, here], axis=1)
        if scores.shape[1] > count:
            best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            scores, rows = np.take_along_axis(scores, best, 1), np.take_along_axis(rows, best, 1)
    return scores, rows


def ordered(scores: Scores, rows: Rows) -> tuple[Scores, Rows]:
    """Best first, the lower row first of equals."""
    order = np.lexsort((rows, -scores))
    return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)


class Approximate:
    """A graph of near neighbours (HNSW) that faiss built and keeps in a file."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        graph.hnsw.efSearch = _EFFORT_SEARCHING

    @classmethod
    def build(cls, vectors: Vectors) -> "Approximate":
        """Raises ModuleNotFoundError without faiss."""
        faiss = _needed()
        graph = faiss.IndexHNSWFlat(int(vectors.shape[1]), _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EFFORT_BUILDING
        graph.add(np.ascontiguousarray(vectors))
        return cls(graph)

    @classmethod
    def load(cls, path: Path) -> "Approximate":
        """The index in a file."""
        return cls(_needed().read_index(str(path)))

    def save(self, path: Path) -> None:
        """Write it to a file."""
        _needed().write_index(self._graph, str(path))

    def search(self, queries: Vectors, count: int) -> tuple[Scores, Rows]:
        """See Index."""
        scores, rows = self._graph.search(queries, max(min(count, self._graph.ntotal), 1))
        return ordered(scores, rows)


def _needed() -> Any:
    faiss = faiss_module()
    if faiss is None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")
    return faiss
