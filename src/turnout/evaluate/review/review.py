"""The review: every condition measured on the period, what it says, and whether to go back to one model. Pure."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.evaluate.review.conditions import (
    MEASURES,
    Answer,
    Condition,
    Conditions,
    CountedAs,
    Measure,
    Source,
    answer,
)
from turnout.evaluate.review.evidence import Evidence
from turnout.evaluate.review.measures import Drawn, Measured, Side
from turnout.pages.digest import digest
from turnout.statistics.bootstrap import RESAMPLES, SEED

WEEK_S = 7 * 86400.0
Outcome: TypeAlias = Literal["go back", "stay", "undecided"]
EvidenceOf: TypeAlias = Callable[[Source, float, float], Evidence]
"""The evidence of a source in a period, from and to in Unix seconds."""

WORDS: dict[Source, str] = {
    "trials": "tasks that both did",
    "canary": "lanes of the canary",
    "logged": "runs that dice chose",
    "turns": "turns of the route",
}


class Checked(Struct, frozen=True):
    """A condition and what was found. `bound`: with `side`, `above` or `below`. `n`: tasks, lanes or sessions, of the side that
    has fewer. `answer`: what the figure says; `counted`: as what it counts; `reason`: why there is not enough data, else "".
    `rows`: that the figure was made from, in `source`; `rows_digest`: over their keys, in order."""

    name: str
    measure: Measure
    side: Literal["above", "below"]
    bound: float
    value: float | None
    low: float | None
    high: float | None
    confidence: float
    by: str
    n: int
    at_least: int
    answer: Answer
    counted: CountedAs
    reason: str
    source: Source
    rows: int
    rows_digest: str
    note: str = ""


class Review(Struct, frozen=True):
    """`outcome`: whether to go back to `against`. `since`, `until`: ISO 8601, UTC. `sources`: what there was to measure on;
    `sides`: of those that compare, the one model (`capable`) and the router (`routed`), each by itself."""

    verdict: str
    outcome: Outcome
    route: str
    against: str
    since: str
    until: str
    go_back_when: str
    checked: tuple[Checked, ...]
    sources: dict[str, str]
    sides: dict[Source, dict[str, Side]]
    measures: dict[str, str]
    method: str


METHOD = (
    "a condition holds when the whole interval of its measure is beyond the bound, and does not when none of it is; intervals "
    "are percentile bootstraps over tasks, lanes or sessions ({resamples:,} resamples, seed {seed}), Wilson's where all are alike"
)


def review(
    conditions: Conditions,
    against: str,
    evidence_of: EvidenceOf,
    period: tuple[float, float],
    first: float | None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[Review, tuple[Evidence, ...]]:
    """Check all conditions, and give the evidence of the period. `against`: the one model. `first`: when the oldest record was
    made, None without any; reviews before it would have been of nothing, and do not count as undecided."""
    checker = _Checker(conditions, evidence_of, period, first, resamples, seed)
    checked = tuple(checker.checked(name, one) for name, one in conditions.conditions.items())
    outcome = _outcome(conditions, checked)
    drawn = [checker.drawn(source, *period) for source in checker.sources()]
    evidence = tuple(one.evidence for one in drawn)
    found = Review(
        verdict=_verdict(outcome, checked, against, conditions.go_back_when),
        outcome=outcome,
        route=conditions.route,
        against=against,
        since=_iso(period[0]),
        until=_iso(period[1]),
        go_back_when=conditions.go_back_when,
        checked=checked,
        sources={one.source: one.reason or f"{len(one.rows):,} {WORDS[one.source]}" for one in evidence},
        sides={
            one.evidence.source: one.sides() for one in drawn if one.evidence.rows and one.evidence.source != "turns"
        },
        measures={name: MEASURES[name] for name in dict.fromkeys(one.measure for one in checked)},
        method=METHOD.format(resamples=resamples, seed=seed),
    )
    return found, evidence


class _Checker:
    def __init__(
        self,
        conditions: Conditions,
        evidence_of: EvidenceOf,
        period: tuple[float, float],
        first: float | None,
        resamples: int,
        seed: int,
    ) -> None:
        self._conditions = conditions
        self._evidence_of = evidence_of
        self._period = period
        self._first = first
        self._dice = resamples, seed
        self._drawn: dict[tuple[Source, float, float], Drawn] = {}

    def sources(self) -> list[Source]:
        """What the conditions are measured on, each once."""
        named = [self._conditions.source_of(one) for one in self._conditions.conditions.values() if not one.of]
        return list(dict.fromkeys(source for source in named if source is not None))

    def drawn(self, source: Source, start: float, end: float) -> Drawn:
        """The evidence of a period with its draws, made once."""
        key = (source, start, end)
        if key not in self._drawn:
            self._drawn[key] = Drawn(self._evidence_of(*key), *self._dice)
        return self._drawn[key]

    def checked(self, name: str, one: Condition) -> Checked:
        """What a condition says of the period."""
        source = self._source(self._conditions.conditions[one.of] if one.of else one)
        if one.of:
            of = self._conditions.conditions[one.of]
            weeks = float(self.undecided(of, int(one.bound) + 1))
            measured = self.measured(of, *self._period)
            found = Measured(weeks, weeks, weeks, int(weeks), measured.rows)
            said: Answer = "holds" if weeks > one.bound else "does not hold"
        else:
            found = self.measured(one, *self._period)
            said = answer(one, found.value, found.low, found.high, found.n)
        counted: CountedAs
        if said == "not enough data":
            counted = one.not_enough_data or self._conditions.not_enough_data
        else:
            counted = said
        return Checked(
            name=name,
            measure=one.measure,
            side="below" if one.above is None else "above",
            bound=one.bound,
            value=found.value,
            low=found.low,
            high=found.high,
            confidence=one.confidence,
            by=one.by,
            n=found.n,
            at_least=one.at_least,
            answer=said,
            counted=counted,
            reason=self._reason(one, source, found) if said == "not enough data" else "",
            source=source,
            rows=len(found.rows),
            rows_digest=digest(row.key for row in found.rows),
            note=one.note,
        )

    def measured(self, one: Condition, start: float, end: float) -> Measured:
        """The measure of a condition over a period."""
        drawn = self.drawn(self._source(one), start, end)
        if not drawn.evidence.rows:
            return Measured(None, None, None, 0, ())
        return drawn.measure(one.measure, one.confidence)

    def undecided(self, one: Condition, at_most: int) -> int:
        """How many reviews in a row, a week apart and this one the last, have not enough data for a condition."""
        start, end = self._period
        for weeks in range(at_most + 1):
            back = weeks * WEEK_S
            if self._first is None or end - back <= self._first:
                return weeks
            found = self.measured(one, start - back, end - back)
            if answer(one, found.value, found.low, found.high, found.n) != "not enough data":
                return weeks
        return at_most + 1

    def _source(self, one: Condition) -> Source:
        source = self._conditions.source_of(one)
        assert source is not None  # the file was refused otherwise
        return source

    def _reason(self, one: Condition, source: Source, found: Measured) -> str:
        evidence = self.drawn(source, *self._period).evidence
        if evidence.reason:
            return evidence.reason
        if found.n < one.at_least:
            unit = {"trials": "tasks", "canary": "lanes of either arm", "logged": "tasks", "turns": "sessions"}[source]
            return f"it rests on {found.n} {unit}; {one.at_least} are asked for"
        if found.value is None:
            return "the figure cannot be computed: what it is divided by is 0"
        return "the interval lies on both sides of the bound"


def _outcome(conditions: Conditions, checked: Sequence[Checked]) -> Outcome:
    counted = [one.counted for one in checked]
    if conditions.go_back_when == "any":
        return "go back" if "holds" in counted else "undecided" if "undecided" in counted else "stay"
    return "stay" if "does not hold" in counted else "undecided" if "undecided" in counted else "go back"


def _verdict(outcome: Outcome, checked: Sequence[Checked], against: str, when: str) -> str:
    holding = [f"{one.name} ({figure(one)})" for one in checked if one.counted == "holds"]
    lacking = [one.name for one in checked if one.answer == "not enough data"]
    if outcome == "go back":
        return f"Go back to {against}: {'; '.join(holding)}."
    if outcome == "undecided":
        open_ = [one.name for one in checked if one.counted == "undecided"]
        held = f", and {'; '.join(holding)} holds" if holding else ""
        return f"Not enough data to decide: {'; '.join(open_)}{held}."
    said = "no condition for going back holds" if when == "any" else "not all conditions for going back hold"
    without = f" (not enough data, counted as such: {'; '.join(lacking)})" if lacking else ""
    return f"Keep routing: {said}{without}."


def figure(one: Checked) -> str:
    """The figure of a condition beside its bound, for people."""
    bound = f"{one.side} {number(one.measure, one.bound)}"
    if one.value is None:
        return f"unknown, bound {bound}"
    value = number(one.measure, one.value)
    if one.measure == "undecided_weeks":
        return f"{value}, bound {bound}"
    if one.low is None or one.high is None:
        return f"{value}, bound {bound}"
    return f"{value} [{number(one.measure, one.low)} {number(one.measure, one.high)}], bound {bound}"


def number(measure: Measure, value: float) -> str:
    """A number of a measure, for people."""
    if measure == "undecided_weeks":
        return f"{value:g}"
    if measure == "cost_per_completed":
        return f"{value:.2f} x"
    if measure == "success_loss":
        return f"{value * 100:+.1f} points"
    return f"{value:.1%}"


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
