"""A confidence sequence for the mean of bounded numbers that keeps up with their spread.

The predictable plug-in empirical-Bernstein sequence of I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random
variables by betting", J. R. Stat. Soc. B 86 (2024), Theorem 2 with the bets of eq. 15: for numbers X in [0, 1]

    sum(l_i X_i) / sum(l_i)  +-  (log(2/alpha) + sum(v_i psi(l_i))) / sum(l_i)
    v_i = 4 (X_i - mean_(i-1))^2,   psi(l) = (-log(1 - l) - l) / 4
    l_i = min(1/2, sqrt(2 log(2/alpha) / (variance_(i-1) i log(1 + i))))

with mean_i = (1/2 + sum X) / (i + 1) and variance_i = (1/4 + sum (X_j - mean_j)^2) / (i + 1).
Assumes that the mean, given what came before, is the same all the time; nothing more on the distribution.
"""

import math

from msgspec import Struct

from turnout.sequential.rate import Interval

_MOST = 0.5


class Mean(Struct, frozen=True):
    """What is known of a mean after some numbers in [0, 1]; a pure fold. `alpha`: how often it may ever miss the mean."""

    alpha: float = 0.05
    count: int = 0
    total: float = 0.0
    squares: float = 0.25
    bets: float = 0.0
    bet_on: float = 0.0
    spent: float = 0.0

    def after(self, value: float) -> "Mean":
        """With one more number. Raises ValueError outside of [0, 1]."""
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a value must be from 0 to 1, got {value}")
        i = self.count + 1
        mean = (0.5 + self.total) / i
        variance = self.squares / i
        bet = min(_MOST, math.sqrt(2 * math.log(2 / self.alpha) / (variance * i * math.log1p(i))))
        total = self.total + value
        now = (0.5 + total) / (i + 1)
        return Mean(
            self.alpha,
            i,
            total,
            self.squares + (value - now) ** 2,
            self.bets + bet,
            self.bet_on + bet * value,
            self.spent + (value - mean) ** 2 * (-math.log1p(-bet) - bet),
        )

    @property
    def value(self) -> float | None:
        """The plain mean, None without numbers."""
        return self.total / self.count if self.count else None

    @property
    def interval(self) -> Interval:
        """Where the mean lies, at every number of values together with probability 1 - alpha."""
        if not self.count:
            return Interval(0.0, 1.0)
        middle = self.bet_on / self.bets
        half = (math.log(2 / self.alpha) + self.spent) / self.bets
        return Interval(max(0.0, middle - half), min(1.0, middle + half))
