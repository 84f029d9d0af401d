"""One choice for an agent's whole session, or for one task: the target that another router chose first stays."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct

from turnout.routing.core import Asking, Decision, Forward, Router, State, TargetName, Turn, Why, nested
from turnout.routing.passthrough import Passthrough
from turnout.routing.tasks import same_task, task_of


class Pinned(Struct, frozen=True, tag="pinned", tag_field="event"):
    """A target was chosen for this agent. `task`: the user's turn it was chosen in. `fallbacks`: of the choice."""

    target: TargetName
    task: str = ""
    fallbacks: tuple[TargetName, ...] = ()


class AffinityPin(State, frozen=True):
    """The choice an agent of a session stays with; `target` "" while there is none."""

    events: ClassVar[tuple[type[Struct], ...]] = (Pinned,)

    target: TargetName = TargetName("")
    task: str = ""
    fallbacks: tuple[TargetName, ...] = ()

    def after(self, event: Any) -> "AffinityPin":
        """The newest choice counts."""
        return AffinityPin(event.target, event.task, event.fallbacks)


class Affinity(Struct, frozen=True, tag="affinity", tag_field="type", forbid_unknown_fields=True):
    """Keeps each agent of a session on the target that another router chose for it, so that prompt caches stay warm.

    `router`: the router that chooses. `until`: `session` keeps the choice for good (default); `user_turn` asks again whenever
    the user says something new (reminders and other texts of a harness are nothing new).

    Each agent of a session has a pin of its own; a child starts without its parent's. A choice made for want of evidence (a judge
    that could not be asked) or in place of a target that failed is not kept. Without an identity nothing is kept and every turn
    is chosen anew, which its explanation says.
    """

    router: Router
    until: Literal["session", "user_turn"] = "session"

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails."""
        return self.router.otherwise

    def concerns(self) -> list[tuple[str, str]]:
        """What an operator may not expect of these settings: (field, message)."""
        if isinstance(self.router, Passthrough):
            return [("router", "a single target needs no pin")]
        return []

    def route(self, turn: Turn) -> Asking[Decision]:
        """The pinned target, or a new choice."""
        identified = turn.lane.identified
        pin = turn.recall(AffinityPin) if identified else AffinityPin()
        stays = pin.target and (pin.target in turn.targets or not turn.targets)
        if stays and (self.until == "session" or same_task(turn, pin.task)):
            since = "this session" if self.until == "session" else "this task"
            return Forward(pin.target, Why("pin", f"this agent stays with {pin.target} for {since}"), pin.fallbacks)
        decision = yield from nested("router", self.router, turn)
        if not identified:
            sentence = f"{decision.why.sentence}; the turn names no session, so the choice is not kept"
            return msgspec.structs.replace(decision, why=msgspec.structs.replace(decision.why, sentence=sentence))
        if decision.why.abstained or decision.why.source in ("fault", "fallback", "fit"):
            return decision
        fallbacks = decision.fallbacks if isinstance(decision, Forward) else ()
        pinned = Pinned(decision.target, task_of(turn), fallbacks)
        return msgspec.structs.replace(decision, remember=(*decision.remember, pinned))
