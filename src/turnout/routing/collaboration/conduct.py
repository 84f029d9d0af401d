"""Conducts a chain with model calls: answers, votes and improvements, counted against the caps and accounted for."""

from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import Note, Opaque, Reply
from turnout.routing.collaboration import words
from turnout.routing.collaboration.caps import Caps, Taken
from turnout.routing.collaboration.chain import Chain, Ended, Generate, Halt, Halting, Refine, Response, Step, Vote
from turnout.routing.collaboration.fitness import alike, key_of, unfit
from turnout.routing.core import Ask, Asking, Failure, Outcome, TargetName, Turn, ask_all
from turnout.routing.judging import Answered, Excerpt, Judging, Unanswered, kept, question_of, read

_FIRST = 2 / 3
"""The share of the time that a first answer may take, so that another model can answer when one hangs."""
_MARGIN = 0.9
"""The share of a turn's deadline after which no more calls go on: what there is by then must still go out."""
_UNREADABLE = ("parse_error", "invalid_response")
"""Failures of a voter's that a stricter question may mend."""


class Heard(Struct):
    """What came of asking one voter about one text. `failure`: why there is no vote; `asked`: how often it was."""

    approve: bool | None = None
    reason: str = ""
    severity: str = ""
    failure: str = ""
    asked: int = 0
    tokens: int = 0
    usd: float | None = 0.0


class Written(Struct):
    """What an answer cost, and which target's it is."""

    target: TargetName
    tokens: int | None = None
    usd: float | None = None


class How(Struct, frozen=True):
    """How models are asked. `targets`: by model. `draft_within_s`: for an answer. `pass_reason`: whether a refiner is
    reminded of why it disapproved. `refine_prompt`: "" = the built-in one. `progress`: whether the client is told how far it
    is."""

    targets: dict[str, TargetName]
    judging: Judging
    excerpt: Excerpt
    caps: Caps
    draft_within_s: float
    pass_reason: bool
    refine_prompt: str
    progress: bool


class Conduct:
    """One request's chain, conducted. `replies` by hop; `halted`: which cap ended it; `by_s`: seconds after the turn's beginning
    at which no call goes on; `shown`: what the user attached, which voters see too; `done`: the provider has done part of the
    work already, so that nothing may replace the answer."""

    def __init__(self, how: How, turn: Turn) -> None:
        self.how = how
        self.turn = turn
        left_s = how.caps.seconds if turn.deadline_s is None else turn.deadline_s * _MARGIN
        self.by_s = min(how.caps.seconds, left_s)
        self.taken = Taken()
        self.replies: list[Reply] = []
        self.written: list[Written] = []
        self.heard: dict[tuple[str, str], Heard] = {}
        self.failures: dict[str, Failure] = {}
        self.halted = ""
        self.done = False
        self.shown = words.attached(turn)
        self._matter = ""

    def run(self, chain: Chain) -> Asking[Ended | None]:
        """How the chain ended; None when an answer may not be replaced (`done`)."""
        sent: Any = None
        while True:
            try:
                step: Step = chain.send(sent)
            except StopIteration as stop:
                ended: Ended = stop.value
                return ended
            match step:
                case Generate():
                    sent = yield from self._answer(step.author, (), "draft", "")
                case Refine():
                    sent = yield from self._refine(step)
                case Vote():
                    sent = yield from self._vote(step)
            if self.done:
                chain.close()
                return None

    def _answer(self, author: str, edits: tuple[Note, ...], purpose: str, tells: str) -> Asking[Response | Halt | None]:
        if halt := self._halt(1):
            return halt
        how, target, conversation = self.how, self.how.targets[author], self.turn.conversation
        within_s = min(how.draft_within_s, self.by_s * _FIRST) if purpose == "draft" else how.draft_within_s
        call = Ask(target, conversation, purpose, within_s, edits, tells=self._told(tells), by_s=self.by_s)
        (outcome,) = yield (call,)
        tokens, usd = self._count(target, outcome)
        if not isinstance(outcome, Reply):
            self.failures[author] = outcome
            return self._halt(0)
        self.replies.append(outcome)
        self.written.append(Written(target, tokens, usd))
        self.done = any(isinstance(part, Opaque) for part in outcome.parts)
        fault = unfit(outcome, conversation, self.turn.settings)
        return Response(key_of(outcome), alike=alike(outcome), fault=fault)

    def _refine(self, step: Refine) -> Asking[Response | Halt | None]:
        reply = self.replies[step.hop]
        fault = unfit(reply, self.turn.conversation, self.turn.settings)
        heard = self.heard.get((key_of(reply), step.author))
        reason = fault or (heard.reason if heard is not None and self.how.pass_reason else "")
        note = Note(words.refinement(reply, reason, self.how.refine_prompt))
        tells = f"hop {step.hop + 1}: {step.author} improves the answer"
        return (yield from self._answer(step.author, (note,), "refine", tells))

    def _vote(self, step: Vote) -> Asking[list[bool | None] | Halt]:
        if halt := self._halt(len(step.voters)):
            return halt
        reply = self.replies[step.hop]
        self._matter = self._matter or words.matter(self.turn, self.how.excerpt)
        text = words.ballot(self._matter, reply)
        tells = f"hop {step.hop}: {', '.join(step.voters)} vote on the answer"
        found = yield from self._poll(step.voters, text, key_of(reply), tells)
        unread = [voter for voter in step.voters if found[voter].failure in _UNREADABLE]
        if unread and not self._halt(len(unread)):
            found |= yield from self._poll(tuple(unread), text + words.STRICTER, key_of(reply), "")
        return [found[voter].approve for voter in step.voters]

    def _poll(self, voters: tuple[str, ...], text: str, key: str, tells: str) -> Asking[dict[str, Heard]]:
        how, targets = self.how, self.how.targets
        asks = [
            msgspec.structs.replace(
                words.seen(question_of(targets[voter], words.QUESTION, text, how.judging), self.shown),
                tells="" if at else self._told(tells),
                by_s=self.by_s,
            )
            for at, voter in enumerate(voters)
        ]
        outcomes = yield from ask_all(*asks)
        found = {}
        for voter, outcome in zip(voters, outcomes, strict=True):
            heard = found[voter] = self.heard.setdefault((key, voter), Heard())
            self._hear(heard, outcome, *self._count(targets[voter], outcome))
        return found

    def _hear(self, heard: Heard, outcome: Outcome, tokens: int | None, usd: float | None) -> None:
        heard.asked += 1
        heard.tokens += tokens or 0
        heard.usd = None if usd is None or heard.usd is None else heard.usd + usd
        answer = read(outcome, words.QUESTION)
        if isinstance(answer, Unanswered):
            heard.failure = answer.reason
            return
        assert isinstance(answer, Answered)
        opinion = answer.value
        heard.approve, heard.failure = bool(opinion.approve), ""
        heard.reason, heard.severity = kept(opinion.reason), opinion.severity

    def _count(self, target: TargetName, outcome: Outcome) -> tuple[int | None, float | None]:
        if not isinstance(outcome, Reply) and outcome.reason in ("deadline", "budget"):
            self.halted = self.halted or ("seconds" if outcome.reason == "deadline" else "judge_budget")
        facts = self.turn.targets.get(target)
        return self.taken.add(outcome, facts.rates if facts is not None else None)

    def _halt(self, calls: int) -> Halt | None:
        """Why no more calls are made, if so many more would be too many, or a host has refused one."""
        self.halted = self.halted or self.taken.refuses(self.how.caps, calls)
        status: Halting = "deadline" if self.halted == "seconds" else "budget"
        return Halt(status) if self.halted else None

    def _told(self, tells: str) -> str:
        return tells if self.how.progress else ""
