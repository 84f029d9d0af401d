"""The advisor gate: what is reviewed, what comes of it, and the budget, against a plain model."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.routing.lanes import LANE, LARGE, SMALL, Choosing, Played, facts

from turnout.conversation import Note, Opaque, Part, Reasoning, Reply, Settings, Text, ToolCall
from turnout.routing import (
    Advisor,
    AgentInfo,
    Answer,
    Ask,
    Decision,
    Failure,
    Forward,
    Lane,
    Outcome,
    Passthrough,
    TargetName,
)
from turnout.routing.advisor.memory import REFUNDS
from turnout.routing.advisor.words import cut, echoed, read

ADVISOR = TargetName("advisor")
CALL = ToolCall("c1", "Bash", '{"command": "ls"}')


def gate(**more: Any) -> Advisor:
    return Advisor(Passthrough(SMALL), ADVISOR, **more)


def reply(text: str = "", *parts: Part) -> Reply:
    return Reply((*((Text(text),) if text else ()), *parts))


DONE, WORKING = reply("All done."), reply("I look.", CALL)
APPROVE, REDO = reply("APPROVE\nFine."), reply("REDO\nRun the tests first.")


class Gate(Played):
    """A gate in one lane: what the executor and the advisor say next; the last thing said repeats."""

    def __init__(self, router: Any = None, lane: Lane = LANE, agent: AgentInfo | None = None) -> None:
        super().__init__(router or gate(), self._say, lane, agent)
        self.targets = facts("small", "advisor", "large")
        self.executor: list[Outcome] = [DONE]
        self.advisor: list[Outcome] = [APPROVE]
        self.story.bash("make", "fine", 0)

    def _say(self, ask: Ask) -> Outcome:
        said = self.advisor if ask.purpose == "advisor" else self.executor
        return said.pop(0) if len(said) > 1 else said[0]

    @property
    def reviews(self) -> list[Ask]:
        return [ask for ask in self.asked if ask.purpose == "advisor"]


def test_an_approved_claim_goes_out_as_it_is() -> None:
    made = Gate()
    decision = made.play()
    assert isinstance(decision, Answer)
    assert (decision.reply, decision.target) == (DONE, SMALL)
    assert (decision.why.source, decision.why.rule) == ("advisor", "approved")
    assert [(ask.purpose, ask.target) for ask in made.asked] == [("draft", SMALL), ("advisor", ADVISOR)]


def test_a_claim_that_is_held_back_is_done_again_by_the_plan() -> None:
    made = Gate()
    made.advisor = [REDO]
    decision = made.play()
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.source, decision.why.rule) == (SMALL, "advisor", "redo")
    (note,) = decision.edits
    assert isinstance(note, Note)
    assert "All done." in note.text
    assert "Run the tests first." in note.text
    assert decision.rewrite is None  # the client's body is patched, not written anew
    made.story.say("Ran them.", "assistant").say("And now?").bash("ls", "a", 0)
    later = made.play()
    assert (later.edits, len(made.reviews)) == ((), 1)  # type: ignore[union-attr]


def test_a_turn_that_calls_tools_is_no_claim() -> None:
    made = Gate()
    made.executor = [WORKING]
    decision = made.play()
    assert isinstance(decision, Answer)
    assert (decision.why.source, decision.why.place) == ("fixed", "executor")
    assert "no review was due" in decision.why.sentence
    assert made.reviews == []


def test_before_any_result_nothing_is_held_back() -> None:
    made = Gate()
    made.story.say("ok", "assistant").say("Hello there.")
    decision = made.play()
    assert isinstance(decision, Forward)
    assert made.asked == []
    assert "too little has been done" in decision.why.sentence


def test_a_pattern_takes_claims_whatever_is_called() -> None:
    made = Gate(gate(trigger="pattern", pattern="(?i)all done", min_tool_results=0))
    made.executor = [reply("All done.", CALL)]
    assert made.play().why.rule == "approved"
    made = Gate(gate(trigger="pattern", pattern="(?i)all done"))
    made.executor = [reply("Nearly.")]
    assert made.play().why.source == "fixed"


@pytest.mark.parametrize("empty", [Reply(()), reply("", Reasoning("Hm.")), reply("  ")])
def test_a_turn_that_says_nothing_is_reviewed_and_told_by_a_placeholder(empty: Reply) -> None:
    made = Gate()
    made.executor, made.advisor = [empty], [REDO]
    decision = made.play()
    assert isinstance(decision, Forward)
    assert any(isinstance(edit, Note) and "(the turn " in edit.text for edit in decision.edits)


def test_one_checkpoint_at_a_stall() -> None:
    made = Gate(gate(stall_turns=3, max_reviews=1))
    made.executor = [WORKING]
    sources = []
    for _ in range(5):
        sources.append(made.play().why.source)
        made.story.bash(f"ls {len(sources)}", "a", 0)
    assert sources == ["fixed", "advisor", "fixed", "fixed", "fixed"]
    made.executor = [DONE]
    assert made.play().why.rule == "approved"  # the checkpoint is none of the reviews of claims


def test_a_claim_at_a_stall_does_not_spend_the_checkpoint() -> None:
    made = Gate(gate(stall_turns=1))
    assert made.play().why.values["occasion"] == "done"
    made.executor = [WORKING]
    made.story.bash("ls", "a", 0)
    assert made.play().why.values["occasion"] == "stall"
    made.story.bash("ls b", "a", 0)
    assert made.play().why.source == "fixed"


def test_a_failed_checkpoint_is_armed_again() -> None:
    made = Gate(gate(stall_turns=1))
    made.executor, made.advisor = [WORKING], [Failure("timeout"), APPROVE]
    assert made.play().why.values["judge_failure"] == "timeout"
    made.story.bash("ls", "a", 0)
    assert made.play().why.rule == "approved"


FAILED: list[tuple[Outcome, str]] = [
    (Failure("timeout"), "timeout"),
    (Failure("rate_limit", "", 429), "rate_limit"),
    (reply("Looks good to me."), "invalid_response"),
    (Reply(()), "invalid_response"),
]


@pytest.mark.parametrize(("outcome", "reason"), FAILED)
def test_a_review_that_fails_lets_the_turn_out_and_is_not_counted(outcome: Outcome, reason: str) -> None:
    made = Gate()
    made.advisor = [outcome, APPROVE]
    decision = made.play()
    assert isinstance(decision, Answer)
    assert (decision.reply, decision.why.values["judge_failure"]) == (DONE, reason)
    made.story.bash("ls", "a", 0)
    assert made.play().why.rule == "approved"


def test_after_three_failed_reviews_nothing_is_held_back_any_more() -> None:
    made = Gate()
    made.advisor = [Failure("timeout")]
    for number in range(REFUNDS):
        assert isinstance(made.play(), Answer)
        made.story.bash(f"ls {number}", "a", 0)
    decision = made.play()
    assert isinstance(decision, Forward)
    assert len(made.reviews) == REFUNDS
    assert "none is made any more" in decision.why.sentence


def test_a_cautious_route_has_the_advisor_serve_what_it_could_not_review() -> None:
    made = Gate(gate(fail_open=False))
    made.advisor = [Failure("unavailable", "", 503)]
    decision = made.play()
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.rule, decision.why.source) == (ADVISOR, "unreviewed", "advisor")


def test_a_turn_under_review_elsewhere_goes_out_and_spends_nothing() -> None:
    made = Gate()
    made.advisor = [Failure("cancelled"), APPROVE]
    decision = made.play()
    assert isinstance(decision, Answer)
    assert "a concurrent turn of this agent is being reviewed" in decision.why.sentence
    assert made.states == {}
    assert made.reviews[0].once == "/review"


def test_an_executor_that_fails_is_asked_again_live_with_its_fallbacks() -> None:
    made = Gate(Advisor(Passthrough(SMALL, (LARGE,)), ADVISOR))
    made.executor = [Failure("unavailable")]
    decision = made.play()
    assert isinstance(decision, Forward)
    assert (decision.target, decision.fallbacks) == (SMALL, (LARGE,))
    assert decision.why.values["draft_failure"] == "unavailable"


def test_with_reviews_left_the_second_try_is_reviewed_too() -> None:
    made = Gate(gate(max_reviews=2))
    made.advisor = [REDO, APPROVE]
    made.executor = [reply("Done."), reply("Really done.")]
    decision = made.play()
    assert isinstance(decision, Answer)
    assert decision.reply.text == "Really done."
    assert [ask.purpose for ask in made.asked] == ["draft", "advisor", "draft", "advisor"]
    assert "Done." in made.asked[2].edits[-1].text  # type: ignore[union-attr]


def test_one_turn_is_done_again_at_most_twice() -> None:
    made = Gate(gate(max_reviews=1000))
    made.advisor = [REDO]
    decision = made.play()
    assert isinstance(decision, Forward)
    assert len(made.reviews) == 2


def test_what_the_provider_did_is_never_discarded() -> None:
    made = Gate()
    searched = Opaque("anthropic_messages", "server_tool_use", {"type": "server_tool_use"})
    made.executor, made.advisor = [reply("Found it.", searched)], [REDO]
    decision = made.play()
    assert isinstance(decision, Answer)
    assert made.reviews == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"lane": Lane()}, "names no session"),
        ({"agent": AgentInfo(kind="background")}, "background calls"),
    ],
)
def test_turns_that_are_never_reviewed(more: dict[str, Any], says: str) -> None:
    made = Gate(**more)
    decision = made.play()
    assert isinstance(decision, Forward)
    assert says in decision.why.sentence
    assert made.asked == []


def test_a_stored_reply_is_never_held_back() -> None:
    made = Gate()
    decision = made.play(settings=Settings(store=True))
    assert isinstance(decision, Forward)
    assert "to store the reply" in decision.why.sentence


def test_the_executor_may_be_a_router() -> None:
    made = Gate(Advisor(Choosing(["large", "small"]), ADVISOR))
    decision = made.play()
    assert (decision.target, decision.why.source) == (LARGE, "advisor")
    made.story.bash("ls", "a", 0)
    spent = made.play()
    assert (spent.target, spent.why.source, spent.why.place) == (SMALL, "classifier", "executor")
    assert "all 1 reviews of this session are used" in spent.why.sentence


def test_the_advisor_is_shown_the_work_and_the_turn_within_its_limit() -> None:
    made = Gate(gate(transcript_max_chars=1_000))
    for number in range(50):
        made.story.bash(f"cat {number}", f"content {number} " * 20, 0)
    made.play()
    text = made.reviews[0].conversation.messages[0].text
    assert "Fix the bug." in text
    assert "All done." in text
    assert "characters in all, cut here to 1000" in text
    assert len(text) < 1_200


@given(st.text(max_size=600), st.integers(256, 500))
def test_a_cut_keeps_both_ends_and_says_so(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        before, after = short.split("\n[... ")[0], short.split(" ...]\n")[-1]
        assert text.startswith(before)
        assert text.endswith(after)
        assert len(before) < len(after)
        assert f"{len(text)} characters in all" in short


WORDS = [
    ("APPROVE", True, ""),
    ("**APPROVE** - fine", True, ""),
    ("approve.", True, ""),
    ("<think>redo?</think>\nAPPROVE", True, ""),
    ("REDO: run the tests", False, "run the tests"),
    ("> REDO\n\n1. Look.\n2. Run.", False, "1. Look.\n2. Run."),
    ("REDO", False, ""),
]


@pytest.mark.parametrize(("text", "approved", "plan"), WORDS)
def test_the_first_word_counts(text: str, approved: bool, plan: str) -> None:
    review = read(reply(text))
    assert review is not None
    assert (review.approved, review.plan) == (approved, plan)


@pytest.mark.parametrize("text", ["", "Well, APPROVE", "APPROVED? no", "REDONE", "I would REDO it", "!"])
def test_anything_else_is_no_review(text: str) -> None:
    assert read(reply(text)) is None


def test_calls_are_told_as_text() -> None:
    assert echoed(reply("I look.", CALL)) == 'I look.\n(called Bash with {"command": "ls"})'
    assert json.loads('{"command": "ls"}')


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"trigger": "pattern"}, "pattern: give one"),
        ({"pattern": "x"}, "pattern: give one"),
        ({"trigger": "pattern", "pattern": "("}, "not a regular expression"),
        ({"max_reviews": 0}, "nothing is ever reviewed"),
    ],
)
def test_what_cannot_work_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        gate(**fields)


class Budget(RuleBasedStateMachine):
    """Any sequence of claims, work, failing reviews and hang-ups: never more reviews than the budget, none lost."""

    reviews_at_most = 2
    stall_turns = 4

    def __init__(self) -> None:
        super().__init__()
        self.made = Gate(gate(max_reviews=self.reviews_at_most, stall_turns=self.stall_turns))
        self.reviews = 0
        self.refunds = 0
        self.stalled = False
        self.steps = 1

    @rule(
        claims=st.booleans(),
        outcome=st.sampled_from(["approve", "redo", "fail"]),
        commit=st.booleans(),
    )
    def turn(self, claims: bool, outcome: str, commit: bool) -> None:
        self.made.executor = [DONE, WORKING] if claims else [WORKING]
        self.made.advisor = [{"approve": APPROVE, "redo": REDO, "fail": Failure("timeout")}[outcome]]
        before = len(self.made.reviews)
        decision = self.made.play(commit)
        asked = len(self.made.reviews) - before

        stalls = not self.stalled and self.steps + 1 >= self.stall_turns
        if self.refunds >= REFUNDS:
            due: list[str] = []
        elif claims and self.reviews < self.reviews_at_most:
            due = ["done"]
            if outcome == "redo" and stalls:
                due.append("stall")  # the second try calls a tool, at a stall: the checkpoint sees it
        else:
            due = ["stall"] if stalls else []
        assert asked == len(due), (due, decision)
        assert self._served(decision, due, outcome)
        if commit:
            for occasion in due:
                if outcome == "fail":
                    self.refunds += 1
                elif occasion == "done":
                    self.reviews += 1
                else:
                    self.stalled = True
        self.made.story.bash(f"ls {len(self.made.asked)}", "a", 0)
        self.steps += 1

    def _served(self, decision: Decision, due: list[str], outcome: str) -> bool:
        if not due:
            return decision.why.source == "fixed"
        if outcome == "fail":
            return isinstance(decision, Answer) and decision.why.values["judge_failure"] == "timeout"
        return decision.why.rule == {"approve": "approved", "redo": "redo"}[outcome]

    @rule()
    def speak(self) -> None:
        self.made.story.say("done", "assistant").say("More.").bash("ls", "x", 0)
        self.steps = 1


TestBudget = Budget.TestCase
TestBudget.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
