"""Whether one of two arms does worse, tested after every outcome: a bet on the arm that a coin chose.

Outcome y in [0, 1] (1 = good) of a unit whose arm was drawn with probability p for the candidate. Let m be a guess of the mean
of both arms from outcomes before this one, and a = 1 for the candidate, 0 for the incumbent. A bet that the candidate is worse
by d pays

    E = 1 - d (a - p) (y - m) / (m (1 - m))

which is q(y | a) / (p q(y | candidate) + (1 - p) q(y | incumbent)) for success rates m - (1 - p) d and m + p d, extended to
[0, 1] by linearity. If the candidate is not worse, its expectation is at most 1 whatever the guess, whatever the rates and
however they change with time, so the product over all outcomes, averaged over several d, stays below 1/alpha for ever with
probability 1 - alpha (Ville's inequality). R. J. Turner, A. Ly, P. D. Grünwald, "Generic e-variables for exact sequential
k-sample tests that allow for optional stopping", J. Stat. Plan. Inference 230 (2024), eq. 2 and theorem 1, with the arm drawn
for each unit instead of blocks of fixed size; bets on means of bounded numbers: I. Waudby-Smith, A. Ramdas, J. R. Stat. Soc. B
86 (2024), section 4.
"""

from collections.abc import Sequence

from msgspec import Struct

EFFECTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Differences bet on, an equal part of the stake each."""
_MOST = 0.9
"""Share of what can be lost at most in one bet."""


class Evidence(Struct, frozen=True):
    """All that a `Worse` knows, to go on from. `stakes`: what each part of the stake has become."""

    stakes: tuple[float, ...]
    total: float
    count: int
    peak: float


class Worse:
    """Evidence that the candidate's mean outcome lies more than `margin` below the incumbent's.

    `evidence`: what a stake of 1 has become. The chance that it ever reaches 1/alpha is at most alpha when the candidate is not
    worse by more than the margin. Each unit counts once, and its arm must have been drawn with the probability that is told.
    """

    __slots__ = ("_effects", "_margin", "_stakes", "_total", "count", "peak")

    def __init__(self, margin: float = 0.0, effects: Sequence[float] = EFFECTS) -> None:
        if not 0.0 <= margin < 1.0:
            raise ValueError(f"margin must be from 0 to below 1, got {margin}")
        self._effects = tuple(effects)
        self._margin = margin
        self._stakes = [1.0 / len(self._effects)] * len(self._effects)
        self._total = 0.0
        self.count = 0
        self.peak = 1.0

    def add(self, candidate: bool, value: float, share: float) -> None:
        """One outcome. `value` in [0, 1], 1 = good; `share`: the probability with which a unit goes to the candidate.
        Raises ValueError."""
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"a value must be from 0 to 1, got {value}")
        if not 0.0 < share < 1.0:
            raise ValueError(f"a share must be between 0 and 1, got {share}")
        if self._margin:
            # Both are shrunk alike; the candidate starts `margin` higher, so that it is worse only by more than that.
            value = (value + self._margin if candidate else value) / (1.0 + self._margin)
        mean = (self._total + 1.0) / (self.count + 2.0)
        surprise = ((1.0 if candidate else 0.0) - share) * (value - mean) / (mean * (1.0 - mean))
        most = _MOST * min(mean / (1.0 - share), (1.0 - mean) / share)
        stakes = self._stakes
        for index, effect in enumerate(self._effects):
            stakes[index] *= 1.0 - (effect if effect < most else most) * surprise
        self._total += value
        self.count += 1
        evidence = sum(stakes)
        if evidence > self.peak:
            self.peak = evidence

    def kept(self) -> Evidence:
        """What it knows by now."""
        return Evidence(tuple(self._stakes), self._total, self.count, self.peak)

    def resume(self, evidence: Evidence) -> None:
        """Go on from there. Raises ValueError for evidence on other effects."""
        if len(evidence.stakes) != len(self._effects):
            raise ValueError(f"evidence on {len(evidence.stakes)} effects, expected {len(self._effects)}")
        self._stakes = list(evidence.stakes)
        self._total, self.count, self.peak = evidence.total, evidence.count, evidence.peak

    @property
    def evidence(self) -> float:
        """What a stake of 1 on the candidate being worse has become."""
        return sum(self._stakes)
