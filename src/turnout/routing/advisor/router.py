"""The advisor gate: an executor works, and a stronger advisor looks at what it calls done before anybody sees it."""

import itertools
import re
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from turnout.conversation import Note, Opaque, Reply
from turnout.routing.advisor import words
from turnout.routing.advisor.memory import REFUNDS, AdvisorBudget, Occasion, Reviewed
from turnout.routing.core import Answer, Asking, Decision, Failure, Forward, Router, TargetName, Turn, Why, ask, nested
from turnout.routing.judging import failed, kept
from turnout.routing.passthrough import Passthrough
from turnout.signals import regex

REDOS_AT_MOST = 2
"""How often one turn is done again; the last time it streams without a review."""


class Advisor(Struct, frozen=True, dict=True, tag="advisor", tag_field="type", forbid_unknown_fields=True):
    """Lets an executor work, and has an advisor review what it calls done, before anybody sees it.

    `executor`: who works: a target's name, or a router's table.
    `advisor`: the target that reviews.
    `trigger`: `no_tool_call` takes a turn that calls no tool for a claim to be done (default); `pattern` one whose text matches.
    `pattern`: a regular expression, for that trigger.
    `min_tool_results` 0..64 (default 1): tool results since the user's last request without which nothing counts as a claim.
    `stall_turns` (default 0, off): one more review, once a session, when a task has gone on for so many steps; what it calls
    then does not matter.
    `max_reviews` (default 1): claims reviewed for each agent of a session; later ones stream without a review.
    `fail_open` (default true): a turn whose review failed is served as it is; false has the advisor serve that turn itself.
    `prompt`: replaces the built-in instructions; the advisor's first word must still be APPROVE or REDO.
    `transcript_max_chars` (default 200000): the most of the work that the advisor is shown; the beginning and the end stay.
    `max_output_tokens` (default 2048): the most the advisor may write.
    `within_s` (default 120): seconds after which the review has failed.
    `draft_within_s` (default 600): seconds after which the executor has failed, and is asked again without a review.

    A turn that is held back is done again, twice at most, the last time without a review. A review that fails is not counted,
    three times at most; then nothing is reviewed any more. A turn is held back only while a review may be due; all others stream.
    Turns without a session, background calls, and requests whose reply the provider is told to store are never reviewed.
    """

    executor: Router
    advisor: TargetName
    trigger: Literal["no_tool_call", "pattern"] = "no_tool_call"
    pattern: str = ""
    min_tool_results: Annotated[int, Meta(ge=0, le=64)] = 1
    stall_turns: Annotated[int, Meta(ge=0)] = 0
    max_reviews: Annotated[int, Meta(ge=0, le=1000)] = 1
    fail_open: bool = True
    prompt: str = ""
    transcript_max_chars: Annotated[int, Meta(ge=256)] = 200_000
    max_output_tokens: Annotated[int, Meta(ge=16)] = 2_048
    within_s: Annotated[float, Meta(gt=0, le=600)] = 120.0
    draft_within_s: Annotated[float, Meta(gt=0)] = 600.0

    def __post_init__(self) -> None:
        if (self.trigger == "pattern") != bool(self.pattern):
            raise ValueError('pattern: give one with trigger = "pattern", and only then')
        if not self.max_reviews and not self.stall_turns:
            raise ValueError("max_reviews: with 0 and no stall_turns nothing is ever reviewed")
        if self.pattern:
            regex("pattern", self.pattern)

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: where the executor's would."""
        return self.executor.otherwise

    def concerns(self) -> list[tuple[str, str]]:
        """What an operator may not expect of these settings: (field, message)."""
        if isinstance(self.executor, Passthrough) and self.executor.target == self.advisor:
            return [("advisor", "the advisor is the executor itself: it will hardly see what it could not do")]
        return []

    @cached_property
    def _claims(self) -> "re.Pattern[str]":
        return re.compile(self.pattern)

    def route(self, turn: Turn) -> Asking[Decision]:
        """The executor's turn as it is, or approved, or done again by the advisor's plan."""
        budget = turn.recall(AdvisorBudget) if turn.lane.identified else AdvisorBudget()
        unreviewed = self._unreviewed(turn, budget)
        decision = yield from nested("executor", self.executor, turn)
        if unreviewed:
            return _told(decision, unreviewed)
        if isinstance(decision, Answer):
            reply: Reply | Failure = decision.reply
        else:
            reply = yield from self._drafted(turn, decision, ())
        return (yield from self._gated(turn, budget, decision, reply))

    def _unreviewed(self, turn: Turn, budget: AdvisorBudget) -> str:
        """Why no turn like this can be reviewed, so that it need not be held back; "" when one may be due."""
        if turn.agent.kind == "background":
            return "background calls are not reviewed"
        if turn.settings.store is True or turn.settings.background:
            return "the provider is to store the reply, so that it cannot be held back"
        if not turn.lane.identified:
            return "the turn names no session, so reviews could not be counted: none is made"
        if budget.closed:
            return f"{REFUNDS} reviews failed, so none is made any more"
        if self._stalls(turn, budget):
            return ""
        if budget.reviews >= self.max_reviews:
            return (
                f"all {self.max_reviews} reviews of this session are used" if self.max_reviews else "no review is due"
            )
        if len(turn.signals.observations) < self.min_tool_results:
            return "too little has been done for a claim to be done"
        return ""

    def _stalls(self, turn: Turn, budget: AdvisorBudget) -> bool:
        return bool(self.stall_turns) and not budget.stalled and turn.signals.depth + 1 >= self.stall_turns

    def _occasion(self, turn: Turn, budget: AdvisorBudget, reply: Reply) -> Occasion | None:
        """What the turn is to be reviewed for. A claim that comes at a stall does not spend the checkpoint."""
        if budget.closed:
            return None
        if budget.reviews < self.max_reviews and len(turn.signals.observations) >= self.min_tool_results:
            claims = not reply.calls if self.trigger == "no_tool_call" else bool(self._claims.search(reply.text))
            if claims:
                return "done"
        return "stall" if self._stalls(turn, budget) else None

    def _drafted(self, turn: Turn, decision: Forward, notes: tuple[Note, ...]) -> Asking[Reply | Failure]:
        conversation = turn.conversation if decision.rewrite is None else decision.rewrite
        edits = (*decision.edits, *notes)
        return (yield from ask(decision.target, conversation, edits=edits, within_s=self.draft_within_s))

    def _gated(self, turn: Turn, budget: AdvisorBudget, decision: Decision, reply: Reply | Failure) -> Asking[Decision]:
        """Review until the turn may go out. Each review leaves an event, and there is a budget of them."""
        notes: tuple[Note, ...] = ()
        for again in itertools.count(1):
            if isinstance(reply, Failure):
                sentence = f"{decision.target} failed ({reply.kind}), so it is asked again without a review"
                return _live(decision, notes, _why(decision, sentence, draft_failure=reply.kind))
            occasion = self._occasion(turn, budget, reply)
            if occasion is None:
                return _answer(decision, reply, "no review was due")
            if any(isinstance(part, Opaque) for part in reply.parts):
                return _answer(decision, reply, "the reply holds work that the provider has done already")
            review = yield from self._consulted(turn, reply, occasion)
            if isinstance(review, str):
                return self._unheard(turn, decision, reply, occasion, review)
            event = Reviewed(turn.id, occasion, "approved" if review.approved else "redo")
            decision = replace(decision, remember=(*decision.remember, event))
            budget = budget.after(event)
            values: dict[str, Any] = {"occasion": occasion, "reviews": budget.reviews, "stalled": budget.stalled}
            if review.approved:
                why = Why(
                    "advisor", f"{self.advisor} approved the turn of {decision.target}", "approved", values=values
                )
                return Answer(reply, decision.target, why, decision.propensity, decision.remember)
            notes = (Note(words.redo_note(reply, review.plan)),)
            values["plan"] = kept(review.plan)
            sentence = f"{self.advisor} held the turn of {decision.target} back, which does it again by its plan"
            decision = replace(decision, why=Why("advisor", sentence, "redo", values=values))
            if again == REDOS_AT_MOST or self._never_again(turn, budget):
                return _live(decision, notes, decision.why)
            reply = yield from self._drafted(turn, _live(decision, (), decision.why), notes)
        raise AssertionError("unreachable: every way out of the loop is a return")

    def _never_again(self, turn: Turn, budget: AdvisorBudget) -> bool:
        """Whether nothing can be reviewed any more in this turn, so that it may stream."""
        return budget.reviews >= self.max_reviews and not self._stalls(turn, budget)

    def _consulted(self, turn: Turn, reply: Reply, occasion: Occasion) -> Asking["words.Review | str"]:
        """The advisor's word, or why there is none: a reason for judges' failures, or `cancelled` when a concurrent turn of this
        agent is being reviewed."""
        outcome = yield from ask(
            self.advisor,
            words.question(turn, reply, occasion, self.transcript_max_chars, self.prompt),
            "advisor",
            within_s=self.within_s,
            settings=words.settings(self.max_output_tokens),
            once=f"{turn.place}/review",
        )
        if isinstance(outcome, Failure):
            return "cancelled" if outcome.kind == "cancelled" else failed(outcome).reason
        return words.read(outcome) or "invalid_response"

    def _unheard(self, turn: Turn, decision: Decision, reply: Reply, occasion: Occasion, reason: str) -> Decision:
        if reason == "cancelled":
            return _answer(decision, reply, "a concurrent turn of this agent is being reviewed")
        remember = (*decision.remember, Reviewed(turn.id, occasion, "failed"))
        decision = replace(decision, remember=remember)
        if self.fail_open:
            return _answer(decision, reply, f"the review failed ({reason}), so the turn goes out without", reason)
        sentence = f"the review failed ({reason}), and this route is cautious: {self.advisor} serves this turn itself"
        values = {"occasion": occasion, "judge_failure": reason}
        return Forward(self.advisor, Why("advisor", sentence, "unreviewed", values=values), remember=remember)


def _why(decision: Decision, sentence: str, **values: Any) -> Why:
    why = decision.why
    return replace(why, sentence=f"{why.sentence}; {sentence}", values={**why.values, **values})


def _told(decision: Decision, sentence: str) -> Decision:
    return replace(decision, why=_why(decision, sentence))


def _answer(decision: Decision, reply: Reply, sentence: str, failure: str = "") -> Answer:
    values = {"judge_failure": failure} if failure else {}
    why = _why(decision, sentence, **values)
    return Answer(reply, decision.target, why, decision.propensity, decision.remember)


def _live(decision: Decision, notes: tuple[Note, ...], why: Why) -> Forward:
    """The executor's turn, live: its own decision with the advisor's notes."""
    if isinstance(decision, Forward):
        return replace(decision, edits=(*decision.edits, *notes), why=why)
    return Forward(decision.target, why, edits=notes, propensity=decision.propensity, remember=decision.remember)
