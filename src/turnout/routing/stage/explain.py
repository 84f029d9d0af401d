"""A stage decision taken apart: every signal with where it was seen, what was weighed, and what would have changed it.

All of it is made from what is kept with the turn, when somebody asks; nothing of it is computed while deciding.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.routing.core import Source, TargetFacts, TargetName, Why
from turnout.routing.stage.choice import COMPACTED, CRITICAL, FORMULA, REPEATED, Choice, Picker, choose, priced
from turnout.routing.stage.memory import Tier
from turnout.routing.stage.price import Option, Quote, options
from turnout.routing.stage.score import DOWN, GAIN, HARD, UP, Case, Term, Weights, needed, reach, terms
from turnout.routing.warmth import KEY, Warmth
from turnout.signals import Progress, Signals, progress

_PRECISE = 1e-6
"""How closely a change is found, of the range it is looked for in."""


class Origin(Struct, frozen=True):
    """Where a signal was seen: the message and the part in it, and, where the result is still kept, the tool that gave it, what
    it was used on, its status and the line that tells."""

    message: int
    part: int = 0
    tool: str = ""
    target: str = ""
    status: str = ""
    text: str = ""


class Weighed(Struct, frozen=True):
    """A `Term` of the evidence with its origins."""

    signal: str
    value: float
    share: float
    weight: float
    product: float
    outdone: bool
    seen: tuple[Origin, ...] = ()


class Rule(Struct, frozen=True):
    """A rule that goes before the score: the signal it looks at, the value from which it fires, and whether it held."""

    rule: str
    signal: str
    value: float
    fires_from: float
    held: bool
    seen: tuple[Origin, ...] = ()


class Change(Struct, frozen=True):
    """What would have changed the tier: `input` at `then` instead of `now`, all else equal. `size`: the change as a share of
    the input's range. The rest: the decision it would have been."""

    input: str
    now: float
    then: float
    size: float
    tier: Tier
    source: Source
    rule: str = ""


class Explained(Struct, frozen=True):
    """A stage decision with all its reasons.

    `evidence`: the sum of the products, in units; `score`: tanh(`gain` x evidence) / tanh(`gain` x `limit`). `needs`: the
    units from which the capable tier, and to which (negative) the efficient one, is chosen by the score; None = out of
    reach. `changes`: the smallest change of each input that changes the tier, smallest first. `same`: deciding again from the
    record gives the recorded decision.
    """

    formula: str
    tier: Tier
    source: Source
    rule: str
    terms: tuple[Weighed, ...]
    evidence: float
    gain: float
    limit: float
    score: float
    threshold: float
    needs: dict[Tier, float | None]
    rules: tuple[Rule, ...]
    hold: int
    cool_off: int
    options: tuple[Option, ...]
    price: Quote | None
    changes: tuple[Change, ...]
    same: bool


class _Record(Struct, frozen=True):
    """A decision's inputs as they were kept."""

    case: Case
    weights: Weights
    threshold: float
    picker: Picker
    quote: Quote | None
    undecided: Tier | None = None

    def decide(self) -> Choice:
        choice = choose(self.case, self.weights, self.threshold, self.picker)
        if self.undecided is not None and choice.source == "default":
            choice = replace(choice, tier=self.undecided)
        return priced(choice, self.case, self.quote)


def explain(
    why: Why,
    signals: Signals | None = None,
    memory: Mapping[str, Any] | None = None,
    targets: Mapping[TargetName, TargetFacts] | None = None,
    now: float = 0.0,
) -> Explained | None:
    """The decision behind `why`, taken apart; None when the stage router, in this edition, did not make it.

    `signals`: for where things were seen. `memory`, `targets`, `now`: the lane's states, the targets' prices and Unix seconds,
    for what each option costs.
    """
    if why.basis.get("formula") != FORMULA:
        return None
    record = _recorded(why)
    choice = record.decide()
    case = record.case
    # What the router for undecided turns said is taken from the record; the rest is made again.
    asked = record.undecided is not None and choice.source == "default"
    origins = _origins(signals, why.basis)
    found = terms(case, record.weights)
    return Explained(
        formula=FORMULA,
        tier=choice.tier,
        source=why.source if asked else choice.source,
        rule=why.rule if asked else choice.rule,
        terms=tuple(_weighed(term, origins) for term in found),
        evidence=choice.evidence,
        gain=GAIN,
        limit=UP if choice.evidence > 0 else -DOWN,
        score=choice.score,
        threshold=record.threshold,
        needs=_needs(record, why.basis["window"]),
        rules=_rules(case, origins),
        hold=case.hold,
        cool_off=case.cool,
        options=_options(why.basis, memory or {}, targets or {}, now),
        price=record.quote,
        changes=_changes(record, choice),
        same=(asked or (choice.source, choice.rule) == (why.source, why.rule)) and choice.score == why.score,
    )


def again(why: Why) -> Choice:
    """The decision made again from what was kept with it."""
    return _recorded(why).decide()


def _recorded(why: Why) -> _Record:
    fields = {name: why.values[name] for name in Case.__struct_fields__}
    return _Record(
        msgspec.convert(fields, Case),
        msgspec.convert(why.basis["weights"], Weights),
        why.threshold or 0.0,
        why.basis["picker"],
        msgspec.convert(why.price, Quote) if why.price else None,
        why.values.get("undecided"),
    )


def _needs(record: _Record, window: int) -> dict[Tier, float | None]:
    far = reach(record.weights, window)
    up, down = record.threshold, record.threshold
    return {
        "capable": needed(up) if far.capable >= up else None,
        "efficient": needed(-down) if far.efficient >= down else None,
    }


def _origins(signals: Signals | None, basis: Mapping[str, Any]) -> dict[str, tuple[Origin, ...]]:
    """Where each signal was seen, by its name."""
    if signals is None:
        return {}
    seen: Progress = progress(signals, basis["window"], basis.get("tools"))
    kept = {(o.message, o.part): o for o in signals.observations}
    found = {}
    for name, places in seen.evidence.items():
        origins = []
        for place in places:
            o = kept.get((place.message, place.part))
            if o is None:
                origins.append(Origin(place.message, place.part))
            else:
                origins.append(Origin(o.message, o.part, o.tool, o.target, o.status, o.evidence_text))
        found[name] = tuple(origins)
    if signals.observations and seen.severity:
        o = signals.observations[-1]
        found["newest"] = (Origin(o.message, o.part, o.tool, o.target, o.status, o.evidence_text),)
    return found


def _weighed(term: Term, origins: Mapping[str, tuple[Origin, ...]]) -> Weighed:
    seen = origins.get(term.signal, ()) if term.value else ()
    return Weighed(term.signal, term.value, term.share, term.weight, term.product, term.outdone, seen)


def _rules(case: Case, origins: Mapping[str, tuple[Origin, ...]]) -> tuple[Rule, ...]:
    looked_at = (
        ("compaction", "compaction", case.compaction, COMPACTED, case.compaction >= COMPACTED),
        ("critical_error", "severity", case.severity, CRITICAL, case.severity >= CRITICAL),
        ("repeated_failure", "repeated", float(case.repeated), float(REPEATED), case.repeated >= REPEATED),
        ("relapse", "newest", case.newest, HARD, bool(case.cool) and case.newest >= HARD),
    )
    return tuple(Rule(*rule, origins.get(rule[1], ()) if rule[2] else ()) for rule in looked_at)


def _options(
    basis: Mapping[str, Any], memory: Mapping[str, Any], targets: Mapping[TargetName, TargetFacts], now: float
) -> tuple[Option, ...]:
    state = memory.get(KEY)
    names: dict[Tier, TargetName] = {"efficient": basis["efficient"], "capable": basis["capable"]}
    facts = {tier: targets[name] for tier, name in names.items() if name in targets}
    if state is None or not facts:
        return ()
    return options(state if isinstance(state, Warmth) else msgspec.convert(state, Warmth), facts, now)


_LEVELS = ("persistence", "complaint", "spinning", "stall", "exploring", "production")
_COUNTS = (("repeated_calls", 6), ("repeated", 3), ("hold", 1), ("cool", 1))


def _changes(record: _Record, choice: Choice) -> tuple[Change, ...]:
    """For every input the smallest change that gives the other tier, found by deciding again."""
    found: list[Change] = []

    def look(
        name: str, now: float, ends: tuple[float, ...], made: Callable[[float], _Record], whole: bool = False
    ) -> None:
        span = max(abs(end - now) for end in ends) or 1.0
        best: Change | None = None
        for end in ends:
            then = _nearest(now, end, lambda value: made(value).decide().tier != choice.tier, whole)
            if then is not None and (best is None or abs(then - now) < abs(best.then - now)):
                other = made(then).decide()
                best = Change(name, now, then, abs(then - now) / span, other.tier, other.source, other.rule)
        if best is not None:
            found.append(best)

    case = record.case

    def with_case(**fields: Any) -> _Record:
        return replace(record, case=replace(case, **fields))

    def severity(value: float) -> _Record:
        return with_case(severity=value, newest=min(case.newest, value))

    def newest(value: float) -> _Record:
        return with_case(newest=value, severity=max(case.severity, value))

    look("threshold", record.threshold, (0.0, 1.0), lambda value: replace(record, threshold=value))
    look("severity", case.severity, (0.0, CRITICAL), severity)
    look("newest", case.newest, (0.0, CRITICAL), newest)
    for name in _LEVELS:
        look(name, getattr(case, name), (0.0, 1.0), lambda value, name=name: with_case(**{name: value}))  # type: ignore[misc]
    look("trend", case.trend, (-1.0, 1.0), lambda value: with_case(trend=value))
    look("compaction", case.compaction, (0.0, 1.0), lambda value: with_case(compaction=value))
    look("tests_passed", float(case.tests_passed), (0.0, 1.0), lambda value: with_case(tests_passed=value >= 1.0), True)
    for name, most in _COUNTS:
        ends = (0.0, float(max(most, getattr(case, name))))
        look(name, getattr(case, name), ends, lambda value, name=name: with_case(**{name: int(value)}), True)  # type: ignore[misc]
    asked = record.quote
    if asked is not None and asked.cost_usd is not None:
        least = 0.0 if asked.to == "capable" else -abs(asked.cost_usd)
        ends = (least, 10.0 * abs(asked.cost_usd))
        look("cost_usd", asked.cost_usd, ends, lambda value: replace(record, quote=replace(asked, cost_usd=value)))
    return tuple(sorted(found, key=lambda change: change.size))


def _nearest(now: float, end: float, other: Callable[[float], bool], whole: bool) -> float | None:
    """The value nearest to `now` on the way to `end` where `other` holds; None when it does not at the end. The decision
    changes at most once on the way, or the first change is what a search by halves comes to."""
    if now == end or not other(end):
        return None
    if whole:
        step = 1 if end > now else -1
        return next((float(value) for value in range(int(now) + step, int(end) + step, step) if other(value)), None)
    near, far = now, end
    while abs(far - near) > _PRECISE * max(abs(end - now), 1e-12):
        middle = (near + far) / 2
        if other(middle):
            far = middle
        else:
            near = middle
    return far
