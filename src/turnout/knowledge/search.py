"""Look-ups in a knowledge folder along two paths: facts near the query, and facts about entities near the query."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from turnout.errors import ConfigError
from turnout.knowledge import arrays, lexical, manifest
from turnout.knowledge.arrays import Incidence
from turnout.knowledge.building import ENTITY_GRAPH, FACT_GRAPH
from turnout.knowledge.embedding import Embedder, embedder
from turnout.knowledge.embedding.embedder import Vectors
from turnout.knowledge.fusion import Fused, Ints, Ranking, fuse, ranking
from turnout.knowledge.index import Approximate, Exact, Index, faiss_module
from turnout.knowledge.lexical import Lexical
from turnout.knowledge.manifest import Manifest, Retrieval
from turnout.knowledge.store import EntityRow, FactRow, Store
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup

_GATHERED = 65536
"""Vectors of facts on the entity path compared at once."""


class Graph(Struct, frozen=True):
    """A hypergraph ready for look-ups. `joined`: the entities of each fact; `facts_of`: the facts of each entity. `weights`:
    of each fact, in how many passages it stands."""

    fact_vectors: Vectors
    entity_vectors: Vectors
    joined: Incidence
    facts_of: Incidence
    weights: Ints


class DualPath:
    """The two paths and, where there is an index of words, a third; fused by reciprocal rank. Computes with rows alone.

    Nothing is near a query whose vector is zeros.
    """

    def __init__(self, graph: Graph, facts: Index, entities: Index, words: Lexical | None, settings: Retrieval) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities
        self._words = words if settings.bm25 else None
        self._settings = settings
        self._degrees = graph.joined.degrees()

    def search(self, vectors: Vectors, texts: Sequence[str], at_most: Ints) -> Fused:
        """The best facts for each query, as many as asked for at most. What is found for one does not depend on the others."""
        depths = np.maximum(self._settings.facts, at_most)
        paths = [self._by_facts(vectors, depths), self._by_entities(vectors)]
        if self._words is not None:
            paths.append(self._words.rank(texts, depths))
        return fuse(paths, at_most)

    def _by_facts(self, vectors: Vectors, depths: Ints) -> Ranking:
        """The facts nearest to each query."""
        _, rows = self._facts.search(vectors, int(depths.max(initial=0)))
        ranks = np.broadcast_to(np.arange(1, rows.shape[1] + 1), rows.shape)
        kept = (rows >= 0) & (ranks <= depths[:, None]) & _seeing(vectors)
        return Ranking(np.nonzero(kept)[0], rows[kept], ranks[kept])

    def _by_entities(self, vectors: Vectors) -> Ranking:
        """All facts about the entities nearest to each query."""
        _, rows = self._entities.search(vectors, self._settings.entities)
        kept = (rows >= 0) & _seeing(vectors)
        starts = self._graph.facts_of.starts
        entities = rows[kept]
        lengths = starts[entities + 1] - starts[entities]
        hits = np.repeat(np.nonzero(kept)[0], lengths)
        offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        facts = self._graph.facts_of.others[np.repeat(starts[entities], lengths) + offsets]
        # A fact about several of the entities is on the path once.
        width = len(self._graph.fact_vectors)
        distinct = np.unique(hits * width + facts)
        hits, facts = distinct // max(width, 1), distinct % max(width, 1)
        if self._settings.entity_order == "similarity":
            order = np.lexsort((facts, -self._similarities(vectors, hits, facts), hits))
        else:
            order = np.lexsort((facts, -self._graph.weights[facts], -self._degrees[facts], hits))
        return ranking(hits[order], facts[order])

    def _similarities(self, vectors: Vectors, queries: Ints, facts: Ints) -> NDArray[np.float32]:
        found = np.empty(len(facts), np.float32)
        for start in range(0, len(facts), _GATHERED):
            some = slice(start, start + _GATHERED)
            gathered = self._graph.fact_vectors[facts[some]]
            found[some] = np.einsum("ij,ij->i", gathered, vectors[queries[some]])
        return found


def _seeing(vectors: Vectors) -> NDArray[np.bool_]:
    """Which queries have a vector at all, one a row."""
    found: NDArray[np.bool_] = np.any(vectors, axis=1, keepdims=True)
    return found


class Searcher:
    """Look-ups in a folder. What it needs is read when it is opened, so a later build in the folder changes nothing here."""

    def __init__(
        self,
        made: Manifest,
        search: DualPath,
        embedder: Embedder,
        facts: list[FactRow],
        entities: list[EntityRow],
        joined: Incidence,
    ) -> None:
        self.manifest = made
        self.facts = facts
        self.entities = entities
        self._search = search
        self._embedder = embedder
        self._joined = joined

    @classmethod
    def open(cls, folder: Path, settings: Retrieval | None = None) -> "Searcher":
        """`settings`: None = those it was built with. Raises ConfigError for a folder without knowledge, or a damaged one."""
        made = manifest.read(folder)
        manifest.verify(folder, made)
        settings = settings or made.retrieval
        chosen = embedder(made.embedder)
        if chosen.model != made.model:
            raise ConfigError(
                f"its vectors are of another version of {made.embedder}; run the same `turnout knowledge build` again",
                file=str(folder),
            )
        store = Store(folder)
        try:
            facts, entities = store.facts(), store.entities()
        finally:
            store.close()
        joined = Incidence(np.load(folder / arrays.STARTS), np.load(folder / arrays.ENTITIES))
        graph = Graph(
            np.load(folder / arrays.FACT_VECTORS, mmap_mode="r"),
            np.load(folder / arrays.ENTITY_VECTORS, mmap_mode="r"),
            joined,
            joined.turned(len(entities)),
            np.array([len(one.sources) for one in facts], np.int64),
        )
        words = Lexical.load(folder / lexical.FOLDER) if settings.bm25 and _has_words(made) else None
        near_facts = _index(folder, made, settings, graph.fact_vectors, FACT_GRAPH)
        near_entities = _index(folder, made, settings, graph.entity_vectors, ENTITY_GRAPH)
        search = DualPath(graph, near_facts, near_entities, words, settings)
        return cls(made, search, chosen, facts, entities, joined)

    def look_up(self, lookups: Sequence[Lookup]) -> list[Found | Failure]:
        """See Knowledge."""
        if not lookups:
            return []
        texts = [one.query.encode("utf-8", "replace").decode() for one in lookups]  # no lone surrogates
        at_most = np.array([max(one.at_most, 0) if one.query.strip() else 0 for one in lookups], np.int64)
        fused = self._search.search(self._embedder.embed(texts), texts, at_most)
        found: list[list[Fact]] = [[] for _ in lookups]
        for query, row, score in zip(fused.queries.tolist(), fused.rows.tolist(), fused.scores.tolist(), strict=True):
            found[query].append(structs.replace(self.fact(row), score=score))
        return [Found(tuple(facts)) for facts in found]

    def fact(self, row: int) -> Fact:
        """The fact in a row, with score 0."""
        one = self.facts[row]
        start, end = self._joined.starts[row], self._joined.starts[row + 1]
        names = tuple(self.entities[other].name for other in self._joined.others[start:end].tolist())
        return Fact(one.id, one.text, 0.0, one.sources, names)

    def facts_about(self, key: str) -> list[int]:
        """Rows of the facts about an entity, by its key."""
        place = bisect_left(self.entities, key, key=lambda one: one.key)
        if place == len(self.entities) or self.entities[place].key != key:
            return []
        rows: list[int] = np.repeat(np.arange(len(self.facts)), self._joined.degrees())[
            self._joined.others == place
        ].tolist()
        return rows

    def close(self) -> None:
        """See Knowledge; nothing is held open."""


def _has_words(made: Manifest) -> bool:
    return any(name.startswith(lexical.FOLDER + "/") for name in made.files)


def _index(folder: Path, made: Manifest, settings: Retrieval, vectors: Vectors, graph: str) -> Index:
    if settings.index == "exact":
        return Exact(vectors, faiss_module())
    if graph not in made.files:
        if not len(vectors):
            return Exact(vectors, None)
        raise ConfigError("built without an approximate index; build it with --index hnsw", file=str(folder))
    return Approximate.load(folder / graph)
