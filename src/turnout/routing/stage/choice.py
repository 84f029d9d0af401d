"""The stage decision itself: a pure function of a case and a policy, so that it can be asked again with one thing changed."""

from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.routing.core import Source
from turnout.routing.stage.memory import Tier
from turnout.routing.stage.price import Quote
from turnout.routing.stage.score import HARD, Case, Weights, squashed, units

Picker: TypeAlias = Literal["efficient_first", "capable_first"]

FORMULA = "stage 2"
"""Name and edition of the calculation, kept with every decision: an explanation made later must be of the same one."""
CRITICAL = 1.0
"""The severity of the rule `critical_error`."""
REPEATED = 2
"""How often the same failure must have come for the rule `repeated_failure`."""
COMPACTED = 0.5
"""How fresh a summary must be for the rule `compaction`: for three turns."""


class Choice(Struct, frozen=True, gc=False):
    """A tier and who chose it. `evidence`: in units. `score`: the same in [-1, 1]."""

    tier: Tier
    source: Source
    rule: str
    evidence: float
    score: float


def choose(case: Case, weights: Weights, threshold: float, picker: Picker) -> Choice:
    """Who serves the turn: a running hold, else a rule, else a score of at least `threshold`, else the picker. When the newest
    result failed, rules go before a hold, so that it starts anew. In a cool-off only a rule goes up."""
    evidence = units(case, weights)
    score = squashed(evidence)
    held = case.hold > 0 and not case.over
    rule = "" if held and not case.newest else ruled(case)
    if rule:
        return Choice("capable", "override", rule, evidence, score)
    if held:
        return Choice("capable", "hold", "", evidence, score)
    tier: Tier
    source: Source
    if score and abs(score) >= threshold:
        tier, source = ("capable" if score > 0 else "efficient"), "signals"
    else:
        tier, source = ("efficient" if picker == "efficient_first" else "capable"), "default"
    if case.cool and tier == "capable":
        return Choice("efficient", "hold", "cool_off", evidence, score)
    return Choice(tier, source, "", evidence, score)


def proposes(choice: Choice, case: Case) -> bool:
    """Whether the choice is a change of tier that has to be worth its price: rules and holds do not."""
    return choice.tier != case.before and choice.source in ("signals", "default")


def priced(choice: Choice, case: Case, quote: Quote | None) -> Choice:
    """The choice in the light of its price: a change that is not worth it is not made."""
    if quote is None or quote.to != choice.tier or not proposes(choice, case) or quote.pays(choice.evidence):
        return choice
    return Choice(case.before, "price", "", choice.evidence, choice.score)


def ruled(case: Case) -> str:
    """The rule that chooses the capable tier whatever the score; "" when none does."""
    if case.compaction >= COMPACTED:
        return "compaction"
    if case.severity >= CRITICAL:
        return "critical_error"
    if case.repeated >= REPEATED:
        return "repeated_failure"
    return "relapse" if case.cool and case.newest >= HARD else ""
