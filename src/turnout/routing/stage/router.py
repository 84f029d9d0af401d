"""The stage router: the efficient model works, the capable one takes over where the tool results show that it is needed."""

from functools import cached_property
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from turnout.conversation import Edit, Instruction, Note
from turnout.routing.core import Asking, Decision, Forward, Routed, Router, TargetName, Turn, Why, nested
from turnout.routing.stage.choice import FORMULA, Choice, Picker, choose, priced, proposes
from turnout.routing.stage.memory import StageMemory, StageServed, Tier
from turnout.routing.stage.price import Quote, SwitchCosts, quote
from turnout.routing.stage.score import Case, Weights, reach
from turnout.routing.stage.undecided import joined, tier_of
from turnout.routing.stage.words import sentence
from turnout.signals import Progress, Signals, ToolKind, cleared, progress

__all__ = ["Stage", "StageMemory", "StageServed", "SwitchCosts", "Weights"]


class Stage(Struct, frozen=True, dict=True, tag="stage", tag_field="type", forbid_unknown_fields=True):
    """Sends each turn to an efficient or a capable target by what the newest tool results show. Calls no model to decide,
    unless `undecided` names a router that does.

    `efficient`, `capable`: names of the two targets.
    `threshold` 0..1 (default 0.5): how much evidence decides. A score in [-1, 1] sums up the signals by their `weights`. At or
    above `threshold` the capable target serves, at or below its negative the efficient one; in between `picker` decides. With
    the default weights both tiers can be reached at every threshold. For the same threshold the two pickers do not carry the
    same risk.
    `weights`: units of evidence by signal, see `[routes.NAME.weights]`.
    `picker` (default `efficient_first`): who serves undecided turns; `capable_first` is uncalibrated.
    `window` (default 3): how many of the newest tool results count. They never reach back beyond the user's last turn.
    `hold` (default 2): after signals chose the capable target it serves this many turns more, or until the command that failed
    succeeds, tests pass or the user speaks. 0 turns this off. Needs an identified lane.
    `cool_off` (default 2): after a switch down, for this many turns only a rule goes up again, no score and no picker. 0 turns
    this off. Needs an identified lane.
    `switch_price`: when a change of tier is worth its price, see `[routes.NAME.switch_price]`.
    `escalation_note`, `deescalation_note`: a text put at the end of the conversation for the one turn in which signals move the
    work up, or down again (default none).
    `capable_prompt`, `efficient_prompt`: a text put before the instructions whenever that target serves (default none).
    `capable_fallbacks`, `efficient_fallbacks`: targets tried in order when that target fails before the first content.
    `undecided`: a router for turns that the signals leave open, instead of `picker` (default none): a table with a `type` of its
    own. When it abstains, `picker` decides after all. In a cool-off it is not asked.
    `tools`: kinds of tools by name (`read`, `search`, `write`, `edit`, `execute`, `test`, `plan`, `other`) where the built-in
    reading is wrong for yours.

    Four rules go before the score and choose capable: `compaction` (the history was just replaced by a summary),
    `critical_error` (environment or provider broken), `repeated_failure` (the same failure again, uncleared), `relapse` (a hard
    failure right after the work came down, in its cool-off).
    """

    efficient: TargetName
    capable: TargetName
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    weights: Weights = Weights()
    picker: Picker = "efficient_first"
    window: Annotated[int, Meta(ge=1, le=64)] = 3
    hold: Annotated[int, Meta(ge=0, le=1000)] = 2
    cool_off: Annotated[int, Meta(ge=0, le=1000)] = 2
    switch_price: SwitchCosts = SwitchCosts()
    escalation_note: str = ""
    deescalation_note: str = ""
    capable_prompt: str = ""
    efficient_prompt: str = ""
    capable_fallbacks: tuple[TargetName, ...] = ()
    efficient_fallbacks: tuple[TargetName, ...] = ()
    undecided: Router | None = None
    tools: dict[str, ToolKind] = {}

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold: {self.threshold} is not between 0 and 1")
        if not 1 <= self.window <= 64:
            raise ValueError(f"window: {self.window} is not between 1 and 64")
        if self.hold < 0:
            raise ValueError(f"hold: {self.hold} is below 0")
        if self.cool_off < 0:
            raise ValueError(f"cool_off: {self.cool_off} is below 0")
        if any(name != name.lower() for name in self.tools):
            raise ValueError("tools: write tool names in lower case")
        if self.picker == "capable_first" and not self._reached("efficient"):
            raise ValueError(f"{self._unreached('efficient')}, and picker capable_first sends every other turn up")

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: the capable target."""
        return self.capable

    @cached_property
    def basis(self) -> dict[str, Any]:
        """What shapes this router's decisions beside the turn, as kept with each of them."""
        return {
            "formula": FORMULA,
            "efficient": self.efficient,
            "capable": self.capable,
            "weights": asdict(self.weights),
            "picker": self.picker,
            "window": self.window,
            **({"tools": self.tools} if self.tools else {}),
        }

    def concerns(self) -> list[tuple[str, str]]:
        """What an operator may not expect of these settings: (field, message)."""
        found = []
        if not self._reached("capable"):
            rest = "rules alone choose it" if self.picker == "efficient_first" else "it serves undecided turns only"
            found.append(("weights", f"{self._unreached('capable')}; {rest}"))
        if not self._reached("efficient"):
            found.append(("weights", f"{self._unreached('efficient')}; it serves undecided turns only"))
        return found

    def _reached(self, tier: Tier) -> bool:
        furthest = getattr(reach(self.weights, self.window), tier)
        return bool(furthest) and furthest >= self.threshold

    def _unreached(self, tier: Tier) -> str:
        furthest = getattr(reach(self.weights, self.window), tier)
        return (
            f"weights: the {tier} tier can never be chosen by its score, which reaches {furthest:.2f} at most with these "
            f"weights and window {self.window}, below threshold {self.threshold:g}"
        )

    def route(self, turn: Turn) -> Routed:
        """The tier for this turn. Asks nothing itself."""
        signals = turn.signals
        seen = progress(signals, self.window, self.tools or None)
        memory = turn.recall(StageMemory) if turn.lane.identified else StageMemory()
        case = self._case(signals, seen, memory)
        choice = choose(case, self.weights, self.threshold, self.picker)
        if self.undecided is not None and choice.source == "default" and not case.cool:
            return self._asked(self.undecided, turn, seen, case, choice, memory)
        return self._weighed(turn, seen, case, choice, memory)

    def _asked(
        self, router: Router, turn: Turn, seen: Progress, case: Case, choice: Choice, memory: StageMemory
    ) -> Asking[Decision]:
        """The tier that the router for undecided turns chose."""
        decision = yield from nested("undecided", router, turn)
        tier = tier_of(decision, self.efficient, self.capable)
        if tier is not None:
            choice = replace(choice, tier=tier)
        return joined(self._weighed(turn, seen, case, choice, memory), decision, tier)

    def _weighed(self, turn: Turn, seen: Progress, case: Case, choice: Choice, memory: StageMemory) -> Forward:
        """The decision, a change of tier only if it is worth its price."""
        asked = None
        if turn.lane.identified and self.switch_price.on and proposes(choice, case):
            asked = self._quote(turn, choice.tier)
            choice = priced(choice, case, asked)
        return self._forward(turn, seen, case, choice, memory, asked)

    def _quote(self, turn: Turn, to: Tier) -> Quote | None:
        stay, go = (self.efficient, self.capable) if to == "capable" else (self.capable, self.efficient)
        return quote(turn, stay, go, to, self.switch_price, self.hold + 1)

    def _case(self, signals: Signals, seen: Progress, memory: StageMemory) -> Case:
        newest = 0.0
        if seen.severity and signals.observations[-1].error_class != "none":
            newest = seen.severity if seen.results == 1 else progress(signals, 1, self.tools or None).severity
        again = seen.repeated_calls
        if again and seen.evidence["repeated_calls"][-1].message < signals.observations[-seen.results].message:
            again = 0  # the work has moved on since
        return Case(
            severity=seen.severity,
            newest=newest,
            persistence=seen.persistence,
            complaint=seen.complaint,
            spinning=seen.spinning,
            stall=seen.stall,
            repeated_calls=again,
            exploring=seen.exploring,
            production=seen.production,
            tests_passed=seen.tests_passed,
            trend=seen.trend,
            repeated=seen.repeated,
            compaction=seen.compaction,
            hold=memory.hold,
            over=memory.hold > 0 and _over(memory, signals, seen),
            cool=memory.cool,
            before=memory.tier,
        )

    def _forward(
        self, turn: Turn, seen: Progress, case: Case, choice: Choice, memory: StageMemory, asked: Quote | None
    ) -> Forward:
        tier, up = choice.tier, choice.tier == "capable"
        known = turn.lane.identified
        return Forward(
            target=self.capable if up else self.efficient,
            why=Why(
                choice.source,
                sentence(choice, seen, turn.signals, case, self.picker, asked),
                choice.rule,
                choice.score,
                abs(choice.score),
                self.threshold,
                _values(case, seen, turn.signals),
                self.basis,
                price=asdict(asked) if asked is not None else {},
            ),
            fallbacks=self.capable_fallbacks if up else self.efficient_fallbacks,
            edits=self._edits(tier, memory.tier if known else "", choice.source in ("override", "signals")),
            remember=self._remember(turn.signals, case, choice) if known else (),
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

    def _remember(self, signals: Signals, case: Case, choice: Choice) -> tuple[Struct, ...]:
        tier = choice.tier
        armed = self.hold if tier == "capable" and choice.source in ("override", "signals") else 0
        held = case.hold > 0 and not case.over
        released = case.hold > 0 and case.over
        down = case.before == "capable" and tier == "efficient"
        cooled = case.cool > 0 and tier == "efficient"
        if not armed and not held and not released and not cooled and case.before == tier:
            return ()
        calls: tuple[str, ...] = ()
        if armed:
            recent = signals.observations[-self.window :]
            calls = tuple(dict.fromkeys(o.call for o in recent if o.fingerprint and o.call))
        return (StageServed(tier, armed, held, released, calls, self.cool_off if down else 0, cooled),)


def _over(memory: StageMemory, signals: Signals, seen: Progress) -> bool:
    """Whether a hold ends early: the user spoke, tests pass, or what had failed went well."""
    if signals.user_turn or seen.tests_passed:
        return True
    if not memory.calls or seen.severity:
        return False
    failed = {o.call: i for i, o in enumerate(signals.observations) if o.status == "failed" and o.call in memory.calls}
    return bool(failed) and all(
        cleared(signals.observations[i], signals.observations[i + 1 :]) for i in failed.values()
    )


def _values(case: Case, seen: Progress, signals: Signals) -> dict[str, Any]:
    return {
        **asdict(case),
        "error_kind": seen.kind,
        "failures": seen.failures,
        "depth": signals.depth,
        "compacted": signals.compacted,
        "user_turn": signals.user_turn,
        "results": seen.results,
    }
