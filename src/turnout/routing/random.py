"""A target drawn by weight: the control group every other router is compared with."""

import math
from typing import Literal

from msgspec import Struct

from turnout.routing.core import Forward, TargetName, Turn, Why


class Random(Struct, frozen=True, tag="random", tag_field="type", forbid_unknown_fields=True):
    """Sends each turn, or each lane, to a target drawn by weight. The same ids and seed draw the same target again.

    `targets`: names of the targets. `weights`: one number per target, 0 or more, in any unit (default: all the same); a
    target of weight zero is never used. `seed`: another seed, another draw (default 0). `per`: `turn` draws for each turn
    (default), `lane` once for each agent of a session. `fallbacks`: targets tried in order when the drawn one fails before
    the first content (default none). The probability of the drawn target is recorded with the turn.
    """

    targets: tuple[TargetName, ...]
    weights: tuple[float, ...] = ()
    seed: int = 0
    per: Literal["turn", "lane"] = "turn"
    fallbacks: tuple[TargetName, ...] = ()

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError("targets: name at least one target")
        if self.weights and len(self.weights) != len(self.targets):
            raise ValueError(
                f"weights: {len(self.weights)} numbers for {len(self.targets)} targets; give one per target"
            )
        if any(not math.isfinite(w) or w < 0 for w in self.weights):
            raise ValueError("weights: every weight must be a number of 0 or more")
        if self.weights and not sum(self.weights) > 0:
            raise ValueError("weights: at least one weight must be above 0")

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: the target of the largest weight."""
        weights = self.weights or (1.0,) * len(self.targets)
        return self.targets[weights.index(max(weights))]

    def route(self, turn: Turn) -> Forward:
        """A target drawn by weight."""
        weights = self.weights or (1.0,) * len(self.targets)
        total = math.fsum(weights)
        left = turn.draw(f"random:{self.seed}", self.per) * total
        chosen = -1
        for i, weight in enumerate(weights):
            if weight > 0:
                chosen = i
                if left < weight:
                    break
                left -= weight
        target, share = self.targets[chosen], weights[chosen] / total
        why = Why("random", f"drawn for this {self.per} with probability {share:.3g}", values={"share": share})
        return Forward(target, why, tuple(t for t in self.fallbacks if t != target), propensity=share)
