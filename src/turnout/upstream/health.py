"""Health of targets: a breaker with cooling, half-open probes, and a snapshot for routers."""

from collections.abc import Collection

from turnout.errors import UpstreamError, UpstreamFault

TRIP_AFTER = 5
"""Consecutive failures that open the breaker."""
FIRST_COOLING_S = 2.0
LONGEST_COOLING_S = 60.0
LONGEST_RETRY_AFTER_S = 600.0

COUNTED: frozenset[UpstreamFault] = frozenset(("unavailable", "timeout", "malformed"))
"""What says that a target is not well."""
OF_JUDGES: frozenset[UpstreamFault] = COUNTED | {"rate_limit", "auth", "request"}
"""What says that asking a judge once more is of no use: every question is much like the last one."""


class Health:
    """The state of one target's breaker. Times are seconds of one monotonic clock.

    Closed: calls pass. A rate limit with a stated wait, or `TRIP_AFTER` failures in a row, opens it for a while (twice as
    long each time, the later of two deadlines wins). When the time is over one probe passes; its outcome closes or
    re-opens. Faults of the request itself (overflow, refused, auth, other 4xx) say nothing about health. `counted`: the kinds
    of failure that count, where a rate limit states no wait too.
    """

    __slots__ = ("_counted", "cooling_until", "failures", "opened", "probing", "rate_limited")

    def __init__(self, counted: Collection[UpstreamFault] = COUNTED) -> None:
        self._counted = counted
        self.failures = 0
        self.opened = 0
        self.cooling_until = 0.0
        self.probing = False
        self.rate_limited = False

    def wait_s(self, now: float) -> float:
        """Seconds until a call may pass; 0 when it may now."""
        if not self.cooling_until:
            return 0.0
        if now < self.cooling_until:
            return self.cooling_until - now
        return 1.0 if self.probing else 0.0

    def begin(self) -> None:
        """A call starts (a probe when the breaker was open)."""
        if self.cooling_until:
            self.probing = True

    def succeeded(self) -> None:
        """A call went well: the breaker closes."""
        self.failures = self.opened = 0
        self.cooling_until = 0.0
        self.probing = self.rate_limited = False

    def failed(self, error: UpstreamError, now: float) -> None:
        """A call failed."""
        self.probing = False
        if error.kind == "rate_limit" and error.retry_after_s:
            self.rate_limited = True
            self._cool(now + min(error.retry_after_s, LONGEST_RETRY_AFTER_S))
        elif error.kind in self._counted:
            self.failures += 1
            if self.failures >= TRIP_AFTER:
                self._cool(now + min(LONGEST_COOLING_S, FIRST_COOLING_S * 2**self.opened))
                self.opened += 1

    def abandoned(self) -> None:
        """A call ended without saying anything about health (the client hung up)."""
        self.probing = False

    def _cool(self, until: float) -> None:
        self.cooling_until = max(self.cooling_until, until)
