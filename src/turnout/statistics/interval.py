"""Figures with their 95 % intervals. Pure."""

from msgspec import Struct

CONFIDENCE = 0.95


class Interval(Struct, frozen=True):
    """A figure and its 95 % interval. `value` None = nothing to compute it from; then so are the bounds."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "-"
        return f"{self.value:.3f} [{self.low:.3f} {self.high:.3f}]"

    def scaled(self, factor: float) -> "Interval":
        """The figure and its bounds times a positive factor."""
        if self.value is None or self.low is None or self.high is None:
            return self
        return Interval(self.value * factor, self.low * factor, self.high * factor)


UNKNOWN = Interval(None)


class Estimate(Struct, frozen=True):
    """A figure that there always is, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f} {self.high:.3f}]"
