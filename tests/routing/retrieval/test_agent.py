"""The retrieval agent, driven by literals."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnout.routing.core import Failure
from turnout.routing.retrieval.agent import Call, CallOutcome, Said, Say, Trajectory, answering
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import REMINDER, write_knowledge
from turnout.steps import Run

BORN = Fact("f1", "Ada was born in Ostby.", 0.9, ("p1",))
TOWN = Fact("f2", "Ostby is in Norland.", 0.8, ("p2",))
ASK = "<think>t</think><query>ada</query>"
TELL = "<think>t</think><answer>Ostby</answer>"


def played(outcomes: list[Any], max_turns: int = 3) -> tuple[Trajectory, list[Call]]:
    run: Run[Call, CallOutcome, Trajectory] = Run(answering("Where?", max_turns, "facts", 5))
    calls: list[Call] = []
    left = iter(outcomes)
    while not run.done:
        calls += run.pending
        run.feed([next(left) for _ in run.pending])
    return run.result, calls


def test_it_looks_up_and_answers() -> None:
    done, calls = played([Said(ASK), Found((BORN, TOWN)), Said(ASK), Found((TOWN,)), Said(TELL)])
    assert (done.ended, done.answer, done.well_formed) == ("answered", "Ostby", 3)
    assert done.lookups == ((BORN, TOWN), (TOWN,))
    assert done.facts == (BORN, TOWN)
    assert calls[1] == Lookup("ada", "facts", 5)
    assert isinstance(calls[4], Say)
    assert calls[4].last
    assert [step.said for step in calls[4].steps] == [ASK, ASK]
    assert "Ada was born in Ostby." in calls[4].steps[0].shown


def test_an_answer_at_once_looks_nothing_up() -> None:
    done, calls = played([Said(TELL)])
    assert (done.answer, done.lookups, len(calls)) == ("Ostby", (), 1)


def test_turns_run_out() -> None:
    done, _ = played([Said(ASK), Found((BORN,)), Said(ASK), Found(())], max_turns=2)
    assert (done.ended, done.answer, len(done.steps)) == ("turns", None, 2)


def test_a_turn_that_does_nothing_is_told_so_and_counts() -> None:
    done, calls = played([Said("hm"), Said(TELL)])
    assert done.answer == "Ostby"
    assert done.well_formed == 1
    assert isinstance(calls[1], Say)
    assert calls[1].steps[0].shown == REMINDER


def test_a_failed_look_up_shows_nothing_and_is_noted() -> None:
    done, calls = played([Said(ASK), Failure("timeout", "slow"), Said(TELL)])
    assert done.answer == "Ostby"
    assert done.steps[0].failure == Failure("timeout", "slow")
    assert isinstance(calls[2], Say)
    assert calls[2].steps[0].shown == write_knowledge(())


def test_a_failed_model_or_a_cut_turn_ends_it() -> None:
    failed, _ = played([Said(ASK), Found((BORN,)), Failure("unavailable", "down")])
    assert (failed.ended, failed.failure, failed.answer) == ("failed", Failure("unavailable", "down"), None)
    cut, _ = played([Said("<think>and so", cut=True)])
    assert (cut.ended, cut.answer) == ("cut", None)


TURNS = st.lists(st.sampled_from([ASK, TELL, "hm", "<query>x", ""]), min_size=4, max_size=4)


@given(TURNS, st.integers(1, 4))
def test_it_never_takes_more_turns_than_allowed(turns: list[str], max_turns: int) -> None:
    run: Run[Call, CallOutcome, Trajectory] = Run(answering("Where?", max_turns))
    left = iter(turns)
    said = 0
    while not run.done:
        (call,) = run.pending
        if isinstance(call, Say):
            assert len(call.steps) == said
            said += 1
            assert call.last == (said == max_turns)
            run.feed([Said(next(left))])
        else:
            run.feed([Found((BORN,))])
    assert said <= max_turns
    assert len(run.result.steps) == said
