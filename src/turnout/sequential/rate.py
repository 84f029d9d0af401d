"""Confidence sequences for a success rate, and for the difference of two.

A Beta(1/2, 1/2) mixture of likelihood ratios is a martingale that starts at 1 when the rate is p:

    M_n(p) = B(1/2 + S, 1/2 + n - S) / B(1/2, 1/2) / (p^S (1 - p)^(n - S))

so by Ville's inequality {p : M_n(p) < 1/alpha} holds the rate at all n together with probability 1 - alpha. H. Robbins,
"Statistical methods related to the law of the iterated logarithm", Ann. Math. Stat. 41 (1970), eq. 7-9; S. R. Howard,
A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Ann. Stat. 49 (2021),
section 3.1 (conjugate mixtures). Assumes that outcomes are independent and the rate is the same all the time.
"""

import math

from msgspec import Struct


class Interval(Struct, frozen=True):
    """`low`..`high`, both ends included."""

    low: float
    high: float


def rate(hits: int, of: int, alpha: float = 0.05) -> Interval:
    """Where a success rate lies after `hits` of `of`, at every number of outcomes together with probability 1 - alpha."""
    if not 0 <= hits <= of:
        raise ValueError(f"hits must be from 0 to {of}, got {hits}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if not of:
        return Interval(0.0, 1.0)
    misses, middle = of - hits, hits / of
    low = 0.0 if not hits else _crossing(hits, misses, alpha, 0.0, middle)
    high = 1.0 if not misses else _crossing(hits, misses, alpha, 1.0, middle)
    return Interval(low, high)


def difference(hits: int, of: int, other_hits: int, other_of: int, alpha: float = 0.05) -> Interval:
    """Where the first rate minus the other lies, at all times together with probability 1 - alpha; half of alpha for each."""
    one, other = rate(hits, of, alpha / 2), rate(other_hits, other_of, alpha / 2)
    return Interval(one.low - other.high, one.high - other.low)


def log_evidence(hits: int, misses: int, p: float) -> float:
    """log M_n(p): how much the outcomes speak against a rate of p."""
    found = _log_beta(hits + 0.5, misses + 0.5) - math.log(math.pi)
    if hits:
        found -= hits * math.log(p) if p > 0 else -math.inf
    if misses:
        found -= misses * math.log1p(-p) if p < 1 else -math.inf
    return found


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _crossing(hits: int, misses: int, alpha: float, outer: float, inner: float) -> float:
    """The rate between `outer` (refuted) and `inner` (the share seen, never refuted) where the evidence reaches 1/alpha."""
    limit = -math.log(alpha)
    for _ in range(60):
        middle = (outer + inner) / 2
        if log_evidence(hits, misses, middle) >= limit:
            outer = middle
        else:
            inner = middle
    return outer
