"""Paired tests: whether two ways differ on the same tasks. Pure; the dice are seeded."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy.stats import binomtest

from turnout.statistics.bootstrap import RESAMPLES, SEED


class PairedTest(Struct, frozen=True):
    """A two-sided paired test. `name` says which; `only_first`, `only_second`: pairs in which just one side succeeds."""

    name: str
    p: float | None
    pairs: int
    only_first: int
    only_second: int


def mcnemar(pairs: Sequence[tuple[bool, bool]]) -> PairedTest:
    """McNemar's exact test: whether the two sides succeed equally often, from the pairs in which they differ. Pairs must be
    independent: one for each task."""
    first = sum(a and not b for a, b in pairs)
    second = sum(b and not a for a, b in pairs)
    p = float(binomtest(first, first + second, 0.5).pvalue) if first + second else 1.0 if pairs else None
    return PairedTest("McNemar, exact, two-sided", p, len(pairs), first, second)


def sign_flip(differences: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> float | None:
    """Two-sided p of a sign-flip permutation test: how often tasks whose differences have random signs add up to as much.

    `differences`: one for each task, such as success rates over trials. None without any.
    """
    values = np.asarray([d for d in differences if d], float)
    if not len(differences):
        return None
    if not len(values):
        return 1.0
    seen = abs(values.sum())
    dice = np.random.default_rng(seed)
    extreme = 1
    for start in range(0, resamples, 1000):
        signs = dice.integers(0, 2, (min(1000, resamples - start), len(values))) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ values) >= seen - 1e-12))
    return extreme / (resamples + 1)
