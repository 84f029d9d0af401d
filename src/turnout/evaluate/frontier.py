"""The trade of success against cost: points, the line of random mixes, and who is on the frontier. Pure."""

from collections.abc import Sequence

from msgspec import Struct


class Point(Struct, frozen=True):
    """One way of choosing. `success` in [0, 1] and `cost_usd` per unit, both over the units whose costs are known.
    `on_frontier`: nothing here is as good for less. `above_mix`: success above that of a random mix of the two models at the
    same cost; None outside of the line."""

    name: str
    success: float
    cost_usd: float
    assumption: str = ""
    on_frontier: bool = False
    above_mix: float | None = None


class Frontier(Struct, frozen=True):
    """`points` by cost; `n` units; `mix`: the ends of the line of random mixes, (cost, success) each."""

    n: int
    points: tuple[Point, ...]
    mix: tuple[tuple[float, float], tuple[float, float]]


def frontier(points: Sequence[Point], capable: Point, efficient: Point, n: int) -> Frontier:
    """Order points by cost, and say which are on the frontier and how far above the line from efficient to capable."""
    placed = [
        Point(
            point.name,
            point.success,
            point.cost_usd,
            point.assumption,
            not any(_beats(other, point) for other in points),
            above_mix(point, capable, efficient),
        )
        for point in sorted(points, key=lambda point: (point.cost_usd, -point.success))
    ]
    ends = ((efficient.cost_usd, efficient.success), (capable.cost_usd, capable.success))
    return Frontier(n, tuple(placed), ends)


def above_mix(point: Point, capable: Point, efficient: Point) -> float | None:
    """How much more success than a random mix of the two models that costs the same."""
    low, high = sorted((capable.cost_usd, efficient.cost_usd))
    if not low <= point.cost_usd <= high or low == high:
        return None
    share = (point.cost_usd - efficient.cost_usd) / (capable.cost_usd - efficient.cost_usd)
    return point.success - (efficient.success + share * (capable.success - efficient.success))


def _beats(other: Point, point: Point) -> bool:
    no_worse = other.success >= point.success and other.cost_usd <= point.cost_usd
    return no_worse and (other.success > point.success or other.cost_usd < point.cost_usd)
