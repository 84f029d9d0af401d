"""Measures knowledge: building it, what it finds of gold passages beside BM25 alone, and what look-ups cost beside bare searches.

    python benchmarks/knowledge.py --data ../shared/data/qa > knowledge.md

`--data`: a folder with NAME_corpus.jsonl.gz (passages) and NAME.jsonl.gz (questions with `gold_passages`); without
it only speed is measured. Needs the extra `knowledge`. Prints Markdown.
"""

import argparse
import gzip
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import msgspec
import numpy as np

from turnout.knowledge.arrays import Incidence
from turnout.knowledge.building import Options, build
from turnout.knowledge.corpus import read_corpus
from turnout.knowledge.fusion import Fused
from turnout.knowledge.index import Approximate, Exact, faiss_module
from turnout.knowledge.manifest import Retrieval
from turnout.knowledge.search import DualPath, Graph, Searcher
from turnout.knowledge.statement import Document
from turnout.routing.retrieval.facts import Found, Lookup

SETS = ("hotpotqa_train100", "musique_train100")
DEPTHS = (5, 10)
FACTS, ENTITIES, DIMENSIONS, QUERIES, JOINED = 100_000, 100_000, 256, 64, 3
ROUNDS = 9
AT_MOST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, faiss {faiss_module().__version__}\n")
    if given.data:
        found_of_gold(given.data)
    speed()


def found_of_gold(data: Path) -> None:
    """Recall of gold passages at some depths, by way of looking up."""
    print("| set | passages | facts | entities | build | way | recall@5 | recall@10 | 100 questions |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    for name in SETS:
        questions = msgspec.json.Decoder().decode_lines(gzip.decompress((data / f"{name}.jsonl.gz").read_bytes()))
        corpus = data / f"{name}_corpus.jsonl.gz"
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            built = build(read_corpus(corpus), Path(folder), Options())
            head = (
                f"| {name} | {built.passages} | {built.facts} | {built.entities} | {time.perf_counter() - began:.1f} s "
            )
            for way, ranked in ways(corpus, Path(folder)):
                began = time.perf_counter()
                lists = ranked([question["question"] for question in questions])
                took_s = time.perf_counter() - began
                recalls = " | ".join(f"{recall(questions, lists, depth):.3f}" for depth in DEPTHS)
                print(f"{head}| {way} | {recalls} | {took_s:.2f} s |")
    print()


Ranked = Callable[[list[str]], list[list[str]]]


def ways(corpus: Path, folder: Path) -> list[tuple[str, Ranked]]:
    """Ways to look up; each gives the ids of passages, best first, for each question."""
    settings = {
        "entity path + hyperedge path": Retrieval(bm25=False),
        "the same, entity path by degree": Retrieval(bm25=False, entity_order="degree"),
        "hyperedge path alone": Retrieval(bm25=False, entities=0),
        "both paths + BM25 (default)": Retrieval(),
    }
    documents = [one.passage for one in read_corpus(corpus) if isinstance(one, Document)]
    index = bm25s.BM25()
    index.index(tokens([f"{one.title} {one.text}" for one in documents]), show_progress=False)

    def words(questions: list[str]) -> list[list[str]]:
        rows, _ = index.retrieve(tokens(questions), k=max(DEPTHS), show_progress=False)
        return [[documents[row].id for row in found] for found in rows]

    def of(retrieval: Retrieval) -> Ranked:
        searcher = Searcher.open(folder, retrieval)

        def ranked(questions: list[str]) -> list[list[str]]:
            found = searcher.look_up([Lookup(question, at_most=50) for question in questions])
            return [passages(one) for one in found if isinstance(one, Found)]

        return ranked

    return [("BM25 over passages alone", words), *((way, of(retrieval)) for way, retrieval in settings.items())]


def tokens(texts: Sequence[str]) -> Any:
    return bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)


def passages(found: Found) -> list[str]:
    """The passages of facts, best first, each once."""
    return list(dict.fromkeys(source for fact in found.facts for source in fact.sources))


def recall(questions: Sequence[Any], lists: Sequence[Sequence[str]], depth: int) -> float:
    """The mean share of a question's gold passages among the first `depth`."""
    shares = []
    for question, listed in zip(questions, lists, strict=True):
        gold = {passage["id"] for passage in question["gold_passages"]}
        shares.append(len(gold & set(listed[:depth])) / len(gold))
    return float(np.mean(shares))


def speed() -> None:
    """Dual-path look-ups beside the two bare exact searches that they cannot do without, in turns."""
    print(
        f"{FACTS:,} facts about {ENTITIES:,} entities, {DIMENSIONS} dimensions, {QUERIES} queries at once, {ROUNDS} rounds\n"
    )
    faiss = faiss_module()
    base = memory_mib()
    rng = np.random.default_rng(1)
    graph, queries = world(rng)
    settings = Retrieval(bm25=False)
    exact = DualPath(graph, Exact(graph.fact_vectors, faiss), Exact(graph.entity_vectors, faiss), None, settings)
    texts, at_most = [""] * QUERIES, np.full(QUERIES, AT_MOST)

    def bare() -> None:
        faiss.knn(queries, graph.fact_vectors, settings.facts, metric=faiss.METRIC_INNER_PRODUCT)
        faiss.knn(queries, graph.entity_vectors, settings.entities, metric=faiss.METRIC_INNER_PRODUCT)

    def dual() -> Fused:
        return exact.search(queries, texts, at_most)

    taken = timed({"bare": bare, "dual": dual})
    ratio = taken["dual"] / taken["bare"]
    same = identical(graph, queries, settings, dual())
    print("| what | batch | |")
    print("| --- | ---: | --- |")
    print(f"| two bare exact searches | {taken['bare'] * 1e3:.1f} ms | |")
    print(
        f"| dual-path look-ups, exact | {taken['dual'] * 1e3:.1f} ms | {ratio:.2f} times; identical to brute force: {same} |"
    )
    began = time.perf_counter()
    indices = Approximate.build(graph.fact_vectors), Approximate.build(graph.entity_vectors)
    built_s = time.perf_counter() - began
    near = DualPath(graph, *indices, None, msgspec.structs.replace(settings, index="hnsw"))
    approximate = timed({"hnsw": lambda: near.search(queries, texts, at_most)})["hnsw"]
    _, true_rows = Exact(graph.fact_vectors, faiss).search(queries, settings.facts)
    _, near_rows = indices[0].search(queries, settings.facts)
    share = shared(true_rows, near_rows)
    fused, found = dual(), near.search(queries, texts, at_most)
    of_fused = shared(by_query(fused), by_query(found))
    print(
        f"| dual-path look-ups, HNSW | {approximate * 1e3:.1f} ms | recall@{settings.facts} of facts {share:.3f}, of results "
        f"{of_fused:.3f}; built in {built_s:.0f} s |"
    )
    print(f"| memory | {memory_mib() - base:.0f} MiB | the most that all of this took at any time |")


def world(rng: np.random.Generator) -> tuple[Graph, Any]:
    """Vectors in clusters, since those of texts are not spread evenly either; a few entities are in very many facts."""
    centres = rng.standard_normal((500, DIMENSIONS)).astype(np.float32)

    def clustered(count: int) -> Any:
        made = centres[rng.integers(0, len(centres), count)] + rng.standard_normal((count, DIMENSIONS)).astype(
            np.float32
        )
        return np.ascontiguousarray(made / np.linalg.norm(made, axis=1, keepdims=True))

    popular = (ENTITIES * rng.random((FACTS, JOINED)) ** 2).astype(np.int64)
    rows = [np.unique(row) for row in popular]
    lengths = np.array([len(row) for row in rows])
    joined = Incidence(np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(rows))
    facts = clustered(FACTS)
    graph = Graph(facts, clustered(ENTITIES), joined, joined.turned(ENTITIES), np.ones(FACTS, np.int64))
    return graph, clustered(QUERIES)


def identical(graph: Graph, queries: Any, settings: Retrieval, got: Fused) -> bool:
    """Whether the batch found what loops over queries, paths and facts find."""
    for query, vector in enumerate(queries):
        near = graph.fact_vectors @ vector
        by_facts = np.argsort(-near, kind="stable")[: settings.facts].tolist()
        entities = np.argsort(-(graph.entity_vectors @ vector), kind="stable")[: settings.entities].tolist()
        starts, others = graph.facts_of.starts, graph.facts_of.others
        about = {int(fact) for entity in entities for fact in others[starts[entity] : starts[entity + 1]]}
        by_entities = sorted(about, key=lambda fact: (-near[fact], fact))
        ranks = [{fact: rank for rank, fact in enumerate(path, 1)} for path in (by_facts, by_entities)]
        every = set(by_facts) | about
        scores = {fact: sum(1 / path[fact] for path in ranks if fact in path) for fact in every}
        plain = sorted(every, key=lambda fact: (-scores[fact], [path.get(fact, FACTS) for path in ranks], fact))[
            :AT_MOST
        ]
        if got.rows[got.queries == query].tolist() != plain:
            return False
    return True


def timed(what: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median seconds of each, run in turns."""
    taken: dict[str, list[float]] = {name: [] for name in what}
    for _ in range(ROUNDS):
        for name, work in what.items():
            began = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - began)
    return {name: float(np.median(times)) for name, times in taken.items()}


def by_query(found: Fused) -> list[Any]:
    return [found.rows[found.queries == query] for query in range(QUERIES)]


def shared(true: Any, found: Any) -> float:
    """The mean share of the true rows that were found."""
    return float(np.mean([len(set(a.tolist()) & set(b.tolist())) / len(a) for a, b in zip(true, found, strict=True)]))


def memory_mib() -> float:
    """The most memory that this process has had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
