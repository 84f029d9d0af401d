"""The retrieval route on questions of HotpotQA and MuSiQue: a scripted policy asks what leads to each answer."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.vendors import Play
from tests.gateway.collaborating import words_of
from tests.gateway.escalating import post, said
from tests.gateway.retrieving import Policy, answer, body_of, query, toml
from tests.gateway.test_collaboration import text_in
from tests.recorded import needs_recordings, rows
from tests.replays import replayed
from tests.running import Running, running

from turnout.knowledge.building import Options, build
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document

QUESTIONS = 20
NAMES = ("hotpotqa", "musique")
Row = dict[str, Any]


def queries(row: Row) -> list[str]:
    """What somebody looks up who knows how the question is to be taken apart."""
    if "decomposition" not in row:
        return list(dict.fromkeys(one["title"] for one in row["supporting_sentences"]))
    found: list[str] = []
    for step in row["decomposition"]:
        text = step["question"].replace(" >> ", " ")
        for at, before in enumerate(row["decomposition"], 1):
            text = text.replace(f"#{at}", before["answer"])
        found.append(text)
    return found


class Sample:
    """The first questions of a data set with the passages that came with them, and a policy that asks by the book."""

    def __init__(self, name: str) -> None:
        self.rows: list[Row] = rows(f"qa/{name}_train100.jsonl.gz")[:QUESTIONS]
        gold = {one["id"] for row in self.rows for one in row["gold_passages"]}
        near = len(self.rows) * 12
        corpus: list[Row] = rows(f"qa/{name}_train100_corpus.jsonl.gz")
        self.passages = [p for at, p in enumerate(corpus) if at < near or p["id"] in gold]
        self.by_question = {row["question"].strip(): row for row in self.rows}

    def turn(self, n: int, body: Row) -> str:
        words = words_of(body)
        row = next(r for q, r in self.by_question.items() if words.count(f"Question: {q}"))
        asked = queries(row)
        return query(asked[n]) if n < len(asked) else answer(row["answer"])


@pytest.fixture(scope="module", params=NAMES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Running, Sample]]:
    sample = Sample(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    documents = [Document(Passage(p["id"], p["title"], p["text"])) for p in sample.passages]
    build(documents, folder / "facts", Options(embedder="hashed"))
    policy = Policy("openai_chat", ())
    policy.turns = lambda n, body: said(Play(sample.turn(n, body)), "openai_chat", body)
    with policy.server, running(toml(policy, "facts", max_turns=8), folder, capture="full") as gateway:
        yield gateway, sample


@needs_recordings
def test_answers_cite_the_passages_that_the_questions_were_made_from(served: tuple[Running, Sample]) -> None:
    gateway, sample = served
    right = cited = wanted = 0
    for row in sample.rows:
        status, headers, data = post(gateway, "openai_chat", body_of("openai_chat", row["question"]))
        assert status == 200
        assert text_in("openai_chat", data).startswith(row["answer"])
        turn = gateway.settled()[0]
        assert turn.why is not None
        assert headers["x-turnout-retrieval"] == turn.why.rule
        assert [one.query for one in turn.lookups] == queries(row)
        sources = set(turn.why.values["sources"]) if turn.why.rule == "answered" else set()
        gold = {one["id"] for one in row["gold_passages"]}
        right, cited, wanted = right + len(sources & gold), cited + len(sources), wanted + len(gold)
    assert right / cited >= 0.9  # what is cited is what the question was made from
    assert right / wanted >= 0.7  # a passage of which every name stands in the question itself is not seen to lead on
    assert replayed(gateway) == QUESTIONS
