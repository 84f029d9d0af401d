"""Whether the tests of a task get better or worse."""

from turnout.signals.course import CITED_AT_MOST, Place, TestRun
from turnout.signals.observation import Observation

LOOKED_AT = 4
"""Runs the trend is taken over."""


class Trend:
    """Test runs by what they run; the newest series is what counts."""

    __slots__ = ("_newest", "_series")

    def __init__(self) -> None:
        self._series: dict[str, list[TestRun]] = {}
        self._newest: list[TestRun] = []

    def add(self, o: Observation, place: Place) -> int:
        """Take in a result. 1: fewer tests fail than in the run before of the same tests, -1: more, 0: neither, or no run."""
        if o.tests_failed is None or not o.tests_run:
            return 0
        series = self._series.setdefault(o.target, [])
        run = TestRun(o.tests_run, o.tests_failed, place)
        before = series[-1] if series else None
        series.append(run)
        if len(series) > CITED_AT_MOST:
            del series[0]
        self._newest = series
        return 0 if before is None else compare(before, run)

    def runs(self) -> tuple[TestRun, ...]:
        """The newest series, oldest first."""
        return tuple(self._newest)


def compare(before: TestRun, after: TestRun) -> int:
    """1 when `after` is better than `before`, -1 when worse, else 0. A run of far fewer tests is no better for failing less."""
    if after.failed < before.failed:
        return 1 if 2 * after.run >= before.run else 0
    return -1 if after.failed > before.failed else 0


def trend(runs: tuple[TestRun, ...]) -> float:
    """-1..1 over the newest runs of a series: the share by which failures fell (positive) or grew."""
    if len(runs) < 2:
        return 0.0
    first, last = runs[-LOOKED_AT:][0], runs[-1]
    if not compare(first, last):
        return 0.0
    return (first.failed - last.failed) / max(first.failed, last.failed)
