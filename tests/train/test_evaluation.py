"""Scores of rollouts and their means."""

import pytest

from turnout.knowledge.passage import Passage
from turnout.routing.retrieval.agent import Step, Trajectory
from turnout.routing.retrieval.facts import Fact
from turnout.routing.retrieval.protocol import Move
from turnout.train.credit import Episode, Route, Thresholds
from turnout.train.data.question import Question
from turnout.train.evaluation import Scored, scored, summary
from turnout.train.rollout import Rollout

QUESTION = Question("q", "d", "Where?", ("Oslo",), (Passage("p", "", "ada lives in oslo"),))
FOUND = Step("s", Move("query", "ada", True), (Fact("f", "ada lives in oslo"), Fact("g", "x y")))


def rolled(*steps: Step, answer: str | None) -> tuple[Rollout, Episode]:
    last = () if answer is None else (Step("s", Move("answer", answer, True)),)
    done = Trajectory("Where?", (*steps, *last), "turns" if answer is None else "answered")
    told = Episode(
        done.answer,
        QUESTION.answers,
        tuple(passage.text for passage in QUESTION.gold_passages),
        tuple(tuple(fact.text for fact in facts) for facts in done.lookups),
        len(done.steps),
        done.well_formed,
    )
    return Rollout([], [], [], [], [], done), told


def row(*steps: Step, answer: str | None, question: Question = QUESTION) -> Scored:
    done, told = rolled(*steps, answer=answer)
    if not question.gold_passages:
        told = Episode(told.answer, told.golds, (), told.lookups, told.steps, told.well_formed)
    return scored(question, done, Thresholds(path=0.5), lambda _, __: told)


def test_an_answer_from_evidence_and_one_from_memory() -> None:
    faithful = row(FOUND, answer="Oslo")
    assert (faithful.f1, faithful.em, faithful.uar, faithful.lookups, faithful.turns) == (1.0, 1.0, 0.0, 1, 2)
    assert faithful.p == pytest.approx(2 * 4 / (6 + 4))
    assert (faithful.coverage, faithful.route) == (1.0, Route.FAITHFUL)
    memory = row(answer="Oslo")
    assert (memory.f1, memory.uar, memory.p, memory.route) == (1.0, 1.0, 0.0, Route.SHORTCUT)
    assert row(FOUND, answer=None).route is Route.EVIDENCE


def test_without_gold_passages_the_path_is_not_scored() -> None:
    plain = Question("q", "d", "Where?", ("Oslo",))
    assert (row(FOUND, answer="Oslo", question=plain).p, row(answer="x", question=plain).route) == (None, None)
    assert summary([row(answer="x", question=plain)]).p is None


def test_means_have_intervals_around_them() -> None:
    rows = [row(FOUND, answer="Oslo")] * 30 + [row(answer="Rome")] * 10
    told = summary(rows)
    assert told.f1.value == 0.75
    assert 0.55 < told.f1.low < 0.75 < told.f1.high < 0.95
    assert told.routes == {Route.FAITHFUL: 0.75, Route.SHORTCUT: 0.0, Route.EVIDENCE: 0.0, Route.FAILURE: 0.25}
    assert summary(rows) == told
    same = summary([row(answer="Oslo")] * 5)
    assert same.f1.low == same.f1.value == same.f1.high == 1.0
    with pytest.raises(ValueError, match="nothing to average"):
        summary([])
