"""The generated world: its questions have answers, an edited copy differs where it says so, its search finds what is asked."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.routing.retrieval.facts import Found, Lookup
from turnout.routing.retrieval.protocol import read_move
from turnout.train.lessons import WORDS, Lessons, taught
from turnout.train.world import Asked, Search, Shape, edited, made, throwaway, words

SMALL = Shape(entities=12, relations=2, timed=1, times=4, distractors=6, hops=(2, 3), known=20, unknown=20, held_out=20)


def test_a_world_is_drawn_from_its_seed_alone() -> None:
    assert made(SMALL, 1) == made(SMALL, 1)
    assert made(SMALL, 1) != made(SMALL, 2)


def test_questions_of_each_kind_are_different_ones() -> None:
    world = made(SMALL, 0)
    kinds = [set(world.known), set(world.unknown), set(world.held_out)]
    assert [len(kind) for kind in kinds] == [20, 20, 20]
    assert len(set.union(*kinds)) == 60
    assert {len(asked.path) for asked in world.known} == {2, 3}


def test_a_question_rests_on_the_facts_along_its_path() -> None:
    world = made(SMALL, 0)
    for asked in world.held_out:
        question = world.question(asked)
        facts = world.path(asked)
        assert [passage.text for passage in question.gold_passages] == [fact.text for fact in facts]
        assert facts[0].subject == asked.start
        assert question.answers[0] in facts[-1].text.split()
        assert set(question.question.split()) <= set(words(SMALL))


def test_a_time_can_be_asked_for() -> None:
    world = made(SMALL, 0)
    timed = next(asked for asked in world.known if asked.slot == "time")
    assert timed.text.startswith("time of t0 of ")
    assert world.answer(timed).startswith("y")
    assert world.answer(Asked(timed.start, timed.path)).startswith("e")


def test_an_edited_world_asks_the_same_and_says_something_else_in_its_share_of_facts() -> None:
    world = made(SMALL, 0)
    other = edited(world, 0)
    assert other.known == world.known
    changed = [key for key, fact in world.facts.items() if other.facts[key] != fact]
    assert len(changed) == round(0.5 * len(world.facts))
    assert all(other.facts[key].object != world.facts[key].object for key in changed)


@given(st.integers(0, 500))
@settings(max_examples=30)
def test_throwaway_worlds_hold_what_answers_their_question(seed: int) -> None:
    world, asked = throwaway(SMALL, random.Random(seed))
    assert world.answer(asked) in world.path(asked)[-1].text.split()


def test_too_many_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="no 300 different questions"):
        made(Shape(entities=3, known=300, unknown=0, held_out=0), 0)


def test_a_search_finds_the_fact_that_is_asked_for() -> None:
    world = made(SMALL, 0)
    search = Search(world)
    for fact in world.facts.values():
        (found,) = search([Lookup(f"{fact.subject} {fact.relation}")])
        assert isinstance(found, Found)
        assert fact.text in [one.text for one in found.facts]
        assert len(found.facts) == 2


def test_a_search_that_misses_may_find_when_asked_again() -> None:
    world = made(SMALL, 0)
    fact = world.facts["e0", "r0"]
    search = Search(world, misses=0.5)
    outcomes = search([Lookup("e0 r0")] * 40)
    hits = [isinstance(found, Found) and fact.text in [one.text for one in found.facts] for found in outcomes]
    assert 5 < sum(hits) < 35
    assert search([Lookup("e0 r0")] * 40) != Search(world, misses=0.5, seed=1)([Lookup("e0 r0")] * 40)


def test_lessons_keep_the_protocol_and_the_vocabulary() -> None:
    lessons = Lessons(made(SMALL, 0), 0)
    known = set(WORDS) | set(words(SMALL)) | {"Evidence:"}
    kinds = set()
    for _ in range(200):
        prompt, turns = lessons.draw()
        assert set(prompt.replace("\n", " \n ").split(" ")) <= known
        for i, turn in enumerate(turns):
            assert set(turn.replace("\n", " \n ").split(" ")) - {""} <= known
            move = read_move(turn)
            if i % 2 == 0:
                assert move.well_formed
                assert move.action == ("answer" if i == len(turns) - 1 else "query")
        kinds.add((prompt.startswith("Evidence:"), len(turns)))
    assert {(False, 1), (False, 3), (False, 5), (True, 5)} <= kinds


def test_the_teacher_is_told_the_evidence() -> None:
    world = made(SMALL, 0)
    question = world.question(world.known[0])
    assert all(passage.text in taught(question) for passage in question.gold_passages)
