"""What the escalation router remembers of a lane: the streak of votes to move up, and the latch."""

from typing import Any, ClassVar

from msgspec import Struct

from turnout.routing.core import State


class EscalationVoted(Struct, frozen=True, tag="escalation_voted", tag_field="event"):
    """A finished turn was judged. `turn`: its id. `confirmations`: how many such votes in a row it takes. `asked`: a judge
    voted; False when the signals spoke alone."""

    turn: str
    escalate: bool
    confirmations: int = 2
    asked: bool = True


class EscalationHeld(Struct, frozen=True, tag="escalation_held", tag_field="event"):
    """The strong target served a turn because of the latch. `since`: the turn that latched; so a store that has lost the latch
    meanwhile has it again."""

    turn: str
    since: str = ""


class EscalationRearmed(Struct, frozen=True, tag="escalation_rearmed", tag_field="event"):
    """A new task of the user's opened the latch."""

    turn: str


class EscalationMemory(State, frozen=True):
    """`streak`: votes to move up in a row. `latched`: the strong target serves this lane for good. `turn`: the one that latched
    it."""

    events: ClassVar[tuple[type[Struct], ...]] = (EscalationVoted, EscalationHeld, EscalationRearmed)

    streak: int = 0
    latched: bool = False
    turn: str = ""

    def after(self, event: Any) -> "EscalationMemory":
        """The memory after a vote, a held turn or a new task. Votes do not open a latch."""
        if isinstance(event, EscalationRearmed):
            return EscalationMemory()
        if self.latched:
            return self
        if isinstance(event, EscalationHeld):
            return EscalationMemory(0, True, event.since)
        if not event.escalate:
            return EscalationMemory()
        streak = self.streak + 1
        latched = streak >= event.confirmations
        return EscalationMemory(streak, latched, event.turn if latched else "")
