"""Whether a change of tier is worth what it costs: the other model has to read the whole conversation anew."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from turnout.pricing.cache import WHOLE, Candidate, switch_price, turn_cost
from turnout.pricing.caching import survival
from turnout.pricing.remaining import usual
from turnout.routing.core import TargetFacts, TargetName, Turn
from turnout.routing.stage.memory import Tier
from turnout.routing.warmth import Warmth, warmth


class SwitchCosts(Struct, frozen=True, forbid_unknown_fields=True):
    """When a change of tier is worth its price. A rule goes up whatever it costs; a first turn has no prefix to lose. Needs an
    identified lane and prices for both targets.

    `on` (default true): whether prices are looked at.
    `margin` (default 2.5): what one unit of evidence may cost to follow up, as a share of what the turns ahead on the capable
    target cost once its cache is warm. Counted are the prefix it does not hold and catching up on the way back.
    `evidence_usd`: the same as a sum in USD, in place of `margin` (default none).
    `turns`: how many turns a session goes on from here, for going down (default: what recorded sessions of this length do).
    `returns` 0..1 (default 0.5): the chance that work that goes down comes back up.
    `unpriced` (default `switch`): what happens when a price is not known: `switch` as if it were free, or `stay`.
    """

    on: bool = True
    margin: Annotated[float, Meta(ge=0)] = 2.5
    evidence_usd: Annotated[float, Meta(ge=0)] | None = None
    turns: Annotated[int, Meta(ge=1, le=200)] | None = None
    returns: Annotated[float, Meta(ge=0, le=1)] = 0.5
    unpriced: Literal["switch", "stay"] = "switch"

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise ValueError(f"margin: {self.margin} is below 0")
        if self.evidence_usd is not None and not self.evidence_usd >= 0:
            raise ValueError(f"evidence_usd: {self.evidence_usd} is below 0")
        if not 0 <= self.returns <= 1:
            raise ValueError(f"returns: {self.returns} is not between 0 and 1")


class Quote(Struct, frozen=True):
    """The price of a change of tier, as it was judged.

    Going up is worth `cost_usd` (the prefix read anew, and catching up later) as long as evidence times `unit_usd` covers it;
    going down when `cost_usd` (that, and what the turns ahead cost more or less) is no more than 0. None = unpriced.
    `prefix_tokens`: of the conversation before this turn; `stay_held`, `go_held`: what each target's cache is expected to hold
    of it, in its own tokens. `turns`: expected on the other tier. `refill_usd`, `running_usd`, `return_usd`: the parts.
    """

    to: Tier
    cost_usd: float | None
    unit_usd: float = 0.0
    prefix_tokens: int = 0
    growth_tokens: float = 0.0
    stay_held: float = 0.0
    go_held: float = 0.0
    turns: float = 0.0
    refill_usd: float = 0.0
    running_usd: float = 0.0
    return_usd: float = 0.0
    unpriced: Literal["switch", "stay"] = "switch"

    def pays(self, evidence: float) -> bool:
        """Whether units of evidence (positive for the capable tier) are worth the change."""
        if self.cost_usd is None:
            return self.unpriced == "switch"
        return self.cost_usd <= (max(evidence, 0.0) * self.unit_usd if self.to == "capable" else 0.0)


class Option(Struct, frozen=True):
    """A target as it could serve the turn: what its cache holds of the prompt, what it would read anew, what that costs.
    Tokens are its own. None = unpriced."""

    target: str
    tier: Tier
    warm_tokens: int | None = None
    cold_tokens: int | None = None
    usd: float | None = None


def quote(turn: Turn, stay: TargetName, go: TargetName, to: Tier, costs: SwitchCosts, stint: int) -> Quote | None:
    """The price of going from `stay` to `go`; None where nothing can be lost yet. `stint`: turns that the capable tier serves
    once it is called."""
    seen = warmth(turn)
    if not seen.turns or turn.signals.compacted:
        return None
    a, b = _candidate(seen, turn, stay), _candidate(seen, turn, go)
    if a is None or b is None:
        return Quote(to, None, unpriced=costs.unpriced)
    ahead = (1.0,) * costs.turns if costs.turns is not None else usual(turn.agent.kind).stays(seen.turns + 1)
    if to == "capable":
        ahead = ahead[:stint]
    price = switch_price(
        a,
        b,
        prefix_tokens=seen.prompt_tokens,
        growth_tokens=seen.growth_tokens,
        turns=ahead,
        returns=1.0 if to == "capable" else costs.returns,
        survival=survival(sum(ahead) * seen.pace_s, a.lifetime),
    )
    settled = turn_cost(replace(b, held_tokens=WHOLE), seen.prompt_tokens + seen.growth_tokens)
    if price is None or settled is None:
        return Quote(to, None, unpriced=costs.unpriced)
    if to == "efficient":
        cost, unit = price.usd, 0.0
    else:
        cost = price.refill_usd + price.return_usd
        unit = costs.margin * settled.usd * sum(ahead) if costs.evidence_usd is None else costs.evidence_usd
    return Quote(
        to, cost, unit, seen.prompt_tokens, seen.growth_tokens, a.held_tokens, b.held_tokens, sum(ahead),
        price.refill_usd, price.running_usd, price.return_usd, costs.unpriced,
    )  # fmt: skip


def _candidate(seen: Warmth, turn: Turn, name: TargetName) -> Candidate | None:
    facts = turn.targets.get(name)
    return None if facts is None else seen.candidate(facts, turn.now)


def options(seen: Warmth, facts: dict[Tier, TargetFacts], now: float) -> tuple[Option, ...]:
    """What the next turn of a lane costs on each tier's target."""
    found = []
    for tier, target in facts.items():
        candidate = seen.candidate(target, now) if seen.turns else None
        cost = None if candidate is None else turn_cost(candidate, seen.prompt_tokens + seen.growth_tokens)
        if cost is None:
            found.append(Option(target.name, tier))
        else:
            found.append(Option(target.name, tier, round(cost.read_tokens), round(cost.new_tokens), cost.usd))
    return tuple(found)
