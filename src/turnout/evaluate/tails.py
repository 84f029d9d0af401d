"""How costs are spread over units. Pure."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Tails(Struct, frozen=True):
    """How costs are spread over units, USD. Percentiles interpolate between the two nearest. `dearest`: how many units are
    the dearest 1 % (at least one), `dearest_share` their share of all cost, `mean_without`: the mean of the rest."""

    p50: float
    p90: float
    p95: float
    max: float
    dearest: int
    dearest_share: float | None
    mean_without: float | None


def tails(costs: Sequence[float]) -> Tails | None:
    """How costs are spread; None without any."""
    if not costs:
        return None
    values = np.sort(np.asarray(costs, float))
    p50, p90, p95 = (float(x) for x in np.quantile(values, [0.5, 0.9, 0.95]))
    dearest = math.ceil(len(values) / 100)
    total = float(values.sum())
    rest = values[: len(values) - dearest]
    share = float(values[len(values) - dearest :].sum()) / total if total else None
    return Tails(p50, p90, p95, float(values[-1]), dearest, share, float(rest.mean()) if len(rest) else None)
