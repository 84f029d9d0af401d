"""Turns that the stage router's signals leave open, decided by a router inside it."""

import json
from typing import Any

import pytest
from tests.routing.lanes import JUDGE, LARGE, SMALL, Choosing, Played, facts

from turnout.conversation import Instruction, Reply, Text
from turnout.routing import Answer, Asking, Classifier, Decision, Failure, Outcome, Stage, Turn, Why
from turnout.routing.core import TargetName
from turnout.routing.stage.explain import explain

TRACEBACK = "Traceback (most recent call last):\nValueError: bad value"


def stage(inner: Any, **more: Any) -> Stage:
    return Stage(SMALL, LARGE, undecided=inner, **more)


def verdict(p: float) -> Outcome:
    said = {"crux": "it", "primary_rule": "SUP-1", "capability_boundary": "supported", "p_solve": p}
    return Reply((Text(json.dumps(said)),))


def test_an_undecided_turn_is_the_other_routers() -> None:
    made = Played(stage(Choosing(["large", "small"])))
    decision = made.play()
    assert (decision.target, decision.why.source, decision.why.place) == (LARGE, "classifier", "undecided")
    assert decision.why.sentence == "the signals leave the turn open; choice 0"
    assert decision.why.values["undecided"] == "capable"
    assert (decision.why.score, decision.why.threshold) == (0.0, 0.5)


def test_turns_that_signals_decide_ask_nobody() -> None:
    inner = Choosing(["large"])
    made = Played(stage(inner))
    for _ in range(2):
        made.story.bash("python x.py", TRACEBACK, 1)
    assert made.play().why.source == "override"
    assert inner.count == []


def test_when_it_abstains_the_picker_decides_and_both_tell() -> None:
    decision = Played(stage(Choosing(["large"], abstained=[0]))).play()
    assert (decision.target, decision.why.source, decision.why.place) == (SMALL, "default", "")
    assert "the router for undecided turns does not say (choice 0)" in decision.why.sentence
    assert "undecided" not in decision.why.values


def test_a_target_that_is_no_tier_counts_as_no_word() -> None:
    decision = Played(stage(Choosing(["third"]))).play()
    assert (decision.target, decision.why.source) == (SMALL, "default")
    assert "third is none of the two tiers" in decision.why.sentence


def test_in_a_cool_off_it_is_not_asked() -> None:
    inner = Choosing(["small"])
    made = Played(stage(inner, hold=1, cool_off=3, threshold=0.4))
    made.story.bash("python x.py", TRACEBACK, 1)
    assert made.play().target == LARGE
    made.story.bash("python x.py", "fine", 0)
    first = made.play()
    assert (first.target, len(inner.count)) == (SMALL, 1)
    made.story.call("Read", {"file_path": "a"}, "text")
    assert made.play().why.place == ""
    assert len(inner.count) == 1


def test_both_remember_and_the_stage_knows_who_served() -> None:
    made = Played(
        stage(Classifier(JUDGE, SMALL, LARGE), escalation_note="Think.", capable_prompt="You are large."),
        lambda ask: verdict(0.1),
    )
    made.targets = facts("small", "large", "judge")
    decision = made.play()
    assert decision.target == LARGE
    assert set(made.states) == {"/StageMemory", "undecided/ClassifierPin"}
    assert made.states["/StageMemory"].tier == "capable"
    assert decision.edits == (Instruction("You are large."),)  # type: ignore[union-attr]
    made.story.bash("ls", "a", 0)
    again = made.play()
    assert (again.target, again.why.source, again.why.place) == (LARGE, "pin", "undecided")
    assert len(made.asked) == 1


@pytest.mark.parametrize("outcome", [Failure("timeout"), Reply((Text("perhaps"),))])
def test_a_judge_that_fails_leaves_the_turn_to_the_picker(outcome: Outcome) -> None:
    made = Played(stage(Classifier(JUDGE, SMALL, LARGE), picker="efficient_first"), lambda ask: outcome)
    decision = made.play()
    assert (decision.target, decision.why.source) == (SMALL, "default")
    assert "no verdict" in decision.why.sentence


@pytest.mark.parametrize("choice", ["small", "large"])
def test_the_decision_can_be_taken_apart_and_made_again(choice: str) -> None:
    decision = Played(stage(Choosing([choice]))).play()
    apart = explain(decision.why)
    assert apart is not None
    assert apart.same
    assert (apart.tier, apart.source) == ("capable" if choice == "large" else "efficient", "classifier")


class Answering(Choosing, frozen=True, tag="answering"):
    """Answers with the large target's reply."""

    def route(self, turn: Turn) -> Asking[Decision]:  # type: ignore[override]
        yield from ()
        return Answer(Reply((Text("done"),)), TargetName("large"), Why("judge", "answered"))


def test_a_reply_that_was_given_while_deciding_is_the_answer() -> None:
    made = Played(stage(Answering()))
    decision = made.play()
    assert isinstance(decision, Answer)
    assert (decision.target, decision.why.source, decision.why.place) == (LARGE, "judge", "undecided")
    assert made.states["/StageMemory"].tier == "capable"
