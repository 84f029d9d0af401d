"""Shares with Wilson score intervals, which hold for small counts and at 0 and 1. Pure."""

import math

from msgspec import Struct

Z = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""


class Share(Struct, frozen=True):
    """`hits` of `of`, as a `value` in [0, 1] with a 95 % interval `low`..`high`. `value` is None when `of` is 0."""

    hits: int
    of: int
    value: float | None
    low: float
    high: float

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.2f} [{self.low:.2f} {self.high:.2f}]"


def wilson(hits: int, of: int, z: float = Z) -> tuple[float, float]:
    """The Wilson score interval of a share; (0, 1) when nothing was counted."""
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    # The bounds at 0 and 1 are exact, whatever rounding says.
    return (0.0 if not hits else max(0.0, middle - half)), (1.0 if hits == of else min(1.0, middle + half))


def share(hits: int, of: int) -> Share:
    """`hits` of `of` with its interval."""
    low, high = wilson(hits, of)
    return Share(hits, of, hits / of if of else None, low, high)
