"""Hard limits on what one request may take, checked before each call is made."""

from typing import Annotated

from msgspec import Meta, Struct

from turnout.conversation import Reply
from turnout.pricing.rates import Rates, cost
from turnout.routing.core import Outcome


class Caps(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that one request may take; what there is by then is returned.

    `calls` (default 24): model calls, votes included. `tokens` (default none): read and written by all of them. `usd` (default
    none): their cost; a call whose price is not known, or that broke off, counts as much as the dearest before it. `seconds`
    (default 180): from the turn's beginning, and nine tenths of the server's `deadline_s` at most; calls that are still going on
    by then are broken off.

    A call in flight counts as much as the largest before it, so tokens and money are exceeded at most by what calls take more
    than that.
    """

    calls: Annotated[int, Meta(ge=1, le=1000)] = 24
    tokens: Annotated[int, Meta(ge=1)] | None = None
    usd: Annotated[float, Meta(gt=0)] | None = None
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 180.0


_BROKEN_OFF = ("timeout", "malformed")


class Taken(Struct):
    """What a request has taken so far. `unpriced`: calls whose cost is not known."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    largest: int = 0
    dearest: float = 0.0

    def refuses(self, caps: Caps, calls: int) -> str:
        """Which cap so many more calls would exceed, "" = none."""
        if self.calls + calls > caps.calls:
            return "calls"
        if caps.tokens is not None and self.tokens + calls * self.largest > caps.tokens:
            return "tokens"
        if caps.usd is not None and self.usd + calls * self.dearest > caps.usd + 1e-12:
            return "usd"
        return ""

    def add(self, outcome: Outcome, rates: Rates | None) -> tuple[int | None, float | None]:
        """A call is over; its tokens and USD, None where they are not known. One that was not made, or was turned away, takes
        neither; one that broke off, of which a provider may charge any part, counts as much as the largest before it."""
        if not isinstance(outcome, Reply):
            self.calls += not outcome.reason
            if not outcome.reason and outcome.kind in _BROKEN_OFF:
                self.unpriced += 1
                self.tokens += self.largest
                self.usd += self.dearest
            return None, None
        self.calls += 1
        usage = outcome.usage
        tokens = None
        if usage is not None:
            tokens = (usage.prompt_tokens or 0) + (usage.output_tokens or 0)
            self.tokens += tokens
            self.largest = max(self.largest, tokens)
        usd = cost(usage, rates).usd
        if usd is None:
            self.unpriced += 1
            self.usd += self.dearest
        else:
            self.usd += usd
            self.dearest = max(self.dearest, usd)
        return tokens, usd
