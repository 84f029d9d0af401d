"""Changes of a task that hold, and what takes them back."""

from collections.abc import Iterable

from turnout.signals.course import CHANGED, CITED_AT_MOST, UNDONE, Place
from turnout.signals.observation import Observation
from turnout.signals.task.marks import Marks


class Changes:
    """Verified changes, in order, and how many were undone by a rollback or a rejected review.

    `number`: how often the workspace may have become another one, rollbacks included.
    """

    __slots__ = ("_held", "_marks", "_stashed", "by", "number", "undone")

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._held: list[tuple[int, str]] = []
        self._stashed: list[tuple[int, str]] = []
        self.number = 0
        self.undone = 0
        self.by: list[Place] = []

    def add(self, at: int, o: Observation, place: Place) -> bool:
        """Take in result `at`; whether it is a verified change."""
        if o.takes_back:
            self._take_back(o, place)
            return False
        if o.change is None:
            return False
        self.number += 1
        if o.change != "verified":
            return False
        self._marks.put(at, CHANGED)
        self._held.append((at, o.target))
        return True

    def _take_back(self, o: Observation, place: Place) -> None:
        if o.takes_back == "unstash":
            self._put_back()
            return
        what, *paths = o.takes_back.split(" ")
        if what == "undo":
            gone = [held for held in self._held if concerns((o.target,), held[1])][-1:]
        else:
            gone = [held for held in self._held if concerns(paths, held[1])]
        self.number += 1
        if not gone:
            return
        for at, _ in gone:
            self._marks.take(at, CHANGED)
            self._marks.put(at, UNDONE)
        if what == "stash":
            self._stashed = gone
        self._held = [held for held in self._held if held not in gone]
        self.undone += len(gone)
        self.by.append(place)
        del self.by[:-CITED_AT_MOST]

    def _put_back(self) -> None:
        self.number += 1
        for at, _ in self._stashed:
            self._marks.take(at, UNDONE)
            self._marks.put(at, CHANGED)
        self._held = self._stashed + self._held
        if self._stashed:
            self.undone -= len(self._stashed)
            del self.by[-1:]
        self._stashed = []


def concerns(paths: Iterable[str], changed: str) -> bool:
    """Whether taking back `paths` (none: everything) undoes a change of `changed`, a path or a program with a path."""
    other = changed.split(" ")[-1].rpartition("/")[2]
    names = [name for path in paths if (name := path.rstrip("/").rpartition("/")[2])]
    return not names or not other or other in names or any("." not in name for name in names)
