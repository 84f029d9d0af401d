"""What a piece of work may use, checked before every call with the most that call may use."""

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.conversation import Usage
from turnout.pricing import Rates, cost
from turnout.upstream.buying.journal import Bought

Limit: TypeAlias = Literal["", "calls", "tokens", "usd", "time"]
"""Which limit stands in the way; "" = none."""


class Limits(Struct, frozen=True):
    """The most that may be used, what the journal already holds included; None = no limit. `calls`: requests sent, those
    that a server turned away too. `tokens`: in and out. `usd`: money. `seconds`: of this run; a call under way is waited for."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


class Size(Struct, frozen=True):
    """The most that one call is taken to use. `usd` None: no price is known."""

    input_tokens: int
    output_tokens: int
    usd: float | None = None

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens


MARGIN = 1.25
"""Of an estimated prompt above which a call hardly ever uses more: token counts are estimates."""
OVERHEAD_TOKENS = 60
"""What formats put around texts."""


def size(input_tokens: int, output_tokens: int, rates: Rates | None) -> Size:
    """The most that a call is taken to use whose prompt is estimated at so many tokens."""
    tokens = int(MARGIN * input_tokens) + OVERHEAD_TOKENS
    return Size(tokens, output_tokens, price(tokens, output_tokens, rates))


def price(input_tokens: int, output_tokens: int, rates: Rates | None) -> float | None:
    """What so many tokens cost, USD; None when no price is known."""
    return cost(Usage(input_tokens=input_tokens, output_tokens=output_tokens), rates).usd


class Budget:
    """What has been used (`calls`, `tokens`, `usd`) and what is set aside for calls in flight. `clock`: seconds, monotonic.

    What a call turns out to have used counts, so the limits hold as long as no call uses more than its size.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float], spent: Iterable[Bought] = ()) -> None:
        self.limits = limits
        self._clock = clock
        self._until = None if limits.seconds is None else clock() + limits.seconds
        self.calls = self.tokens = 0
        self.usd = 0.0
        self.held_calls = self.held_tokens = 0
        self.held_usd = 0.0
        for entry in spent:
            self.calls += entry.tries
            self.tokens += entry.input_tokens + entry.output_tokens
            self.usd += entry.usd or 0.0

    def refuses(self, size: Size, expected_s: float = 0.0) -> Limit:
        """The limit that a call of this size, expected to take so long, might exceed."""
        limits = self.limits
        if limits.calls is not None and self.calls + self.held_calls + 1 > limits.calls:
            return "calls"
        if limits.tokens is not None and self.tokens + self.held_tokens + size.tokens > limits.tokens:
            return "tokens"
        if limits.usd is not None and self.usd + self.held_usd + (size.usd or 0.0) > limits.usd:
            return "usd"
        if self._until is not None and self._clock() + expected_s >= self._until:
            return "time"
        return ""

    def left_s(self) -> float | None:
        """Seconds until no call begins any more; None = no limit."""
        return None if self._until is None else max(self._until - self._clock(), 0.0)

    def hold(self, size: Size) -> "Held":
        """Set aside what a call may use."""
        return Held(self, size)


class Held:
    """What is set aside for one call. `sent`: requests that went out; `broken`: those of them that broke off, so that they may be
    charged for though nothing came."""

    def __init__(self, budget: Budget, size: Size) -> None:
        self._budget = budget
        self._requests = self._sizes = 0
        self.size = size
        self.sent = self.broken = 0
        self._add(size)

    def again(self) -> Limit:
        """Set aside one more request, with a size of its own where those before may have used theirs. Gives the limit that
        forbids it."""
        size = self.size if self._sizes <= self.broken else Size(0, 0)
        limit = self._budget.refuses(size)
        if not limit:
            self._add(size)
        return limit

    def settle(self, tokens: int, usd: float) -> None:
        """The call is over and has used so much."""
        budget = self._budget
        budget.held_calls -= self._requests
        budget.held_tokens -= self._sizes * self.size.tokens
        budget.held_usd -= self._sizes * (self.size.usd or 0.0)
        if not budget.held_calls:
            budget.held_usd = 0.0  # sums of fractions do not come back to nothing by themselves
        budget.calls += self.sent
        budget.tokens += tokens
        budget.usd += usd

    def _add(self, size: Size) -> None:
        self._requests += 1
        self._sizes += size is self.size
        self._budget.held_calls += 1
        self._budget.held_tokens += size.tokens
        self._budget.held_usd += size.usd or 0.0
