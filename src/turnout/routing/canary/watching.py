"""What is watched of a canary, and how much worse the candidate may be before it is stopped."""

import math
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

Metric: TypeAlias = Literal["success", "uncleared", "repeated", "errors", "cost", "latency", "judges", "cache"]
"""`success`: of outcomes that were reported. `uncleared`: lanes whose last tool result had failed. `repeated`: lanes in which a
failure came back the same. `errors`: lanes with a turn that ended in an error or was cut. `cost`: of a lane. `latency`: of a
lane's turns, mean. `judges`: lanes in which a judge gave no verdict. `cache`: share of the input that was read from the cache."""
METRICS: tuple[Metric, ...] = get_args(Metric)
MARGINS: dict[Metric, float] = {
    "success": 0.0,
    "uncleared": 0.0,
    "repeated": 0.0,
    "errors": 0.0,
    "cost": 0.05,
    "latency": 0.05,
    "judges": 0.02,
    "cache": 0.05,
}
"""By how much the candidate may do worse unless something else is configured, on a scale from 0 to 1."""


class Watching(Struct, frozen=True, forbid_unknown_fields=True):
    """When a canary stops by itself.

    `alpha`: the probability with which a candidate that does no worse is ever stopped, all metrics together, however long it
    runs (default 0.05). `margins`: by how much it may do worse, by metric, on a scale from 0 to 1; a metric left out has its
    default. `metrics`: which ones are watched (default all). `settle_s`: seconds without a turn after which a lane is over and
    counts (default 600). `scale_lanes`: the first lanes, of both arms, that set the scale of cost and latency and do not count
    for them (default 50): 1 is the value that a twentieth of them exceeds.
    """

    alpha: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.05
    metrics: tuple[Metric, ...] = METRICS
    margins: dict[Metric, float] = {}
    settle_s: Annotated[float, Meta(gt=0.0)] = 600.0
    scale_lanes: Annotated[int, Meta(ge=1)] = 50

    def __post_init__(self) -> None:
        if not self.metrics:
            raise ValueError("metrics: name at least one, or leave it out for all of them")
        for name, margin in self.margins.items():
            if not math.isfinite(margin) or not 0.0 <= margin < 1.0:
                raise ValueError(f"margins: {name} must be a number from 0 to below 1")

    def margin(self, metric: Metric) -> float:
        """By how much the candidate may do worse in `metric`."""
        return self.margins.get(metric, MARGINS[metric])
