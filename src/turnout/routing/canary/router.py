"""A sticky share of lanes for a candidate router, the others for the incumbent, until the host says stop."""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from turnout.routing.canary.watching import Watching
from turnout.routing.core import BACKGROUND_AGENT, Asking, Decision, Router, State, TargetName, Turn, nested

Arm: TypeAlias = Literal["candidate", "incumbent"]


class Assigned(Struct, frozen=True, tag="assigned", tag_field="event"):
    """A lane got its arm. `share`: the candidate's when the arm was drawn, 0 when it was not drawn."""

    canary: str
    arm: Arm
    share: float = 0.0


class CanaryArm(State, frozen=True):
    """The arm a lane belongs to; `canary` "" before it has one."""

    events: ClassVar[tuple[type[Struct], ...]] = (Assigned,)

    canary: str = ""
    arm: Arm = "incumbent"
    share: float = 0.0

    def after(self, event: Any) -> "CanaryArm":
        """The first arm of a canary stays; another canary begins anew."""
        return self if self.canary == event.canary else CanaryArm(event.canary, event.arm, event.share)


class Canary(Struct, frozen=True, tag="canary", tag_field="type", forbid_unknown_fields=True):
    """Tries a candidate router on a small share of the work, and stops by itself when the candidate does worse.

    `incumbent`: the router that serves today; its memory is kept as if it stood alone. `candidate`: the router on trial.
    `share`: part of the lanes that the candidate gets, from 0.01 to 0.5 (default 0.05). `name`: of this trial (default
    `canary`); one that was stopped stays stopped, so that another trial needs another name. `watching`: when it stops. `seed`:
    another seed, another draw (default 0).

    A lane is drawn once, when it begins, and then keeps its arm: through a changed share, and through a stop, after which no
    further lane goes to the candidate. Not drawn, and served by the incumbent: turns without a sure identity, background
    calls, and lanes that were under way before.
    """

    incumbent: Router
    candidate: Router
    share: Annotated[float, Meta(ge=0.01, le=0.5)] = 0.05
    name: Annotated[str, Meta(min_length=1)] = "canary"
    watching: Watching = Watching()
    seed: int = 0

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: where the incumbent would send it."""
        return self.incumbent.otherwise

    def concerns(self) -> list[tuple[str, str]]:
        """What an operator may not expect of these settings: (field, message)."""
        if self.candidate == self.incumbent:
            return [("candidate", "both arms are the same: only false alarms can come of it")]
        return []

    def route(self, turn: Turn) -> Asking[Decision]:
        """The decision of the lane's arm."""
        arm = turn.recall(CanaryArm)
        assigned: tuple[Struct, ...] = ()
        if arm.canary != self.name:
            event = Assigned(self.name, *self._drawn(turn))
            arm = arm.after(event)
            if turn.lane.confident:
                assigned = (event,)
        if arm.arm == "candidate":
            decision = yield from nested("candidate", self.candidate, turn)
        else:
            decision = yield from self.incumbent.route(turn)
        if not arm.share:
            return msgspec.structs.replace(decision, remember=(*decision.remember, *assigned)) if assigned else decision
        likely = arm.share if arm.arm == "candidate" else 1.0 - arm.share
        why = decision.why
        values = {**why.values, "canary": {"name": self.name, "arm": arm.arm, "share": arm.share}}
        if arm.arm == "candidate":
            fixed = why.source == "fixed" and why.place == turn.at("candidate").place
            sentence = f"this lane is one of the {arm.share:.3g} that try the candidate; {why.sentence}"
            why = msgspec.structs.replace(
                why, source="canary" if fixed else why.source, sentence=sentence, values=values
            )
        else:
            why = msgspec.structs.replace(why, values=values)
        return msgspec.structs.replace(
            decision, why=why, propensity=likely * decision.propensity, remember=(*decision.remember, *assigned)
        )

    def _drawn(self, turn: Turn) -> tuple[Arm, float]:
        """The arm of a lane that has none yet, and the share it was drawn with."""
        if not turn.lane.confident or turn.lane.agent == BACKGROUND_AGENT or self.name in turn.stopped:
            return "incumbent", 0.0
        if "assistant" in turn.conversation.roles:
            return "incumbent", 0.0
        drawn = turn.draw(f"canary:{self.name}:{self.seed}", per="lane") < self.share
        return ("candidate" if drawn else "incumbent"), self.share
