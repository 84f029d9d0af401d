"""The stage router: evidence to tiers, holds, notes, explanations."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.story import Story

from turnout.conversation import Instruction, Note, Settings
from turnout.routing import Forward, Lane, RouterConfig, Stage, TargetName, Turn
from turnout.routing.stage.router import StageMemory
from turnout.signals import observe

SMALL, LARGE = TargetName("small"), TargetName("large")
TRACEBACK = "Traceback (most recent call last):\nValueError: bad value {}"


class Session:
    """Plays a story against a stage router, its memory folded from the events it leaves."""

    def __init__(self, lane: Lane | None = None, **fields: Any) -> None:
        self.router = Stage(SMALL, LARGE, **fields)
        self.lane = Lane("", "s", "", "header") if lane is None else lane
        self.memory = StageMemory()
        self.story = Story()
        self.turns = 0

    def turn(self) -> Forward:
        self.turns += 1
        turn = Turn(
            f"t{self.turns}", self.lane, self.story.conversation, Settings(), observe(self.story.conversation), {},
            memory={"/StageMemory": self.memory},
        )  # fmt: skip
        decision = self.router.route(turn)
        for event in decision.remember:
            self.memory = self.memory.after(event)
        return decision

    def fail(self, what: Any = 0, command: str = "python x.py") -> "Session":
        self.story.bash(command, TRACEBACK.format("abcdefgh"[what]), 1)
        return self

    def edit(self, path: str = "a") -> "Session":
        self.story.call("Edit", {"file_path": path}, f"The file {path} has been updated.")
        return self


def test_the_first_turn_is_undecided_and_the_picker_serves() -> None:
    assert (Session().turn().target, Session().turn().why.source) == (SMALL, "default")
    assert Session(picker="capable_first").turn().target == LARGE


def test_everyday_friction_stays_where_it_is() -> None:
    session = Session()
    session.story.call("Edit", {"file_path": "a"}, "String to replace not found in file.", is_error=True)
    decision = session.turn()
    assert (decision.target, decision.why.source) == (SMALL, "default")
    assert 0 < (decision.why.score or 0) < 0.5


def test_a_hard_failure_that_stands_newest_escalates() -> None:
    decision = Session().fail().turn()
    assert (decision.target, decision.why.source, decision.why.rule) == (LARGE, "signals", "")
    assert decision.why.score == pytest.approx(math.tanh(0.4 * 1.25) / math.tanh(0.4 * 3))


def test_a_hard_failure_that_was_looked_into_since_is_undecided() -> None:
    session = Session(hold=0).fail()
    session.story.bash("cat x.py", "raise ValueError('bad value')", 0)
    decision = session.turn()
    assert (decision.target, decision.why.source) == (SMALL, "default")
    assert "not enough to decide" in decision.why.sentence


def test_changes_before_a_failure_do_not_excuse_it() -> None:
    assert Session().edit().edit("b").fail().turn().why.score == Session().fail().turn().why.score


def test_two_different_failures_say_more_than_one() -> None:
    decision = Session().fail(0, "python x.py").fail(1, "python y.py").turn()
    assert (decision.target, decision.why.source, decision.why.rule) == (LARGE, "signals", "")
    assert "2 failures in the last 2 results" in decision.why.sentence
    assert (decision.why.score or 0) > (Session().fail().turn().why.score or 0)


def test_the_same_failure_twice_is_an_override() -> None:
    decision = Session().fail().fail().turn()
    assert (decision.target, decision.why.source, decision.why.rule) == (LARGE, "override", "repeated_failure")
    assert "twice" in decision.why.sentence


def test_a_critical_error_is_an_override() -> None:
    session = Session()
    session.story.bash("cp a b", "cp: error writing 'b': No space left on device", 1)
    decision = session.turn()
    assert (decision.target, decision.why.rule) == (LARGE, "critical_error")
    assert "the disk is full" in decision.why.sentence


def test_compaction_is_an_override_that_wears_off() -> None:
    session = Session(hold=0)
    session.story = Story("This session is being continued from a previous conversation that ran out of context.")
    decision = session.turn()
    assert (decision.target, decision.why.rule) == (LARGE, "compaction")
    for _ in range(3):
        session.edit()
    assert session.turn().why.rule == ""


def test_changes_that_go_through_choose_the_efficient_tier() -> None:
    decision = Session(picker="capable_first").edit().edit("b").turn()
    assert (decision.target, decision.why.source) == (SMALL, "signals")
    assert "changes went through" in decision.why.sentence


def test_a_hold_lasts_its_turns_and_then_ends() -> None:
    session = Session(hold=2)
    assert session.fail().fail().turn().why.source == "override"
    sources = []
    for i in range(3):
        session.edit(f"f{i}")
        sources.append((session.turn().target, session.memory.hold))
    assert sources[:2] == [(LARGE, 1), (LARGE, 0)]
    assert sources[2] == (SMALL, 0)


def test_a_hold_ends_early_when_the_command_succeeds() -> None:
    session = Session(hold=5)
    session.fail().fail().turn()
    session.edit()
    assert session.turn().why.source == "hold"
    session.story.bash("python x.py", "fine", 0)
    assert session.turn().why.source != "hold"
    assert session.memory.hold == 0


def test_a_hold_ends_early_when_tests_pass_or_the_user_speaks() -> None:
    for end in ("tests", "user"):
        session = Session(hold=5)
        session.fail().fail().turn()
        if end == "tests":
            session.story.bash("pytest", "3 passed in 0.1s", 0)
        else:
            session.story.say("Leave that. Rename the file.")
        decision = session.turn()
        assert (decision.target, session.memory.hold) == (SMALL, 0)


def test_without_an_identity_nothing_is_held_or_remembered() -> None:
    session = Session(Lane())
    assert session.fail().fail().turn().remember == ()
    session.edit().edit("b").edit("c")
    assert session.turn().target == SMALL


def test_notes_go_out_once_when_signals_change_the_tier() -> None:
    session = Session(escalation_note="Look again.", deescalation_note="Carry on.", hold=1, threshold=0.4)
    assert session.turn().edits == ()
    assert session.fail().fail().turn().edits == (Note("Look again."),)
    session.edit()
    assert session.turn().edits == ()
    session.edit("b").edit("c").edit("d")
    decision = session.turn()
    assert (decision.target, decision.edits) == (SMALL, (Note("Carry on."),))
    session.edit("e")
    assert session.turn().edits == ()


def test_prompts_and_fallbacks_follow_the_tier() -> None:
    fields: dict[str, Any] = {
        "capable_prompt": "Be thorough.", "efficient_prompt": "Be quick.",
        "capable_fallbacks": (TargetName("c2"),), "efficient_fallbacks": (TargetName("e2"),),
    }  # fmt: skip
    small, large = Session(**fields).turn(), Session(**fields).fail().fail().turn()
    assert (small.edits, small.fallbacks) == ((Instruction("Be quick."),), ("e2",))
    assert (large.edits, large.fallbacks) == ((Instruction("Be thorough."),), ("c2",))


def test_nothing_is_written_while_nothing_changes() -> None:
    session = Session()
    assert session.turn().remember == ()
    session.edit()
    assert session.turn().remember == ()
    session.fail()
    session.fail()
    assert session.turn().remember != ()


def test_the_explanation_is_whole() -> None:
    why = Session().fail().turn().why
    assert {"severity", "spinning", "exploring", "production", "tests_passed", "depth", "repeated"} <= set(why.values)
    assert (why.threshold, why.confidence) == (0.5, abs(why.score or 0))
    assert msgspec.json.encode(why)


def capable_story() -> Story:
    story = Story().bash("python x.py", TRACEBACK.format("z"), 1)
    for i in range(24):
        story.bash(f"cat {i}", str(i), 0)
    for i in range(3):
        story.bash(f"python {'abc'[i]}.py", TRACEBACK.format("abc"[i]), 1)
    return story


def efficient_story() -> Story:
    story = Story()
    for path in ("a", "b"):
        story.call("Edit", {"file_path": path}, f"The file {path} has been updated.")
    return story.bash("pytest", "3 passed in 0.1s", 0)


@settings(deadline=None)
@given(st.floats(0, 1, exclude_min=True), st.sampled_from(["efficient_first", "capable_first"]))
def test_every_tier_is_reachable_at_every_threshold(threshold: float, picker: Any) -> None:
    router = Stage(SMALL, LARGE, threshold=threshold, picker=picker)

    def decided(story: Story) -> tuple[str, str]:
        turn = Turn("t", Lane(), story.conversation, Settings(), observe(story.conversation), {})
        return router.route(turn).target, router.route(turn).why.source

    assert decided(capable_story()) == (LARGE, "signals")
    assert decided(efficient_story()) == (SMALL, "signals")


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": 1.5},
        {"threshold": -0.1},
        {"window": 0},
        {"hold": -1},
        {"picker": "x"},
        {"wat": 1},
        {"tools": {"x": "fly"}},
    ],
)
def test_nonsense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError)):
        msgspec.convert({"type": "stage", "efficient": "a", "capable": "b", **fields}, RouterConfig)


def test_constructing_by_hand_is_checked_too() -> None:
    for fields in ({"threshold": 2.0}, {"window": 0}, {"hold": -1}):
        with pytest.raises(ValueError, match=next(iter(fields))):
            Stage(SMALL, LARGE, **fields)  # type: ignore[arg-type]


def test_repeated_calls_count_while_they_are_recent() -> None:
    session = Session()
    for _ in range(3):
        session.story.bash("cat x.py", "x = 1", 0)
    assert session.turn().why.values["repeated_calls"] == 3
    session.edit().edit("b").edit("c")
    assert session.turn().why.values["repeated_calls"] == 0
