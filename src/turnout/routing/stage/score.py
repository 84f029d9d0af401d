"""From signals to a score: how much speaks for which tier."""

import math
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from turnout.routing.stage.memory import Tier

GAIN = 0.4
"""How steeply evidence adds up."""
UP, DOWN = 3.0, 2.0
"""Units of evidence that make certainty: a score of 1 for the capable tier, of -1 for the efficient one."""
HARD = 0.7
"""The severity that counts as one whole failure."""
OFTEN = 3
"""Calls with the same outcome that make `repeated_calls` full."""

_UP, _DOWN = math.tanh(GAIN * UP), math.tanh(GAIN * DOWN)

Weight: TypeAlias = Annotated[float, Meta(ge=0, le=100)]


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    """How many units of evidence each signal is worth when it is full. One unit is what one hard failure says; 0 ignores a
    signal. The first eight speak for the capable tier, the next two for the efficient one, the last for either.

    `severity`: the worst failure in the window that nothing has cleared; hard is full, everyday friction 0.43.
    `newest`: the newest result is such a failure, and what comes next has to answer it.
    `persistence`: the share of the window that further failures take.
    `complaint`: the user said that it is still wrong; fades over eight turns, and is over when tests pass.
    `spinning`: activity that brings neither information nor change. It, `stall`, `repeated_calls` and `exploring` see the same
    thing in different ways: only the largest product of the four counts.
    `stall`: how long nothing has moved.
    `repeated_calls`: the same call with the same outcome again; full from three times.
    `exploring`: still looking around after something went wrong.
    `production`: the share of verified changes in the window; a failure in the newest result takes from it, a hard one all.
    `tests_passed`: the newest test run is green.
    `trend`: fewer tests fail than before (efficient), or more (capable).
    """

    severity: Weight = 1.0
    newest: Weight = 0.25
    persistence: Weight = 1.0
    complaint: Weight = 1.5
    spinning: Weight = 1.25
    stall: Weight = 0.75
    repeated_calls: Weight = 0.75
    exploring: Weight = 0.75
    production: Weight = 1.0
    tests_passed: Weight = 1.0
    trend: Weight = 0.5

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name}: {getattr(self, name)} is not between 0 and 100")


IDLE = ("spinning", "stall", "repeated_calls", "exploring")
"""Signals that nothing moves; only the largest product counts."""


class Case(Struct, frozen=True, gc=False):
    """Everything a stage decision depends on beside the router's own settings.

    Signals as in `Progress`, and `newest`: the severity of the newest result. `hold`: turns the capable tier is still held
    for; `over`: something ends that early. `cool`: turns left of a cool-off. `before`: the tier that served the turn before.
    """

    severity: float = 0.0
    newest: float = 0.0
    persistence: float = 0.0
    complaint: float = 0.0
    spinning: float = 0.0
    stall: float = 0.0
    repeated_calls: int = 0
    exploring: float = 0.0
    production: float = 0.0
    tests_passed: bool = False
    trend: float = 0.0
    repeated: int = 0
    compaction: float = 0.0
    hold: int = 0
    over: bool = False
    cool: int = 0
    before: Tier = "efficient"


class Term(Struct, frozen=True):
    """One signal's part in the evidence. `value`: as observed. `share`: how full it is, after what takes from it. `product`:
    weight times share, positive for the capable tier. `outdone`: another of the signals that nothing moves weighs more."""

    signal: str
    value: float
    share: float
    weight: float
    product: float
    outdone: bool = False


def units(case: Case, w: Weights) -> float:
    """The evidence in units: positive for the capable tier, negative for the efficient one."""
    total = w.complaint * case.complaint - w.trend * case.trend
    kept = 1.0
    if case.severity:
        bad = case.newest / HARD if case.newest < HARD else 1.0
        kept -= bad
        total += w.severity * (case.severity / HARD if case.severity < HARD else 1.0)
        total += w.newest * bad + w.persistence * case.persistence
    if case.production:
        total -= w.production * case.production * kept
    if case.tests_passed:
        total -= w.tests_passed
    if case.spinning or case.stall or case.exploring or case.repeated_calls > 1:
        again = _again(case.repeated_calls)
        total += max(
            w.spinning * case.spinning, w.stall * case.stall, w.repeated_calls * again, w.exploring * case.exploring
        )
    return total


def _again(times: int) -> float:
    return max(0.0, min((times - 1) / (OFTEN - 1), 1.0))


def terms(case: Case, w: Weights) -> tuple[Term, ...]:
    """`units`, signal by signal in the order of `Weights`: the products add up to it."""
    bad = min(case.newest / HARD, 1.0) if case.severity else 0.0
    shares = {
        "severity": min(case.severity / HARD, 1.0),
        "newest": bad,
        "persistence": case.persistence if case.severity else 0.0,
        "complaint": case.complaint,
        "spinning": case.spinning,
        "stall": case.stall,
        "repeated_calls": _again(case.repeated_calls),
        "exploring": case.exploring,
        "production": -case.production * (1.0 - bad),
        "tests_passed": -float(case.tests_passed),
        "trend": -case.trend,
    }
    strongest = max(IDLE, key=lambda name: getattr(w, name) * shares[name])
    found = []
    for name, share in shares.items():
        weight = getattr(w, name)
        outdone = name in IDLE and name != strongest and weight * share > 0
        product = 0.0 if name in IDLE and name != strongest else weight * share
        found.append(Term(name, float(getattr(case, name)), abs(share), weight, product + 0.0, outdone))
    return tuple(found)


def squashed(evidence: float) -> float:
    """Units of evidence as a score in [-1, 1]: tanh(0.4 u) / tanh(0.4 limit), the limit 3 units up and 2 down."""
    return max(-1.0, min(1.0, math.tanh(GAIN * evidence) / (_UP if evidence > 0 else _DOWN)))


def needed(score: float) -> float:
    """The units of evidence at which a score is reached; the inverse of `squashed` between its ends."""
    return math.atanh(score * (_UP if score > 0 else _DOWN)) / GAIN


class Reach(Struct, frozen=True):
    """The furthest that conversations can score on each side, from 0 to 1."""

    capable: float
    efficient: float


def reach(w: Weights, window: int) -> Reach:
    """What can be scored at most with these weights in a window of so many results, counting together only what can come
    together: a complaint fades before work stalls, and a single result is not both a change and a test run."""
    failing = w.severity + w.newest + (w.persistence if window > 1 else 0.0)
    idle = max(w.spinning, w.stall, w.repeated_calls, w.exploring)
    up = max(failing + max(idle, w.trend), w.complaint)
    down = w.production + w.tests_passed if window > 1 else max(w.production, w.tests_passed)
    return Reach(squashed(up), -squashed(-max(down, w.trend)))
