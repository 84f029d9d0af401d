"""What tokens cost: the rates of a model and the cost of one call. Unknown is None, never 0."""

from typing import Protocol

from msgspec import Struct

from turnout.conversation import Usage

MILLION = 1_000_000


class Rates(Struct, frozen=True, omit_defaults=True):
    """USD per million tokens; None = no such rate is known.

    `cache_write_5m` also prices writes of providers with a single lifetime. `reasoning`: where reasoning tokens cost other
    than output. `request_usd`: a fee per request. `above_tokens`: the prompt size these rates start above, when they stand in
    `tiers`; the last tier whose `above_tokens` the whole prompt exceeds prices the whole request, output included.
    """

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None
    reasoning: float | None = None
    request_usd: float = 0.0
    above_tokens: int = 0
    tiers: tuple["Rates", ...] = ()

    def at_size(self, prompt_tokens: int) -> "Rates":
        """The rates of a request whose whole prompt, cached or not, has this many tokens."""
        for tier in reversed(self.tiers):
            if prompt_tokens > tier.above_tokens:
                return tier
        return self


class Price(Protocol):
    """An operator's own price, USD per million tokens (the `price` table of a target). Hashable."""

    @property
    def input(self) -> float: ...
    @property
    def output(self) -> float: ...
    @property
    def cache_read(self) -> float | None: ...
    @property
    def cache_write(self) -> float | None: ...
    @property
    def cache_write_1h(self) -> float | None: ...


def rates_of(price: Price) -> Rates:
    """The rates an operator stated; what is not stated stays unknown."""
    return Rates(
        input=price.input,
        output=price.output,
        cache_read=price.cache_read,
        cache_write_5m=price.cache_write,
        cache_write_1h=price.cache_write_1h,
    )


class Cost(Struct, frozen=True):
    """The cost of one call in USD. None = not known, and `note` says why, starting with `unpriced` (no rate) or `unknown`
    (no usage). A note beside a number says what was assumed."""

    usd: float | None
    note: str = ""


NO_RATES = Cost(None, "unpriced: no price is known for this model")
NO_USAGE = Cost(None, "unknown: the provider reported no usage")
NO_COUNT = Cost(None, "unknown: the provider reported only part of the usage")
INCONSISTENT = Cost(None, "unknown: the reported usage contradicts itself")
SPLIT_ASSUMED = "cache writes without a split by lifetime are charged as 5-minute writes"
_UNPRICED = {
    name: Cost(None, f"unpriced: no rate for {name} tokens is known for this model")
    for name in ("input", "output", "cache read", "cache write", "1-hour cache write")
}


def cost(usage: Usage | None, rates: Rates | None) -> Cost:
    """What a call cost: every token once, at the rate of its kind.

    Cached reads and writes are beside `input_tokens`, not inside. A rate that is missing for tokens that occurred makes the
    whole call unpriced. Server tools (web searches and the like) and discounts by service tier are not included.
    """
    if usage is None:
        return NO_USAGE
    if rates is None:
        return NO_RATES
    plain, output = usage.input_tokens, usage.output_tokens
    if plain is None or output is None:
        return NO_COUNT
    read, write = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    if rates.tiers:
        rates = rates.at_size(plain + read + write)
    if plain < 0 or output < 0 or read < 0 or write < 0:
        return INCONSISTENT
    total = 0.0
    if plain:
        if rates.input is None:
            return _UNPRICED["input"]
        total = plain * rates.input
    if output:
        if rates.output is None:
            return _UNPRICED["output"]
        total += output * rates.output
        reasoning = usage.reasoning_tokens
        if rates.reasoning is not None and reasoning:
            total += min(reasoning, output) * (rates.reasoning - rates.output)
    if read:
        if rates.cache_read is None:
            return _UNPRICED["cache read"]
        total += read * rates.cache_read
    if not write:
        return Cost(total / MILLION + rates.request_usd)
    return _with_writes(total, write, usage.cache_write_1h_tokens, rates)


def _with_writes(total: float, write: int, write_1h: int | None, rates: Rates) -> Cost:
    """Add the cache writes, those that live one hour apart, to a total in millionths."""
    long = write_1h or 0
    if not 0 <= long <= write:
        return INCONSISTENT
    if write - long:
        if rates.cache_write_5m is None:
            return _UNPRICED["cache write"]
        total += (write - long) * rates.cache_write_5m
    if long:
        if rates.cache_write_1h is None:
            return _UNPRICED["1-hour cache write"]
        total += long * rates.cache_write_1h
    assumed = write_1h is None and rates.cache_write_1h is not None and rates.cache_write_1h != rates.cache_write_5m
    return Cost(total / MILLION + rates.request_usd, SPLIT_ASSUMED if assumed else "")
