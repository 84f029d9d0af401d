"""A task folded result by result: a new result costs the same however many came before."""

from collections.abc import Iterable

from turnout.signals.course import Course, Place
from turnout.signals.observation import Observation
from turnout.signals.task.changes import Changes
from turnout.signals.task.failures import Failures
from turnout.signals.task.marks import Marks
from turnout.signals.task.repetition import Repetition
from turnout.signals.task.spinning import Spinning, may_wait, waits
from turnout.signals.task.trend import Trend


class Task:
    """What happened in one agent's task since the last real user turn."""

    __slots__ = (
        "_attempted",
        "_begun",
        "_changes",
        "_count",
        "_failures",
        "_marks",
        "_moved",
        "_quiet",
        "_repetition",
        "_spinning",
        "_tentative",
        "_trend",
    )

    def __init__(self, seen: Iterable[Observation] = ()) -> None:
        self._marks = Marks()
        self._failures = Failures(self._marks)
        self._repetition = Repetition()
        self._trend = Trend()
        self._changes = Changes(self._marks)
        self._spinning = Spinning(self._marks)
        self._count = 0
        # Results that count for standing still: where it began, what moved last (for good, or until it is tried).
        self._quiet = 0
        self._begun = -1
        self._moved: tuple[int, Place] | None = None
        self._tentative: tuple[int, Place] | None = None
        self._attempted = False
        for o in seen:
            self.add(o)

    def add(self, o: Observation) -> None:
        """Take in the next result."""
        at = self._marks.append()
        self._count += 1
        place = Place(o.message, o.part, o.call)
        tendency = self._trend.add(o, place)
        failed, cleared = self._failures.add(at, o, tendency > 0)
        changes = self._spinning.effective
        changed = self._changes.add(at, o, place)
        novelty = self._repetition.add(o, place, changes, not may_wait(o))
        waiting = not failed and waits(o, novelty)
        self._spinning.add(at, o, novelty, waiting)
        if o.change is not None or o.kind in ("write", "edit"):
            self._attempted = True
        if waiting:
            return
        self._quiet += 1
        if self._begun < 0 and (failed or self._attempted):
            self._begun = self._quiet
        if changed:
            self._tentative = (self._quiet, place)
        elif o.kind in ("test", "execute"):
            if (novelty != "again" or o.tests_passed) and self._tentative is not None:
                self._moved = self._tentative
            self._tentative = None
        if cleared or tendency > 0 or (o.tests_passed and novelty != "again"):
            self._moved = (self._quiet, place)

    def course(self) -> Course:
        """How it went so far."""
        moved = self._tentative or self._moved
        since = max(moved[0] if moved else 0, self._begun - 1)
        return Course(
            self._count,
            self._marks.newest(),
            self._failures.repeats(),
            self._repetition.most(),
            self._trend.runs(),
            self._changes.undone,
            tuple(self._changes.by),
            self._quiet - since if self._begun >= 0 else 0,
            moved[1] if moved else None,
            self._attempted,
            bool(self._failures.open),
        )
