"""Delegated work, background calls and the agent's own work, each by a policy of its own."""

import fnmatch

import msgspec
from msgspec import Struct

from turnout.routing.core import (
    BACKGROUND_AGENT,
    UNNAMED_CHILD,
    Asking,
    Decision,
    Lane,
    Routed,
    Router,
    Source,
    TargetName,
    Turn,
    nested,
)


class ByAgent(Struct, frozen=True, tag="by_agent", tag_field="type"):
    """Asks one of up to three routers, by whose turn it is. A route with `subagents` or `background` is one of these.

    `main`: the agent's own work; its memory is kept as if it stood alone. `subagents`: delegated work. `background`: titles,
    summaries and the like. `small_models`: names (patterns with * allowed) by which an agent asks for its small model: such
    turns are background too. Without a policy for its kind, a turn is decided by `main`.
    """

    main: Router
    subagents: Router | None = None
    background: Router | None = None
    small_models: tuple[str, ...] = ()

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: where the agent's own work would go."""
        return self.main.otherwise

    def route(self, turn: Turn) -> Routed:
        """The decision of the policy for this kind of agent."""
        kind = turn.agent.kind
        if kind == "subagent" and self.subagents is not None:
            return _delegated(self.main, self.subagents, turn)
        if self.background is not None and (
            (kind == "background" and turn.lane.agent == BACKGROUND_AGENT) or self._small(turn.asked_for)
        ):
            return _apart("background", self.background, turn)
        return self.main.route(turn)

    def _small(self, asked_for: str) -> bool:
        return bool(self.small_models) and any(fnmatch.fnmatchcase(asked_for, one) for one in self.small_models)


_SAYS: dict[str, tuple[Source, str]] = {
    "subagents": ("subagent", "delegated work has a policy of its own"),
    "background": ("background", "background calls have a policy of their own"),
}


def _apart(place: str, policy: Router, turn: Turn) -> Asking[Decision]:
    """The policy's decision; a fixed one is labelled by whose turn it is."""
    decision = yield from nested(place, policy, turn)
    source, says = _SAYS[place]
    why = decision.why
    fixed = why.source == "fixed" and why.place == turn.at(place).place
    sentence = f"{says}: {decision.target}" if fixed else f"{says}: {why.sentence}"
    why = msgspec.structs.replace(why, source=source if fixed else why.source, sentence=sentence)
    return msgspec.structs.replace(decision, why=why)


def _delegated(main: Router, policy: Router, turn: Turn) -> Asking[Decision]:
    """A child's turn. One that names no agent is not told from its siblings: it neither reads a memory nor leaves any."""
    if turn.lane.identified and turn.lane.agent != UNNAMED_CHILD:
        return (yield from _apart("subagents", policy, turn))
    stranger = msgspec.structs.replace(turn, lane=Lane(turn.lane.tenant), memory={})
    decision: Decision = yield from main.route(stranger)
    why = decision.why
    sentence = f"the turn is delegated work but names no agent, so the policy for sub-agents abstained; {why.sentence}"
    why = msgspec.structs.replace(why, sentence=sentence, values={**why.values, "agent_unnamed": True})
    return msgspec.structs.replace(decision, why=why, remember=())
