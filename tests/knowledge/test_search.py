"""Look-ups: the same as brute force, in any batch, and what comes of odd ones."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bm25s")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.knowledge.corpora import ALL
from tests.recorded import needs_recordings, shared

from turnout.errors import ConfigError
from turnout.knowledge import open_knowledge
from turnout.knowledge.arrays import Incidence
from turnout.knowledge.building import Options, build
from turnout.knowledge.corpus import read_corpus
from turnout.knowledge.index import Approximate, Exact, faiss_module
from turnout.knowledge.manifest import Retrieval
from turnout.knowledge.search import DualPath, Graph, Searcher
from turnout.knowledge.statement import Document
from turnout.routing.retrieval.facts import Found, Lookup


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("knowledge")
    build(ALL, folder, Options("hashed"))
    return folder


def found(knowledge: Any, *lookups: Lookup) -> list[Found]:
    return [one for one in knowledge.look_up(lookups) if isinstance(one, Found)]


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["similarity", "degree"]), st.booleans())
def test_it_finds_what_loops_over_everything_find(seed: int, order: Any, plain: bool) -> None:
    rng = np.random.default_rng(seed)
    facts, entities = rng.integers(1, 40), rng.integers(1, 20)
    vectors = [rng.standard_normal((count, 4)).astype(np.float32) for count in (facts, entities, 5)]
    joins = [np.flatnonzero(rng.random(entities) < 0.2) for _ in range(facts)]
    joined = Incidence(
        np.concatenate([[0], np.cumsum([len(one) for one in joins])]), np.concatenate(joins).astype(np.int64)
    )
    weights = rng.integers(1, 3, facts)
    graph = Graph(vectors[0], vectors[1], joined, joined.turned(int(entities)), weights)
    wanted = Retrieval(entities=int(rng.integers(1, 4)), facts=int(rng.integers(1, 6)), entity_order=order, bm25=False)
    module = None if plain else faiss_module()
    search = DualPath(graph, Exact(graph.fact_vectors, module), Exact(graph.entity_vectors, module), None, wanted)
    at_most = rng.integers(0, 8, 5)
    got = search.search(vectors[2], [""] * 5, at_most)
    for query in range(5):
        rows = got.rows[got.queries == query]
        scores = got.scores[got.queries == query]
        want = by_loops(graph, joins, wanted, vectors[2][query], int(at_most[query]))
        assert np.allclose(scores, [score for score, _ in want])
        assert rows.tolist() == [row for _, row in want]


def by_loops(graph: Graph, joins: Any, settings: Retrieval, vector: Any, at_most: int) -> list[tuple[float, int]]:
    near = (graph.fact_vectors * vector).sum(1)
    by_facts = sorted(range(len(near)), key=lambda row: (-near[row], row))[: max(settings.facts, at_most)]
    to_entities = (graph.entity_vectors * vector).sum(1)
    entities = sorted(range(len(to_entities)), key=lambda row: (-to_entities[row], row))[: settings.entities]
    about = [row for row in range(len(near)) if set(joins[row].tolist()) & set(entities)]
    if settings.entity_order == "similarity":
        about.sort(key=lambda row: (-near[row], row))
    else:
        about.sort(key=lambda row: (-len(joins[row]), -graph.weights[row], row))
    paths = [{row: rank for rank, row in enumerate(path, 1)} for path in (by_facts, about)]
    scores = {row: sum(1 / path[row] for path in paths if row in path) for row in {*by_facts, *about}}
    best = sorted(scores, key=lambda row: (-scores[row], [path.get(row, 9999) for path in paths], row))
    return [(scores[row], row) for row in best[:at_most]]


def test_what_is_found_does_not_depend_on_the_batch(folder: Path) -> None:
    knowledge = open_knowledge(str(folder))
    lookups = [
        Lookup("Who directed Lanterns over Harrowmere?", at_most=2),
        Lookup("rope", at_most=5),
        Lookup("1702", at_most=1),
    ]
    assert found(knowledge, *lookups) == [found(knowledge, one)[0] for one in lookups]
    assert [len(one.facts) for one in found(knowledge, *lookups)] == [2, 5, 1]


def test_facts_come_with_sources_entities_and_scores(folder: Path) -> None:
    (first,) = found(open_knowledge(str(folder)), Lookup("Odile Vantorre, born in Port Saltry"))
    best = first.facts[0]
    assert best.text == "Odile Vantorre: She was born in Port Saltry."
    assert best.sources == ("director",)
    assert set(best.entities) == {"Odile Vantorre", "Port Saltry"}
    assert [fact.score for fact in first.facts] == sorted((fact.score for fact in first.facts), reverse=True)
    assert first.facts[0].score == 3.0, "first on all three paths"


def test_odd_look_ups_find_nothing_and_break_nothing(folder: Path) -> None:
    knowledge = open_knowledge(str(folder))
    assert knowledge.look_up([]) == []
    odd = [Lookup(""), Lookup("  "), Lookup("rope", at_most=0), Lookup("rope", at_most=-3)]
    assert found(knowledge, *odd) == [Found(())] * 4
    blind, odd_one = found(knowledge, Lookup("?!", at_most=99), Lookup("\ud800 rope", at_most=99))
    assert blind == Found(()), "nothing is near a query that says nothing"
    assert len(odd_one.facts) == 7


def test_numpy_and_faiss_agree() -> None:
    if faiss_module() is None:
        pytest.skip("faiss is not installed")
    rng = np.random.default_rng(3)
    vectors, queries = rng.random((20_000, 16), np.float32), rng.random((7, 16), np.float32)
    for count in (1, 10, 30_000):
        mine, other = Exact(vectors, None).search(queries, count), Exact(vectors, faiss_module()).search(queries, count)
        assert np.allclose(mine[0], other[0], atol=1e-5)
        assert (mine[1] == other[1]).mean() > 0.99, "they round differently, so near ties may swap"


def test_an_approximate_index_is_kept_and_finds_nearly_all(tmp_path: Path) -> None:
    if faiss_module() is None:
        pytest.skip("faiss is not installed")
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((2000, 16)).astype(np.float32)
    Approximate.build(vectors).save(tmp_path / "graph")
    _, near = Approximate.load(tmp_path / "graph").search(vectors[:50], 10)
    _, true = Exact(vectors, None).search(vectors[:50], 10)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near.tolist(), true.tolist(), strict=True)]) > 0.95
    build(ALL, tmp_path / "k", Options("hashed", {"index": "hnsw", "bm25": False}))
    (got,) = found(open_knowledge(str(tmp_path / "k")), Lookup("Port Saltry harbour town"))
    (exact,) = found(Searcher.open(tmp_path / "k", Retrieval(bm25=False)), Lookup("Port Saltry harbour town"))
    assert got.facts[0].id == exact.facts[0].id
    build(ALL, tmp_path / "e", Options("hashed"))
    with pytest.raises(ConfigError, match="--index hnsw"):
        Searcher.open(tmp_path / "e", Retrieval(index="hnsw"))


@needs_recordings
def test_it_finds_gold_passages_of_real_questions(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    from tests.recorded import rows

    folder = shared()
    assert folder
    questions = rows("qa/hotpotqa_train100.jsonl.gz")[:40]
    gold = {passage["id"] for question in questions for passage in question["gold_passages"]}
    corpus = [
        one for one in read_corpus(folder / "data/qa/hotpotqa_train100_corpus.jsonl.gz") if isinstance(one, Document)
    ]
    build([one for place, one in enumerate(corpus) if place < 200 or one.passage.id in gold], tmp_path)
    got = found(open_knowledge(str(tmp_path)), *(Lookup(one["question"], at_most=30) for one in questions))
    shares = []
    for question, one in zip(questions, got, strict=True):
        listed = list(dict.fromkeys(source for fact in one.facts for source in fact.sources))[:10]
        gold = {passage["id"] for passage in question["gold_passages"]}
        shares.append(len(gold & set(listed)) / len(gold))
    assert np.mean(shares) > 0.8
