"""What a lane costs on the way it went, and what it would have cost on another router's way, caches included.

Both ways are reckoned alike, turn by turn, from the same replies: each target's cache holds of the conversation what it was sent
when it served last, and a target that has not served reads it all anew. Assumed are the same prompts and replies, counted in the
tokens of the target that served, whoever had answered.
"""

from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from turnout.pricing.cache import turn_cost
from turnout.pricing.caching import Lifetime
from turnout.routing.core import State, TargetFacts
from turnout.routing.warmth import Warmed, Warmth

PLACE = "beside"
KEY = f"{PLACE}/Spending"
ASSUMED = (
    "the same prompts and replies, with as many tokens, whichever target had served",
    "a cache holds what its target was sent when it served the lane last, for as long as its provider says; a target that has "
    "not served reads the whole conversation anew",
    "calls made while deciding are charged as they were; retries and fallbacks are not",
)
"""What predicted costs rest on, for people."""


class Answered(Struct, frozen=True):
    """What is known of a turn's answer, whoever had given it.

    `at`: Unix seconds. `target`: who served. `prompt_tokens`, `output_tokens`: of its call. `held_tokens`: how much of the
    prompt can be read from a cache next time. `lifetime`: of what was written. `share`: of the new tokens, those that were
    written. `unchanged_tokens`: how much of the prompt was still what it had been, None when the conversation only grew.
    """

    at: float
    target: str
    prompt_tokens: int
    output_tokens: int
    held_tokens: int = 0
    lifetime: Lifetime | Literal[""] = ""
    share: float | None = None
    unchanged_tokens: int | None = None


class Charged(Struct, frozen=True, tag="charged", tag_field="event"):
    """A turn was answered: what the cache of the target that served holds, and that of the one the router beside chose (None
    when it is not known)."""

    live: Warmed
    own: Warmed | None = None


_COLD = Warmth()


class Spending(State, frozen=True):
    """What caches hold of a lane on the way it went (`live`), and on the way of the router beside (`own`)."""

    events: ClassVar[tuple[type[Struct], ...]] = (Charged,)
    recent: ClassVar[bool] = True

    live: Warmth = _COLD
    own: Warmth = _COLD

    def after(self, event: Any) -> "Spending":
        """With the turn answered. While both ways are one, it is followed once."""
        live = self.live.after(event.live)
        if event.own is None:
            return Spending(live, self.own)
        same = self.own is self.live and event.own is event.live
        return Spending(live, live if same else self.own.after(event.own))


class Price(Struct, frozen=True):
    """What a turn is reckoned to cost, USD, on the way it went and on the way of the router beside. None = a price or a usage is
    not known."""

    live_usd: float | None = None
    own_usd: float | None = None


def priced(spending: Spending, answered: Answered, live: TargetFacts | None, own: TargetFacts | None) -> Price:
    """The price of a turn's answer on both ways. `own`: the target that the router beside chose, None when it is not known."""
    live_usd = _cost(spending.live, answered, live)
    if own is live and spending.own is spending.live:
        return Price(live_usd, live_usd)
    return Price(live_usd, _cost(spending.own, answered, own))


def _cost(warm: Warmth, answered: Answered, facts: TargetFacts | None) -> float | None:
    if facts is None:
        return None
    candidate = warm.candidate(facts, answered.at)
    if candidate is None:
        return None
    held = candidate.held_tokens
    if answered.unchanged_tokens is not None:
        held = min(held, float(answered.unchanged_tokens))
    as_served = replace(candidate, held_tokens=held, output_tokens=float(answered.output_tokens), token_ratio=1.0)
    found = turn_cost(as_served, float(answered.prompt_tokens))
    return None if found is None else found.usd


def charged(answered: Answered, own: TargetFacts | None) -> Charged:
    """The event that both ways are followed by."""
    live = _warmed(answered, answered.target)
    if own is None or own.name == answered.target:
        return Charged(live, None if own is None else live)
    return Charged(live, _warmed(answered, own.name))


def _warmed(answered: Answered, target: str) -> Warmed:
    # Bytes are not recorded: a byte a token will do, for only ratios of them count.
    size, kept = answered.prompt_tokens, answered.unchanged_tokens
    return Warmed(
        target,
        answered.at,
        1,
        size,
        answered.prompt_tokens,
        answered.output_tokens,
        answered.held_tokens,
        kept=None if kept is None else (0, kept),
        lifetime=answered.lifetime,
        share=answered.share,
    )
