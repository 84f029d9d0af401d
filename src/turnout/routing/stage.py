"""The stage router: the efficient model works, the capable one takes over where the tool results show that it is needed."""

import math
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Meta, Struct

from turnout.conversation import Edit, Instruction, Note
from turnout.routing.core import Forward, Source, State, TargetName, Turn, Why
from turnout.routing.stage_words import sentence
from turnout.signals import Progress, Signals, ToolKind, cleared, progress

Tier: TypeAlias = Literal["efficient", "capable"]

GAIN = 0.4
"""How steeply evidence adds up."""
UP, DOWN = 3.0, 2.0
"""The most evidence there can be for the capable tier (a hard failure, persistence, a stall) and for the efficient one
(production, green tests)."""


class StageServed(Struct, frozen=True, tag="stage_served", tag_field="event"):
    """A turn was decided: `tier` serves it. `armed`: hold the capable tier for this many turns more. `held`: the turn used
    one of them up. `released`: the hold is over early. `signal`: signals or an override decided. `calls`: what had failed."""

    tier: Tier
    armed: int = 0
    held: bool = False
    released: bool = False
    calls: tuple[str, ...] = ()


class StageMemory(State, frozen=True):
    """What the stage router remembers of a lane: the tier that served last (a new lane counts as the efficient one's), the
    turns the capable tier is still held for, and the calls whose success ends that early."""

    events: ClassVar[tuple[type[Struct], ...]] = (StageServed,)

    tier: Tier = "efficient"
    hold: int = 0
    calls: tuple[str, ...] = ()

    def after(self, event: Any) -> "StageMemory":
        """The memory after a decided turn."""
        if event.armed:
            return StageMemory(event.tier, event.armed, event.calls)
        if event.released:
            return StageMemory(event.tier)
        if event.held:
            left = max(self.hold - 1, 0)
            return StageMemory(event.tier, left, self.calls if left else ())
        return StageMemory(event.tier, self.hold, self.calls)


def score(p: Progress) -> float:
    """Evidence in [-1, 1], positive for the capable tier.

    raw = severity / 0.7 (at most 1) + persistence + the largest of spinning, exploring and stall - production - tests passed;
    score = tanh(0.4 raw) / tanh(0.4 limit), where limit is the most raw can be on that side: 3 up, 2 down. So each side
    reaches exactly 1, and both tiers are reachable at every threshold. One hard failure alone scores 0.46, two 0.64 and up,
    a hard failure in a stall 0.80; a window of nothing but verified changes -0.57, with green tests -1.
    """
    raw = (
        min(p.severity / 0.7, 1.0)
        + p.persistence
        + max(p.spinning, p.exploring, p.stall)
        - p.production
        - p.tests_passed
    )
    return max(-1.0, min(1.0, math.tanh(GAIN * raw) / math.tanh(GAIN * (UP if raw > 0 else DOWN))))


class Stage(Struct, frozen=True, tag="stage", tag_field="type", forbid_unknown_fields=True):
    """Sends each turn to an efficient or a capable target by what the newest tool results show. Calls no model to decide.

    `efficient`, `capable`: names of the two targets.
    `threshold` 0..1 (default 0.5): how much evidence decides. A score in [-1, 1] sums up the window: failures that nothing has
    cleared, their persistence and stalls speak for capable; verified changes and green tests for efficient. At or above
    `threshold` the capable target serves, at or below its negative the efficient one; in between `picker` decides. Each side
    is scaled by the most it can reach, so both tiers can be reached at every threshold. For the same threshold the two pickers
    do not carry the same risk.
    `picker` (default `efficient_first`): who serves undecided turns; `capable_first` is uncalibrated.
    `window` (default 3): how many of the newest tool results count. They never reach back beyond the user's last turn.
    `hold` (default 2): after signals chose the capable target it serves this many turns more, or until the command that failed
    succeeds, tests pass or the user speaks. 0 turns this off. Needs an identified lane.
    `escalation_note`, `deescalation_note`: a text put at the end of the conversation for the one turn in which signals move the
    work up, or down again (default none).
    `capable_prompt`, `efficient_prompt`: a text put before the instructions whenever that target serves (default none).
    `capable_fallbacks`, `efficient_fallbacks`: targets tried in order when that target fails before the first content.
    `tools`: kinds of tools by name (`read`, `search`, `write`, `edit`, `execute`, `test`, `plan`, `other`) where the built-in
    reading is wrong for yours.

    Three rules go before the score and choose capable: `compaction` (the history was just replaced by a summary),
    `critical_error` (environment or provider broken), `repeated_failure` (the same failure at least twice in the window, or
    three times lately, uncleared).
    """

    efficient: TargetName
    capable: TargetName
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    picker: Literal["efficient_first", "capable_first"] = "efficient_first"
    window: Annotated[int, Meta(ge=1, le=64)] = 3
    hold: Annotated[int, Meta(ge=0, le=1000)] = 2
    escalation_note: str = ""
    deescalation_note: str = ""
    capable_prompt: str = ""
    efficient_prompt: str = ""
    capable_fallbacks: tuple[TargetName, ...] = ()
    efficient_fallbacks: tuple[TargetName, ...] = ()
    tools: dict[str, ToolKind] = {}

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold: {self.threshold} is not between 0 and 1")
        if not 1 <= self.window <= 64:
            raise ValueError(f"window: {self.window} is not between 1 and 64")
        if self.hold < 0:
            raise ValueError(f"hold: {self.hold} is below 0")
        if any(name != name.lower() for name in self.tools):
            raise ValueError("tools: write tool names in lower case")

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: the capable target."""
        return self.capable

    def route(self, turn: Turn) -> Forward:
        """The tier for this turn. Asks nothing."""
        signals = turn.signals
        seen = progress(signals, self.window, self.tools or None)
        memory = turn.recall(StageMemory) if turn.lane.identified else StageMemory()
        value = score(seen)
        held = memory.hold > 0
        released = held and self._over(memory, signals, seen)
        if held and not released:
            return self._forward(turn, seen, value, memory, "capable", "hold", "", held=True)
        rule = self._rule(signals, seen)
        if rule:
            return self._forward(turn, seen, value, memory, "capable", "override", rule, released=released)
        if value and abs(value) >= self.threshold:
            tier: Tier = "capable" if value > 0 else "efficient"
            return self._forward(turn, seen, value, memory, tier, "signals", "", released=released)
        tier = "efficient" if self.picker == "efficient_first" else "capable"
        return self._forward(turn, seen, value, memory, tier, "default", "", released=released)

    def _rule(self, signals: Signals, seen: Progress) -> str:
        if signals.compacted and signals.depth < self.window:
            return "compaction"
        if seen.severity >= 1.0:
            return "critical_error"
        return "repeated_failure" if seen.repeated else ""

    def _over(self, memory: StageMemory, signals: Signals, seen: Progress) -> bool:
        """Whether a hold ends early: the user spoke, tests pass, or what had failed went well."""
        if signals.user_turn or seen.tests_passed:
            return True
        if not memory.calls or seen.severity:
            return False
        failed = {
            o.call: i for i, o in enumerate(signals.observations) if o.status == "failed" and o.call in memory.calls
        }
        return bool(failed) and all(
            cleared(signals.observations[i], signals.observations[i + 1 :]) for i in failed.values()
        )

    def _forward(
        self,
        turn: Turn,
        seen: Progress,
        value: float,
        memory: StageMemory,
        tier: Tier,
        source: Source,
        rule: str,
        *,
        held: bool = False,
        released: bool = False,
    ) -> Forward:
        signalled = source in ("override", "signals")
        armed = self.hold if signalled and tier == "capable" else 0
        up = tier == "capable"
        return Forward(
            target=self.capable if up else self.efficient,
            why=Why(
                source,
                sentence(source, rule, tier, seen, turn.signals, memory.hold, self.picker),
                rule,
                value,
                abs(value),
                self.threshold,
                _values(turn.signals, seen, memory.hold),
            ),
            fallbacks=self.capable_fallbacks if up else self.efficient_fallbacks,
            edits=self._edits(tier, memory.tier if turn.lane.identified else "", signalled),
            remember=self._remember(turn, tier, memory, armed, held, released) if turn.lane.identified else (),
        )

    def _edits(self, tier: Tier, before: str, signalled: bool) -> tuple[Edit, ...]:
        edits: list[Edit] = []
        prompt = self.capable_prompt if tier == "capable" else self.efficient_prompt
        if prompt:
            edits.append(Instruction(prompt))
        note = self.escalation_note if tier == "capable" else self.deescalation_note
        if note and signalled and before and before != tier:
            edits.append(Note(note))
        return tuple(edits)

    def _remember(
        self, turn: Turn, tier: Tier, memory: StageMemory, armed: int, held: bool, released: bool
    ) -> tuple[Struct, ...]:
        if not armed and not held and not released and memory.tier == tier:
            return ()
        calls: tuple[str, ...] = ()
        if armed:
            recent = turn.signals.observations[-self.window :]
            calls = tuple(dict.fromkeys(o.call for o in recent if o.fingerprint and o.call))
        return (StageServed(tier, armed, held, released, calls),)


def _values(signals: Signals, seen: Progress, hold: int) -> dict[str, Any]:
    return {
        "severity": seen.severity,
        "error_kind": seen.kind,
        "failures": seen.failures,
        "persistence": seen.persistence,
        "repeated": seen.repeated,
        "spinning": seen.spinning,
        "exploring": seen.exploring,
        "production": seen.production,
        "tests_passed": seen.tests_passed,
        "depth": signals.depth,
        "compacted": signals.compacted,
        "user_turn": signals.user_turn,
        "results": seen.results,
        "hold": hold,
    }
