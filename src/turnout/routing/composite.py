"""Several routers in order: the first that takes the turn and has something to go by decides."""

import fnmatch
from typing import Literal

import msgspec
from msgspec import Struct

from turnout.routing.core import Asking, Decision, Router, TargetName, Turn, nested


class Member(Struct, frozen=True, forbid_unknown_fields=True):
    """One router of a composite, and which turns it takes; all that is given must hold.

    `router`: the router, or the name of a target. `name`: by which its memory is kept and decisions are explained (default: its
    type); names must differ. `agents`: kinds of agents (`main`, `subagent`, `background`). `programs`: agents' programs
    (`claude-code`, `codex`, `opencode`). `tenants`: names of tenants. `models`: model names the client asked for, with * for any
    text. `user_turn`: true takes only turns that begin with something new of the user's, false only those that go on with tool
    results.
    """

    router: Router
    name: str = ""
    agents: tuple[Literal["main", "subagent", "background"], ...] = ()
    programs: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    user_turn: bool | None = None

    @property
    def place(self) -> str:
        """Where the router's memory is kept."""
        return self.name or str(self.router.__struct_config__.tag)  # type: ignore[attr-defined]  # routers are structs

    @property
    def conditional(self) -> bool:
        """Whether there are turns it does not take."""
        return bool(self.agents or self.programs or self.tenants or self.models) or self.user_turn is not None

    def takes(self, turn: Turn) -> bool:
        """Whether the turn is one of its own."""
        if not self.conditional:
            return True
        agent = turn.agent
        return (
            (not self.agents or agent.kind in self.agents)
            and (not self.programs or agent.program in self.programs)
            and (not self.tenants or turn.lane.tenant in self.tenants)
            and (not self.models or any(fnmatch.fnmatchcase(turn.asked_for, model) for model in self.models))
            and (self.user_turn is None or self.user_turn == turn.signals.user_turn)
        )


class Composite(Struct, frozen=True, tag="composite", tag_field="type", forbid_unknown_fields=True):
    """Asks routers in order; the first that takes the turn and has something to go by decides.

    `routers`: the routers, each a table `[[routes.NAME.routers]]`; the last one takes every turn. A router that abstains (a
    classifier without a usable verdict) leaves the turn to those after it; the last one's word stands in any case.
    """

    routers: tuple[Member, ...]

    def __post_init__(self) -> None:
        if not self.routers:
            raise ValueError("routers: name at least one router")
        if self.routers[-1].conditional:
            raise ValueError("routers: the last router must take every turn; leave its conditions out, or add one more")
        seen: set[str] = set()
        for place in [member.place for member in self.routers]:
            if not place or "/" in place:
                raise ValueError(f"routers: {place!r} is no name; a name may not be blank or hold a /")
            if place in seen:
                raise ValueError(f"routers: two are called {place}; give each a `name`, by which its memory is kept")
            seen.add(place)

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: where the last router would send it."""
        return self.routers[-1].router.otherwise

    def route(self, turn: Turn) -> Asking[Decision]:
        """The decision of the first router that takes the turn and does not abstain."""
        passed: list[str] = []
        left: tuple[Struct, ...] = ()
        for member in self.routers[:-1]:
            if member.takes(turn):
                decision = yield from nested(member.place, member.router, turn)
                if not decision.why.abstained:
                    return _told(decision, passed, left)
                passed.append(f"{member.place} abstained ({decision.why.sentence})")
                left = (*left, *decision.remember)
        last = self.routers[-1]
        return _told((yield from nested(last.place, last.router, turn)), passed, left)


def _told(decision: Decision, passed: list[str], left: tuple[Struct, ...]) -> Decision:
    """The decision, told together with who abstained before it, and with what those leave."""
    if not passed:
        return decision
    why = msgspec.structs.replace(decision.why, sentence="; ".join([*passed, decision.why.sentence]))
    return msgspec.structs.replace(decision, why=why, remember=(*left, *decision.remember))
