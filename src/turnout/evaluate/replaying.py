"""Replays the turns of a ledger lane by lane: what a router decides on each, and what that would have cost.

A turn that the router decided itself is decided again from its memory as recorded, and must come out the same. For any other turn
the router remembers what its own decisions would have left. What the ledger does not hold is counted and never guessed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from turnout.errors import Missing, TapeMiss
from turnout.evaluate.recollection import Recollection, States, as_recorded
from turnout.evaluate.replay import differences, turn_of
from turnout.ledger.answered import answered, aside_of, aside_usd, decided_target, flip
from turnout.ledger.trace import TurnRecord
from turnout.routing.beside import Flip, beside, events_of, memory_of, seeded
from turnout.routing.core import Decision, Router, TargetFacts, TargetName
from turnout.routing.spending import KEY as SPENDING
from turnout.routing.spending import Answered, Price, Spending, charged, priced
from turnout.routing.tape import Tape, played
from turnout.sessions.store import folded, revived

Reason: TypeAlias = Missing | Literal["refused", "unfinished", "route"]
REASONS: Mapping[Reason, str] = {
    "call": "asks for a call that was not made",
    "conversation": 'reads what was said, which only capture = "full" keeps',
    "continued": "goes on from a stored response, which the ledger does not hold whole",
    "signals": 'recorded without signals (capture = "none")',
    "memory": "follows a turn of its lane that could not be decided",
    "refused": "refused before any router was asked",
    "unfinished": "over before its router had decided",
    "route": "its route is not in the configuration",
}
"""Why a turn is not replayed, for people."""


class Candidate(Struct, frozen=True):
    """A router to replay. `policy`: digest of its configuration. `fault`: the decision where it raises."""

    name: str
    router: Router
    policy: str
    fault: Callable[[Exception], Decision]


class Replayed(Struct, frozen=True):
    """One turn of a replay.

    `decision`: None when it could not be made, for `reason`. `own`: the router decided this turn itself; `different`: in what it
    now decides otherwise. `agrees`: it chooses the target that was chosen. `price`: of the answer on both ways, `live_aside_usd`
    and `aside_usd` of the calls made to decide.
    """

    record: TurnRecord
    decision: Decision | None = None
    reason: Reason | None = None
    own: bool = False
    different: tuple[str, ...] = ()
    agrees: bool = False
    price: Price | None = None
    live_aside_usd: float | None = None
    aside_usd: float | None = None

    @property
    def flip(self) -> Flip | None:
        """The other choice; None where it is the same, or there is none."""
        record, decision = self.record, self.decision
        if decision is None or self.agrees:
            return None
        return flip(record, decided_target(record), record.why, decision.target, decision.why)


class _Lane:
    __slots__ = ("memory", "spending")

    def __init__(self) -> None:
        self.memory = Recollection()
        self.spending = Spending()

    def before(self, record: TurnRecord) -> States:
        """What is remembered by now. A lane that was under way when the ledger begins is taken over as it stood."""
        assert record.signals is not None  # else it is undecidable
        if self.memory.fresh and record.memory:
            return revived(seeded(record.memory))
        return self.memory.before(record.signals)


class Replaying:
    """Decides turns again.

    `choose`: the router for a turn, None where the configuration has none. `targets`: what it says of them. `request`: the
    body of a recorded turn's request, None where the ledger has none; it is fetched for routers that read it only.
    """

    def __init__(
        self,
        choose: Callable[[TurnRecord], Candidate | None],
        targets: Mapping[TargetName, TargetFacts],
        request: Callable[[str], bytes | None] = lambda _: None,
        deadline_s: float | None = None,
    ) -> None:
        self._choose = choose
        self._targets = targets
        self._request = request
        self._deadline_s = deadline_s
        self._models = {facts.model: name for name, facts in targets.items()}

    def turns(self, records: Iterable[TurnRecord]) -> Iterator[Replayed]:
        """Each turn decided again. `records`: lane after lane, each in the order it went."""
        lane, whose = _Lane(), ("", "", "")
        for record in records:
            now = (record.tenant, record.session, record.agent)
            if now != whose or record.rung == "none":
                lane, whose = _Lane(), now
            yield self._turn(record, lane)

    def _turn(self, record: TurnRecord, lane: _Lane) -> Replayed:
        candidate = self._choose(record)
        reason = _undecidable(record)
        if candidate is None or reason is not None:
            return Replayed(record, reason=reason or "route")
        own = record.why is not None and record.policy == candidate.policy
        signals = record.signals
        assert signals is not None  # else it is undecidable
        identified = record.rung != "none"
        states = lane.before(record) if identified and not own else {}
        memory = record.memory if own or not identified else memory_of(states, record.memory)
        tape = Tape(record.asked, record.lookups)
        try:
            decision = self._decided(record, candidate, memory, tape)
        except TapeMiss as miss:
            if identified and _kept(record):
                lane.memory.keep(signals, folded(states, events_of(None, False)))
            self._unpriced(record, lane, own)
            return Replayed(record, reason=miss.reason, own=own)
        agrees = self._agree(record, decision)
        price = self._priced(record, lane, decision, states, own)
        if identified and _kept(record):
            if own:
                lane.memory.keep(signals, as_recorded(record, decision, lane.spending))
            else:
                lane.memory.keep(signals, {**folded(states, events_of(decision, agrees)), SPENDING: lane.spending})
        return Replayed(
            record,
            decision,
            own=own,
            different=tuple(differences(record, decision)) if own else (),
            agrees=agrees,
            price=price,
            live_aside_usd=aside_usd(record),
            aside_usd=aside_of(record, tape.heard, decision) if record.asked else 0.0,
        )

    def _decided(self, record: TurnRecord, candidate: Candidate, memory: Mapping[str, Any], tape: Tape) -> Decision:
        """The decision, from the signals alone where they are enough, else with the request."""
        try:
            return self._routed(record, candidate, memory, tape)
        except TapeMiss as miss:
            if miss.reason != "conversation" or record.request is not None:
                raise
            request = self._request(record.id)
            if request is None:
                raise
        return self._routed(msgspec.structs.replace(record, request=request), candidate, memory, tape)

    def _routed(self, record: TurnRecord, candidate: Candidate, memory: Mapping[str, Any], tape: Tape) -> Decision:
        turn = turn_of(record, self._targets, self._deadline_s, memory)
        try:
            return played(candidate.router.route(turn), tape, turn.conversation)
        except TapeMiss:
            raise
        except Exception as error:  # a router that raises has decided, live too: the turn goes to its last resort
            return candidate.fault(error)

    def _agree(self, record: TurnRecord, decision: Decision) -> bool:
        was = decided_target(record)
        if decision.target == was:
            return True
        # An imported turn names a model, which the configuration may have as a target of another name.
        return was not in self._targets and self._models.get(record.model) == decision.target

    def _priced(self, record: TurnRecord, lane: _Lane, decision: Decision, states: States, own: bool) -> Price | None:
        if not own:
            # Where the conversation was sent again or taken back, it goes on from there.
            spending = states.get(SPENDING)
            lane.spending = spending if isinstance(spending, Spending) else Spending()
        answer = self._answered(record)
        if answer is None:
            return None
        chosen = decision.target
        if chosen == record.decided and record.target:
            chosen = TargetName(record.target)  # what could not serve then would not have served now
        facts = None if beside(states).lost and not own else self._targets.get(chosen)
        found = priced(lane.spending, answer, self._targets.get(TargetName(answer.target)), facts)
        lane.spending = lane.spending.after(charged(answer, facts))
        return found

    def _unpriced(self, record: TurnRecord, lane: _Lane, own: bool) -> None:
        """Follow the caches over a turn that could not be decided: the router's own went the way it is recorded, and where
        another would have sent it is not known."""
        answer = self._answered(record)
        if answer is not None:
            facts = self._targets.get(TargetName(answer.target)) if own else None
            lane.spending = lane.spending.after(charged(answer, facts))

    def _answered(self, record: TurnRecord) -> Answered | None:
        answer = answered(record)
        if answer is None or answer.target in self._targets or record.model not in self._models:
            return answer
        return msgspec.structs.replace(answer, target=self._models[record.model])


def _undecidable(record: TurnRecord) -> Reason | None:
    if record.ended == "rejected":
        return "refused"
    if record.why is None and (record.policy or not record.route):
        return "unfinished"
    return "signals" if record.signals is None else None


def _kept(record: TurnRecord) -> bool:
    """Whether what was remembered on this turn counts: it was answered, or got as far as to remember."""
    return record.ended == "ok" or bool(record.remembered)
