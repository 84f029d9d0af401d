"""What look-ups compute with: vectors of facts and entities, and which are joined, as arrays in files.

Rows of facts stand in the order of their ids and rows of entities in that of their keys, so the arrays follow from what the
store holds, whatever the order it came in.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from turnout.knowledge.embedding import Embedder
from turnout.knowledge.embedding.embedder import Vectors
from turnout.knowledge.fusion import Ints

FACT_VECTORS = "fact_vectors.npy"
ENTITY_VECTORS = "entity_vectors.npy"
FACT_TEXTS = "fact_texts.npy"
ENTITY_TEXTS = "entity_texts.npy"
STARTS = "incidence_starts.npy"
ENTITIES = "incidence_entities.npy"

_AT_ONCE = 4096

Told = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


class Incidence(Struct, frozen=True):
    """What each row is joined with: the others of row `r` are `others[starts[r] : starts[r + 1]]`, ascending."""

    starts: Ints
    others: Ints

    def turned(self, count: int) -> "Incidence":
        """The same seen from the others, of which there are `count`."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        order = np.argsort(self.others, kind="stable")
        lengths = np.bincount(self.others, minlength=count)
        return Incidence(np.concatenate([[0], np.cumsum(lengths)]), rows[order])

    def degrees(self) -> Ints:
        """With how many others each row is joined."""
        return np.diff(self.starts)


def incidence(pairs: Sequence[tuple[str, str]], facts: Sequence[str], entities: Sequence[str]) -> Incidence:
    """Which entities each fact joins. `pairs`: (fact, entity), in order of both."""
    fact_rows = {fact: row for row, fact in enumerate(facts)}
    entity_rows = {entity: row for row, entity in enumerate(entities)}
    rows = np.array([fact_rows[fact] for fact, _ in pairs], np.int64)
    others = np.array([entity_rows[entity] for _, entity in pairs], np.int64)
    lengths = np.bincount(rows, minlength=len(facts))
    return Incidence(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), others)


class Embedded(Struct, frozen=True):
    """Vectors, and of which texts (their digests)."""

    vectors: Vectors
    texts: NDArray[np.bytes_]

    @classmethod
    def load(cls, folder: Path, vectors: str, texts: str) -> "Embedded":
        """From two files of a folder; the vectors are read as they are needed."""
        return cls(np.load(folder / vectors, mmap_mode="r"), np.load(folder / texts))


def embedded(texts: Sequence[str], before: Embedded | None, embedder: Embedder, what: str, told: Told) -> Embedded:
    """The vectors of texts; those that are there from `before` are not computed again."""
    digests = np.array([hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] for text in texts], "S16")
    vectors = np.zeros((len(texts), embedder.dimensions), np.float32)
    known = {} if before is None else {digest: row for row, digest in enumerate(before.texts.tolist())}
    old = np.array([known.get(digest, -1) for digest in digests.tolist()], np.int64)
    if before is not None and len(texts):
        vectors[old >= 0] = before.vectors[old[old >= 0]]
    new = np.flatnonzero(old < 0)
    for start in range(0, len(new), _AT_ONCE):
        told(what, start, len(new))
        some = new[start : start + _AT_ONCE]
        vectors[some] = embedder.embed([texts[row] for row in some.tolist()])
    told(what, len(new), len(new))
    return Embedded(vectors, digests)


def save(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Put an array in place, whole or not at all; whoever reads the one before keeps it."""
    part = folder / (name + ".part")
    with part.open("wb") as file:
        np.save(file, array)
    part.replace(folder / name)
