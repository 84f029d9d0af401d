"""How much more would have to be seen. Pure."""

import math
from statistics import NormalDist

from turnout.statistics.interval import CONFIDENCE

POWER = 0.8


def tasks_needed(tasks: int, distance: float, spread: float, power: float = POWER) -> int | None:
    """How many tasks, in all, would show a figure to differ from its bound, if it keeps the distance and the scatter seen so far.

    tasks x ((z(0.975) + z(power)) x standard error / distance)^2, by the normal approximation. None when there is no distance, or
    no scatter to go by.
    """
    if not distance or not spread or math.isnan(spread):
        return None
    normal = NormalDist()
    wanted = normal.inv_cdf((1 + CONFIDENCE) / 2) + normal.inv_cdf(power)
    return math.ceil(tasks * (wanted * spread / abs(distance)) ** 2)
