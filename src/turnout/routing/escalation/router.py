"""The escalation router: the weak model works, and a judge who reads each finished turn decides when it is out of its depth."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from turnout.conversation import Edit, Note, Opaque, Reply
from turnout.routing.core import (
    Answer,
    Asking,
    Decision,
    Failure,
    Forward,
    Routed,
    Source,
    TargetName,
    Turn,
    Why,
    ask,
)
from turnout.routing.escalation.irreversible import irreversible, offers_irreversible
from turnout.routing.escalation.memory import EscalationHeld, EscalationMemory, EscalationRearmed, EscalationVoted
from turnout.routing.escalation.rubric import QUESTION
from turnout.routing.judging import Excerpt, Judging, Unanswered, consult, doubts, kept, transcript, unfinished

_NEW = EscalationMemory()
_ALGORITHMS = {"always": "escalation", "doubtful": "escalation_when_doubtful", "never": "escalation_by_signals"}


class Escalation(Struct, frozen=True, tag="escalation", tag_field="type", forbid_unknown_fields=True):
    """Lets a weak target work until a judge finds that it is out of its depth, then moves the lane to a strong one for good.

    Each turn goes to the weak target first; its reply is held back while the judge reads the work with the reply as its newest
    step. `confirmations` votes in a row discard the reply, have the strong target do the turn again, and latch: from then on the
    strong target serves this agent of this session. A judge that fails changes nothing: the reply is served, the streak stays.

    `weak`: the target that works first. `strong`: the one that takes over. `judge`: the one that reads the finished turns; left
    out where `judge_when` is `never`.
    `confirmations` (default 2): consecutive votes it takes. With 1 every turn is judged by itself, which needs no identity; with
    more, turns that no sure identity ties to a lane go to the weak target unjudged: their votes could not be counted.
    `on_judge_failure` (default `weak`): who serves a turn whose judge failed; `strong` is for the cautious, and latches nothing.
    `judge_when` (default `always`): `doubtful` asks the judge only when the signals leave a doubt (failures that stay, loops,
    stalls, complaints) or when the agent calls it done over an uncleared failure; all other turns stream at once, and count as
    votes against. `never` needs no `judge`: such a doubt is itself the vote, known before the turn is served, so every turn
    streams. Different algorithms, and named so in the explanation.
    `irreversible` (default none): globs of tool names (`deploy*`, `*__delete_*`) whose calls cannot be taken back: before one is
    let through, a single vote is enough. Tools whose definition is annotated `destructiveHint` always count among them. Needs a
    judge.
    `rearm` (default false): a new request of the user's, unless it is a complaint, opens the latch: the weak target tries again.
    `trust_fingerprints` (default false): tie streaks and latches also to lanes known only by how their conversation begins.
    `note`: a text put at the end of the conversation for the one turn that the strong target does again (default none).
    `draft_within_s` (default 600): seconds after which the weak target has failed, and the strong one serves.
    `strong_fallbacks`: targets tried in order when the strong one fails before the first content (default none).
    `judging`: how the judge is asked. `transcript`: how much of the work it is shown.

    A weak target that fails (prompt too long, no connection, refusal) is replaced by the strong one for this turn, without a
    judge. Background calls of an agent (titles and the like; upkeep of a lane that has latched excepted) go to the weak target
    without one, and so do requests whose reply the provider is told to store.
    """

    weak: TargetName
    strong: TargetName
    judge: TargetName | None = None
    confirmations: Annotated[int, Meta(ge=1, le=100)] = 2
    on_judge_failure: Literal["weak", "strong"] = "weak"
    judge_when: Literal["always", "doubtful", "never"] = "always"
    irreversible: tuple[str, ...] = ()
    rearm: bool = False
    trust_fingerprints: bool = False
    note: str = ""
    draft_within_s: Annotated[float, Meta(gt=0)] = 600.0
    strong_fallbacks: tuple[TargetName, ...] = ()
    judging: Judging = Judging()
    transcript: Excerpt = Excerpt()

    def __post_init__(self) -> None:
        if not 1 <= self.confirmations <= 100:
            raise ValueError(f"confirmations: {self.confirmations} is not between 1 and 100")
        if any(not pattern.strip() for pattern in self.irreversible):
            raise ValueError("irreversible: a pattern may not be blank")
        if self.judge is None and self.judge_when != "never":
            raise ValueError(
                'judge: name the target that reads the turns, or set judge_when = "never" to go by the signals'
            )
        if self.judge_when == "never" and (self.judge is not None or self.irreversible):
            raise ValueError('judge_when: "never" asks no judge; leave out `judge` and `irreversible`')

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: the strong target."""
        return self.strong

    def concerns(self) -> list[tuple[str, str]]:
        """What will surprise an operator: field and message."""
        found = []
        if self.confirmations > 1 and not self.trust_fingerprints:
            unasked = " and no judge is asked" if self.judge is not None else ""
            found.append(
                (
                    "confirmations",
                    f"{self.confirmations} votes are counted per session: turns of clients that send no session id cannot latch, "
                    f"so they go to the weak target{unasked}; have clients send x-turnout-session, or set "
                    "confirmations = 1 to judge every turn by itself",
                )
            )
        if self.judge == self.weak:
            found.append(("judge", "the judge is the weak target itself: it will hardly see what it could not do"))
        return found

    def route(self, turn: Turn) -> Routed:
        """A decision at once where no judge is to be asked, else the asks it takes."""
        sure = turn.lane.confident or (self.trust_fingerprints and turn.lane.identified)
        memory = turn.recall(EscalationMemory) if sure else _NEW
        background = turn.agent.kind == "background"
        opened: tuple[Struct, ...] = ()
        if memory.latched:
            new_task = turn.signals.user_turn and not turn.signals.complaint and not background
            if not (self.rearm and new_task):
                return self._latched(turn, memory)
            memory, opened = _NEW, (EscalationRearmed(turn.id),)
        if background:
            return self._unjudged("background", "a background call of the agent, which no judge reads")
        if self.judge is None:
            return self._by_signals(turn, memory, opened, sure)
        if turn.settings.store is True or turn.settings.background:
            sentence = "the provider is to store the reply, so that it cannot be discarded"
            return self._unjudged("stored", sentence, opened, streak=memory.streak)
        counts = sure or self.confirmations == 1
        found = doubts(turn.signals) if self.judge_when == "doubtful" else ()
        doubtful = self.judge_when == "always" or bool(found) or unfinished(turn.signals)
        if counts and doubtful:
            return self._judged(turn, memory, opened, sure, found)
        if offers_irreversible(turn.conversation, self.irreversible):
            return self._judged(turn, memory, opened, sure, found, only_irreversible=True)
        if not counts:
            return self._unjudged("unidentified", _unidentified(turn, self.confirmations))
        calm = (EscalationVoted(turn.id, False, self.confirmations, asked=False),) if sure and memory.streak else ()
        sentence = "the signals leave no doubt, so no judge is asked"
        return self._unjudged("no_doubt", sentence, (*opened, *calm), source="signals", streak=memory.streak)

    def _by_signals(self, turn: Turn, memory: EscalationMemory, opened: tuple[Struct, ...], sure: bool) -> Forward:
        """A turn on which no judge has a say: a doubt that the signals leave is the vote."""
        if not sure and self.confirmations > 1:
            return self._unjudged("unidentified", _unidentified(turn, self.confirmations), opened)
        found = doubts(turn.signals)
        vote = EscalationVoted(turn.id, bool(found), self.confirmations, asked=False)
        after = memory.after(vote)
        # A vote against is worth keeping only where it ends a streak.
        remember = (*opened, vote) if sure and (found or memory.streak) else opened
        if after.latched:
            held = f"{self.strong} serves this agent from now on" if sure else f"{self.strong} serves this turn"
            times = f"{self.confirmations} of {self.confirmations} turns in a row"
            sentence = f"the signals leave doubts ({', '.join(found)}), {times}: {held}"
            values = {**self._values(memory.streak, found), "confirmations": self.confirmations}
            return self._strong("signals", "latched" if sure else "escalated", sentence, values, remember, redo=True)
        if found:
            times = f"{after.streak} of {self.confirmations} turns in a row"
            sentence = f"the signals leave doubts ({', '.join(found)}), {times}: {self.weak} still serves"
            return self._unjudged("voted", sentence, remember, "signals", after.streak, found)
        return self._unjudged("no_doubt", "the signals leave no doubt", remember, "signals")

    def _judged(
        self,
        turn: Turn,
        memory: EscalationMemory,
        opened: tuple[Struct, ...],
        sure: bool,
        found: tuple[str, ...],
        *,
        only_irreversible: bool = False,
    ) -> Asking[Decision]:
        draft = yield from ask(self.weak, turn.conversation, within_s=self.draft_within_s)
        values = self._values(memory.streak, found)
        if isinstance(draft, Failure):
            values["draft_failure"] = draft.kind
            sentence = f"{self.weak} failed ({draft.kind}), so {self.strong} serves this turn"
            return self._strong("fallback", "weak_failed", sentence, values, opened)
        calls = draft.calls
        grave = irreversible(calls, turn.conversation, self.irreversible) if calls else ""
        if grave:
            values["irreversible"] = grave
        settled = self._settled(turn, memory, found, sure, draft, grave, only_irreversible)
        if settled is not None:
            rule, sentence, events = settled
            source: Source = "signals" if rule == "no_doubt" else "default"
            return Answer(draft, self.weak, Why(source, sentence, rule, values=values), remember=(*opened, *events))
        values |= {"draft_calls": len(calls), "draft_chars": len(draft.text)}
        text = transcript(turn.conversation, turn.signals, draft, self.transcript)
        assert self.judge is not None  # turns of routes without one are decided before there is a draft
        heard = yield from consult(self.judge, QUESTION, text, self.judging)
        if isinstance(heard, Unanswered):
            return self._unheard(heard, draft, values, opened)
        return self._voted(turn, memory, opened, sure, draft, heard.value.escalate, heard.value.reason, grave, values)

    def _settled(
        self,
        turn: Turn,
        memory: EscalationMemory,
        found: tuple[str, ...],
        sure: bool,
        draft: Reply,
        grave: str,
        only_irreversible: bool,
    ) -> tuple[str, str, tuple[Struct, ...]] | None:
        """Rule, sentence and events of a turn whose finished draft needs no judge after all; None when it does."""
        if grave:
            return None
        if only_irreversible and not (sure or self.confirmations == 1):
            return "unidentified", _unidentified(turn, self.confirmations), ()
        if self.judge_when == "always" or found or (not draft.calls and unfinished(turn.signals)):
            return None
        events = (EscalationVoted(turn.id, False, self.confirmations, asked=False),) if sure and memory.streak else ()
        return "no_doubt", "neither the signals nor the reply leave a doubt, so no judge was asked", events

    def _voted(
        self,
        turn: Turn,
        memory: EscalationMemory,
        opened: tuple[Struct, ...],
        sure: bool,
        draft: Reply,
        escalate: bool,
        reason: str,
        grave: str,
        values: dict[str, Any],
    ) -> Decision:
        needed = 1 if grave else self.confirmations
        vote = EscalationVoted(turn.id, escalate, needed)
        after = memory.after(vote)
        remember = (*opened, vote) if sure else ()
        values |= {
            "verdict": "escalate" if escalate else "decline",
            "verdict_reason": kept(reason),
            "streak": after.streak,
            "confirmations": needed,
        }
        if after.latched and not any(isinstance(part, Opaque) for part in draft.parts):
            before = f"before {grave} is called" if grave else f"vote {after.streak} of {needed}"
            held = f"{self.strong} serves this agent from now on" if sure else f"{self.strong} does this turn again"
            sentence = f"the judge found {self.weak} out of its depth ({before}): {held}"
            return self._strong("judge", "latched" if sure else "escalated", sentence, values, remember, redo=True)
        if after.latched:
            sentence = "the judge voted to move up, but the reply holds work that the provider has done already"
            return Answer(draft, self.weak, Why("judge", sentence, "done", values=values), remember=remember)
        if escalate:
            sentence = (
                f"the judge voted to move up, {after.streak} of {needed} times in a row: {self.weak} still serves"
            )
            return Answer(draft, self.weak, Why("judge", sentence, "voted", values=values), remember=remember)
        sentence = f"the judge found that {self.weak} gets on"
        return Answer(draft, self.weak, Why("judge", sentence, "declined", values=values), remember=remember)

    def _unheard(self, heard: Unanswered, draft: Reply, values: dict[str, Any], opened: tuple[Struct, ...]) -> Decision:
        values |= {"judge_failure": heard.reason, "judge_message": heard.message}
        discardable = not any(isinstance(part, Opaque) for part in draft.parts)
        if self.on_judge_failure == "strong" and discardable:
            sentence = f"no verdict ({heard.reason}), and this route is cautious: {self.strong} serves this turn"
            return self._strong("fallback", "judge_failed", sentence, values, opened)
        sentence = f"no verdict ({heard.reason}): {self.weak} serves, and the streak stays"
        return Answer(draft, self.weak, Why("default", sentence, "judge_failed", values=values), remember=opened)

    def _strong(
        self,
        source: Source,
        rule: str,
        sentence: str,
        values: dict[str, Any],
        remember: tuple[Struct, ...],
        *,
        redo: bool = False,
    ) -> Forward:
        edits: tuple[Edit, ...] = (Note(self.note),) if redo and self.note else ()
        why = Why(source, sentence, rule, values=values)
        return Forward(self.strong, why, self.strong_fallbacks, edits, remember=remember)

    def _latched(self, turn: Turn, memory: EscalationMemory) -> Forward:
        whose = "judge's votes" if self.judge is not None else "doubts"
        sentence = f"{self.strong} serves this agent since the {whose} in turn {memory.turn}"
        values = {"algorithm": self._algorithm(), "latched_in": memory.turn}
        # Remembered anew each turn: agents rewrite their history, and what was kept at one place of it only would be lost.
        return self._strong("latch", "", sentence, values, (EscalationHeld(turn.id, memory.turn),))

    def _unjudged(
        self,
        rule: str,
        sentence: str,
        remember: tuple[Struct, ...] = (),
        source: Source = "default",
        streak: int = 0,
        found: tuple[str, ...] = (),
    ) -> Forward:
        why = Why(source, sentence, rule, values=self._values(streak, found))
        return Forward(self.weak, why, (self.strong, *self.strong_fallbacks), remember=remember)

    def _values(self, streak: int, found: tuple[str, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {"algorithm": self._algorithm(), "streak": streak}
        if found:
            values["doubts"] = list(found)
        return values

    def _algorithm(self) -> str:
        return _ALGORITHMS[self.judge_when]


def _unidentified(turn: Turn, confirmations: int) -> str:
    """Why a turn is not judged: nothing ties it to the next surely enough."""
    known = "is known only by how its conversation begins" if turn.lane.rung == "fingerprint" else "has no session id"
    return (
        f"the turn {known}, so {confirmations} votes in a row cannot be counted: no judge is asked, and nothing latches"
    )
