"""What the stage router remembers of a lane: who served, and for how long a switch binds."""

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from turnout.routing.core import State

Tier: TypeAlias = Literal["efficient", "capable"]


class StageServed(Struct, frozen=True, omit_defaults=True, tag="stage_served", tag_field="event"):
    """A turn was decided: `tier` serves it. `armed`: hold the capable tier for this many turns more. `held`: the turn used
    one of them up. `released`: the hold is over early. `cool`: after a switch down, how many turns no score may switch up
    again. `cooled`: the turn used one of those up. `calls`: what had failed."""

    tier: Tier
    armed: int = 0
    held: bool = False
    released: bool = False
    calls: tuple[str, ...] = ()
    cool: int = 0
    cooled: bool = False


class StageMemory(State, frozen=True):
    """What the stage router remembers of a lane: the tier that served last (a new lane counts as the efficient one's), the
    turns the capable tier is still held for, the calls whose success ends that early, and the turns left of a cool-off."""

    events: ClassVar[tuple[type[Struct], ...]] = (StageServed,)

    tier: Tier = "efficient"
    hold: int = 0
    calls: tuple[str, ...] = ()
    cool: int = 0

    def after(self, event: Any) -> "StageMemory":
        """The memory after a decided turn."""
        cool = event.cool or (max(self.cool - 1, 0) if event.cooled else self.cool)
        if event.tier == "capable":
            cool = 0
        if event.armed:
            return StageMemory(event.tier, event.armed, event.calls, cool)
        if event.released:
            return StageMemory(event.tier, cool=cool)
        if event.held:
            left = max(self.hold - 1, 0)
            return StageMemory(event.tier, left, self.calls if left else (), cool)
        return StageMemory(event.tier, self.hold, self.calls, cool)
