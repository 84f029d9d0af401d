"""Pins: one choice for an agent's session or task, against a plain model of what that means."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.routing.lanes import LARGE, SMALL, Choosing, Played, facts

from turnout.routing import Affinity, Lane, Random
from turnout.routing.core import TargetName
from turnout.signals.people.envelopes import COMPACTED

REMINDER = "<system-reminder>Todo list is empty.</system-reminder>"


def test_the_first_choice_stays_for_the_session() -> None:
    played = Played(Affinity(Choosing(["large", "small"])))
    first = played.play()
    assert (first.target, first.why.source, first.why.place) == (LARGE, "classifier", "router")
    for say in ("something new", REMINDER, "again"):
        played.story.say("ok", "assistant").say(say)
        decision = played.play()
        assert (decision.target, decision.why.source, decision.why.place) == (LARGE, "pin", "")


def test_a_pin_for_the_task_ends_when_the_user_speaks() -> None:
    played = Played(Affinity(Choosing(["large", "small", "large"]), until="user_turn"))
    assert played.play().target == LARGE
    played.story.bash("ls", "a", 0)
    assert (played.play().target, played.play().why.source) == (LARGE, "pin")
    played.story.say("ok", "assistant").say(REMINDER)
    assert played.play().why.source == "pin"
    played.story.say("ok", "assistant").say("Now write the docs.")
    assert (played.play().target, played.play().why.source) == (SMALL, "pin")


def test_a_pin_outlives_a_summary_of_the_history() -> None:
    played = Played(Affinity(Choosing(["large", "small"]), until="user_turn"))
    played.play()
    played.story.messages.clear()
    played.story.say(f"{COMPACTED[0]} that ran out of context. The user wants a fix.").say("I go on.", "assistant")
    played.story.bash("ls", "a", 0)
    assert (played.play().target, played.play().why.source) == (LARGE, "pin")
    played.story.say("ok", "assistant").say("Thanks. Another thing.")
    assert played.play().target == SMALL


def test_what_was_chosen_for_want_of_evidence_is_not_kept() -> None:
    played = Played(Affinity(Choosing(["large", "small", "large"], abstained=[0])))
    assert [played.play().target for _ in range(3)] == [LARGE, SMALL, SMALL]


def test_a_target_that_is_gone_is_chosen_anew() -> None:
    played = Played(Affinity(Choosing(["large", "small"])))
    played.play()
    played.targets = facts("small", "other")
    assert played.play().target == SMALL


def test_without_identity_nothing_is_kept_and_it_says_so() -> None:
    played = Played(Affinity(Choosing(["large", "small"])), lane=Lane())
    first = played.play()
    assert first.remember == ()
    assert "names no session" in first.why.sentence
    assert played.play().target == SMALL


def test_a_pinned_choice_keeps_its_fallbacks() -> None:
    router = Random((SMALL, LARGE), (1, 0), fallbacks=(LARGE,))
    played = Played(Affinity(router))
    assert played.play().target == SMALL
    pinned = played.play()
    assert (pinned.why.source, pinned.fallbacks) == ("pin", (LARGE,))


class Pins(RuleBasedStateMachine):
    """Any sequence of turns, new user texts, reminders, hang-ups, abstentions; the model is two variables."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: list[str] = []
        self.abstains: list[int] = []
        self.inner = Choosing(self.choices, self.abstains)
        self.played = Played(Affinity(self.inner, until="user_turn"))
        self.pin: str | None = None

    @rule(choice=st.sampled_from(["small", "large"]), abstains=st.booleans(), commit=st.booleans())
    def turn(self, choice: str, abstains: bool, commit: bool) -> None:
        n = len(self.inner.count)
        del self.choices[n:]
        self.choices.append(choice)
        self.abstains[:] = [n] if abstains else []
        decision = self.played.play(commit)
        if self.pin is not None:
            assert (decision.target, decision.why.source) == (self.pin, "pin")
            assert len(self.inner.count) == n
            assert decision.remember == ()
        else:
            assert decision.target == choice
            if commit and not abstains:
                self.pin = choice
        self.played.story.bash("make", "fine", 0)

    @rule(text=st.sampled_from(["Do more.", "continue", "Do more."]))
    def speak(self, text: str) -> None:
        self.played.story.say("done", "assistant").say(text)
        self.pin = None

    @rule()
    def remind(self) -> None:
        self.played.story.say("done", "assistant").say(REMINDER)

    @precondition(lambda self: self.pin is not None)
    @rule()
    def restart(self) -> None:
        """Another process reads the same store."""
        self.played.router = Affinity(self.inner, until="user_turn")

    @invariant()
    def a_choice_is_a_target(self) -> None:
        assert self.pin in (None, SMALL, LARGE)


TestPins = Pins.TestCase
TestPins.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_children_and_parent_have_pins_of_their_own() -> None:
    chosen = Choosing(["large", "small"])
    parent = Played(Affinity(chosen))
    child = Played(Affinity(chosen), lane=Lane("", "s", "a1", "claude_code"))
    assert parent.play().target == LARGE
    assert child.play().target == SMALL
    assert (parent.play().target, child.play().target) == (TargetName("large"), TargetName("small"))
