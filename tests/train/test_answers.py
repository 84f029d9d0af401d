"""A local model as an agent and as its baselines."""

from pathlib import Path

import pytest
from tests.train import small

from turnout.routing.retrieval.protocol import closed_book_instructions, one_shot_instructions
from turnout.train.credit import Thresholds

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("transformers", reason="needs the extra `train`")


def test_agent_one_shot_and_closed_book_differ_in_what_they_are_shown(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    from turnout.train.answers import Answerer, marked
    from turnout.train.spelling import tokenizer_of

    path = small.model_at(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(path)
    answerer = Answerer(model, tokenizer_of(path), small.settings(tmp_path).limits, rows=3)
    heard: list[int] = []
    agent = answerer.scores(small.QUESTIONS, small.searched, Thresholds(path=0.3), small.asked, heard.append)
    assert heard == [3, 6, 8]
    assert [row.question for row in agent] == [question.id for question in small.QUESTIONS]
    assert agent == answerer.scores(small.QUESTIONS, small.searched, Thresholds(path=0.3), small.asked)
    closed = marked(small.QUESTIONS, answerer.closed_book(small.QUESTIONS), Thresholds(path=0.3))
    assert {(row.lookups, row.p) for row in closed} == {(0, 0.0)}
    shown = marked(small.QUESTIONS, answerer.one_shot(small.QUESTIONS, small.searched), Thresholds(path=0.3))
    assert {row.lookups for row in shown} == {1}
    assert all(row.p is not None and row.p > 0 for row in shown)


def test_the_baselines_are_told_what_they_may_use() -> None:
    assert "from memory" in closed_book_instructions("Who?")
    told = one_shot_instructions("Who?", small.FACTS, "lines")
    assert "<knowledge>\na b c\nd e\n</knowledge>" in told
    assert told.endswith("Question: Who?")
