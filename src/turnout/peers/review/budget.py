"""What a review may use, checked before every call with the most that call may use."""

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.peers.review.journal import Entry

Limit: TypeAlias = Literal["", "calls", "tokens", "usd", "time"]
"""Which limit stands in the way; "" = none."""


class Limits(Struct, frozen=True):
    """The most that a review may use, what its journal already holds included; None = no limit. `calls`: requests sent, those
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


class Budget:
    """What has been used and what is set aside for calls in flight. `clock`: seconds, monotonic.

    What a call turns out to have used counts, so the limits hold as long as no call uses more than its size.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float], spent: Iterable[Entry] = ()) -> None:
        self.limits = limits
        self._clock = clock
        self._until = None if limits.seconds is None else clock() + limits.seconds
        self.calls = self.tokens = 0
        self.usd = 0.0
        self._held_calls = self._held_tokens = 0
        self._held_usd = 0.0
        for entry in spent:
            self.calls += entry.tries
            self.tokens += entry.input_tokens + entry.output_tokens
            self.usd += entry.usd or 0.0

    def refuses(self, size: Size, expected_s: float = 0.0) -> Limit:
        """The limit that a call of this size, expected to take so long, might exceed."""
        limits = self.limits
        if limits.calls is not None and self.calls + self._held_calls + 1 > limits.calls:
            return "calls"
        if limits.tokens is not None and self.tokens + self._held_tokens + size.tokens > limits.tokens:
            return "tokens"
        if limits.usd is not None and self.usd + self._held_usd + (size.usd or 0.0) > limits.usd:
            return "usd"
        if self._until is not None and self._clock() + expected_s >= self._until:
            return "time"
        return ""

    def left_s(self) -> float | None:
        """Seconds until no call begins any more; None = no limit."""
        return None if self._until is None else max(self._until - self._clock(), 0.0)

    def hold(self, size: Size) -> None:
        """A call begins."""
        self._held_calls += 1
        self._held_tokens += size.tokens
        self._held_usd += size.usd or 0.0

    def again(self) -> Limit:
        """The request of a call that is held goes out once more. Gives the limit that forbids it; then nothing is held."""
        if self.limits.calls is not None and self.calls + self._held_calls + 1 > self.limits.calls:
            return "calls"
        if self._until is not None and self._clock() >= self._until:
            return "time"
        self._held_calls += 1
        return ""

    def settle(self, size: Size, held: int, sent: int, tokens: int, usd: float) -> None:
        """A call is over. `held`: the requests held for it; `sent`: those that went out; `tokens`, `usd`: what it used."""
        self._held_calls -= held
        self._held_tokens -= size.tokens
        self._held_usd -= size.usd or 0.0
        if not self._held_calls:
            self._held_usd = 0.0  # sums of fractions do not come back to nothing by themselves
        self.calls += sent
        self.tokens += tokens
        self.usd += usd
