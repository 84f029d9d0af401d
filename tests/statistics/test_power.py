"""The number of tasks needed."""

import math

from turnout.statistics.power import tasks_needed


def test_the_tasks_needed_follow_the_formula() -> None:
    # (1.95996 + 0.84162)^2 = 7.8489; 100 tasks x 7.8489 x (0.02 / 0.05)^2 = 125.58.
    assert tasks_needed(100, 0.05, 0.02) == 126
    assert tasks_needed(100, -0.05, 0.02) == 126
    assert tasks_needed(100, 0.0, 0.02) is None
    assert tasks_needed(100, 0.05, 0.0) is None
    assert tasks_needed(100, 0.05, math.nan) is None
