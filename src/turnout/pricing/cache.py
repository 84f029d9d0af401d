"""Prompt caches: what a turn costs given what a model still holds of the conversation, and what changing the model costs.

A prompt of n tokens, of which h are read from the cache, costs `r*h + W*(n - h) + o*y`: r the rate of reads, o of output,
y the tokens of output, and `W = k*w + (1 - k)*p` mixes the rate of writes and that of uncached input by the share k of new
tokens that gets written. Where writes are free, w = p. The rates of a long-context tier hold for the whole request.

Changing from A to B for S turns, in a conversation whose prefix has n tokens and grows by d a turn, costs

    (W_B - r_B)*(n - h_B)                                                   B reads the prefix anew
    + sum over i < S of [(r_B - r_A)*(n + i*d) + (W_B - W_A)*d + o_B*y_B - o_A*y_A]
    + rho*(W_A - r_A)*[S*d + (1 - q)*n]                                     A catches up when the work returns
    + whatever else is spent on the way

with rho the chance that the work returns to A, and q the chance that A's cache still holds n by then. All amounts are USD,
negative where the change saves. Pure functions; what has no price gives None.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat

from msgspec import Struct

from turnout.pricing.caching import Lifetime
from turnout.pricing.rates import MILLION, Rates

CACHED_SHARE = 0.85
"""The share of new tokens that gets written to the cache, until it has been seen."""
WHOLE = math.inf
"""Held tokens of a model whose cache holds the whole prefix."""


class TokenPrices(Struct, frozen=True):
    """USD per token at one size of prompt. `new`: a token that is not read from the cache, written or not."""

    read: float
    new: float
    output: float


class Candidate(Struct, frozen=True):
    """A target as it could serve the next turn of a conversation.

    `held_tokens`: what its cache is expected to hold of the prefix (see `Caching.held`), `WHOLE` for all. `output_tokens`: what
    it writes in a turn. `cached_share`: the share of new tokens that gets written. `token_ratio`: its tokens for one token of
    the counts that prompts are given in, where vocabularies differ. `lifetime`: of its writes.
    """

    rates: Rates
    held_tokens: float = 0.0
    output_tokens: float = 0.0
    cached_share: float = CACHED_SHARE
    token_ratio: float = 1.0
    lifetime: Lifetime = "5m"


class TurnCost(Struct, frozen=True):
    """What a turn is expected to cost. Tokens are the target's own; `new_tokens` are not read from the cache."""

    usd: float
    read_tokens: float
    new_tokens: float
    output_tokens: float


class SwitchPrice(Struct, frozen=True):
    """What changing the model costs, USD; negative = saves. `usd` sums up the others: `refill_usd` for the prefix the other
    model does not hold, `running_usd` for the turns it serves, `return_usd` for catching up on the way back, `extra_usd`."""

    usd: float
    refill_usd: float
    running_usd: float
    return_usd: float
    extra_usd: float = 0.0


def token_prices(
    rates: Rates, prompt_tokens: float, cached_share: float = CACHED_SHARE, lifetime: Lifetime = "5m"
) -> TokenPrices | None:
    """Prices per token of a prompt of this size; None when input or output has no price.

    A model without a rate for reads has no discount for them; one without a rate for writes does not charge for writing.
    """
    if rates.tiers:
        rates = rates.at_size(math.ceil(prompt_tokens))
    plain, output = rates.input, rates.output
    if plain is None or output is None:
        return None
    read = plain if rates.cache_read is None else rates.cache_read
    write = rates.cache_write_1h if lifetime == "1h" and rates.cache_write_1h is not None else rates.cache_write_5m
    new = plain if write is None else cached_share * write + (1.0 - cached_share) * plain
    return TokenPrices(read / MILLION, new / MILLION, output / MILLION)


def turn_cost(candidate: Candidate, prompt_tokens: float) -> TurnCost | None:
    """What a turn with this prompt costs on `candidate` now; None when unpriced."""
    prompt = prompt_tokens * candidate.token_ratio
    prices = _prices(candidate, prompt_tokens)
    if prices is None:
        return None
    read = min(max(candidate.held_tokens, 0.0), prompt)
    new, output = prompt - read, candidate.output_tokens
    usd = prices.read * read + prices.new * new + prices.output * output + candidate.rates.request_usd
    return TurnCost(usd, read, new, output)


def switch_price(
    stay: Candidate,
    go: Candidate,
    *,
    prefix_tokens: float,
    growth_tokens: float,
    turns: int | Sequence[float],
    returns: float = 0.0,
    survival: float = 1.0,
    extra_usd: float = 0.0,
) -> SwitchPrice | None:
    """The price of having `go` serve the coming turns instead of `stay`; None when either is unpriced.

    `prefix_tokens`: the conversation before the coming turn's new tokens. `growth_tokens`: new tokens a turn. `turns`: how many
    turns, or for i = 0, 1, ... the probability that more than i come (`Remaining.stays`). `returns`: probability that the work
    comes back. `survival`: probability that `stay` then still holds the prefix. `extra_usd`: a note, a judge, a turn thrown
    away. What `stay` has lost of its prefix by now would have to be read anew by staying, so it makes the change cheaper.
    """
    n, d = prefix_tokens, growth_tokens
    a, b = _prices(stay, n + d), _prices(go, n + d)
    if a is None or b is None:
        return None
    refill = _refill(go, b, n) - _refill(stay, a, n)
    running, grown = 0.0, 0.0
    stays: Iterable[float] = repeat(1.0, turns) if isinstance(turns, int) else turns
    for chance, more in zip(stays, _differences(stay, go, n, d), strict=False):
        running += chance * more
        grown += chance * d
    back = returns * _back(stay, a) * (grown + (1.0 - survival) * n)
    return SwitchPrice(refill + running + back + extra_usd, refill, running, back, extra_usd)


def break_even(
    stay: Candidate,
    go: Candidate,
    *,
    prefix_tokens: float,
    growth_tokens: float,
    returns: float = 0.0,
    expired: bool = False,
) -> float | None:
    """How many turns on `go` a change to it must last to pay, with the growth of the prefix left out; infinite when it never
    pays, None when unpriced. `expired`: `stay` will have lost its cache when the work returns."""
    n, d = prefix_tokens, growth_tokens
    a, b = _prices(stay, n + d), _prices(go, n + d)
    if a is None or b is None:
        return None
    once = _refill(go, b, n) - _refill(stay, a, n) + (returns * _back(stay, a) * n if expired else 0.0)
    saved = -next(_differences(stay, go, n, d)) - returns * _back(stay, a) * d
    if once <= 0.0:
        return 0.0 if saved >= 0.0 else math.inf
    return once / saved if saved > 0.0 else math.inf


def pays_from(
    stay: Candidate,
    go: Candidate,
    *,
    prefix_tokens: float,
    growth_tokens: float,
    returns: float = 0.0,
    survival: float = 1.0,
    extra_usd: float = 0.0,
    at_most: int = 200,
) -> int | None:
    """The least number of turns, growth counted, for which a change to `go` costs nothing; None when there is none up to
    `at_most` or a price is missing. Arguments as those of `switch_price`."""
    n, d = prefix_tokens, growth_tokens
    a, b = _prices(stay, n + d), _prices(go, n + d)
    if a is None or b is None:
        return None
    catching = returns * _back(stay, a)
    usd = _refill(go, b, n) - _refill(stay, a, n) + catching * (1.0 - survival) * n + extra_usd
    for turns, more in zip(range(1, at_most + 1), _differences(stay, go, n, d), strict=False):
        usd += more + catching * d
        if usd <= 0.0:
            return turns
    return None


def keep_alive_pays_above(rates: Rates, lifetime: Lifetime = "5m", prompt_tokens: float = 0.0) -> float | None:
    """The probability of a turn within the next lifetime above which a request of one token to keep the cache alive pays;
    None when unpriced or nothing is discounted."""
    prices = token_prices(rates, prompt_tokens, 1.0, lifetime)
    if prices is None or prices.new <= prices.read:
        return None
    return prices.read / (prices.new - prices.read)


def hour_marks_pay_above(rates: Rates, prefix_tokens: float, growth_tokens: float) -> float | None:
    """The chance, per turn, of a pause longer than five minutes and shorter than an hour above which writing for an hour is
    cheaper than writing for five minutes; None when either has no price."""
    at = rates.at_size(math.ceil(prefix_tokens + growth_tokens)) if rates.tiers else rates
    short, long, read = at.cache_write_5m, at.cache_write_1h, at.cache_read
    if short is None or long is None or read is None or short <= read or prefix_tokens <= 0:
        return None
    return (long - short) * growth_tokens / ((short - read) * prefix_tokens)


def _prices(candidate: Candidate, prompt_tokens: float) -> TokenPrices | None:
    return token_prices(
        candidate.rates, prompt_tokens * candidate.token_ratio, candidate.cached_share, candidate.lifetime
    )


def _refill(candidate: Candidate, prices: TokenPrices, prefix_tokens: float) -> float:
    """What it costs more to read the prefix than if all of it were held."""
    whole = prefix_tokens * candidate.token_ratio
    return (prices.new - prices.read) * (whole - min(max(candidate.held_tokens, 0.0), whole))


def _back(stay: Candidate, prices: TokenPrices) -> float:
    """What one token costs that `stay` has not seen when the work returns, beyond reading it from the cache."""
    return (prices.new - prices.read) * stay.token_ratio


def _differences(stay: Candidate, go: Candidate, prefix_tokens: float, growth_tokens: float) -> Iterator[float]:
    """What each coming turn costs more on `go` than on `stay` once both hold the prefix, USD, for ever."""
    fees = go.rates.request_usd - stay.rates.request_usd
    tiers = bool(stay.rates.tiers or go.rates.tiers)
    a = b = None
    for n in count(prefix_tokens, growth_tokens):
        if a is None or tiers:
            a, b = _prices(stay, n + growth_tokens), _prices(go, n + growth_tokens)
        if a is None or b is None:
            return
        on_a = (a.read * n + a.new * growth_tokens) * stay.token_ratio + a.output * stay.output_tokens
        on_b = (b.read * n + b.new * growth_tokens) * go.token_ratio + b.output * go.output_tokens
        yield on_b - on_a + fees
