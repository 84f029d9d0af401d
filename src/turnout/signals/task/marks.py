"""The marks of the newest results of a task, which later results may still change."""

from turnout.signals.course import BARREN, WEIGHT, Mark
from turnout.signals.observation import OBSERVED_AT_MOST


class Marks:
    """Marks by the ordinal of a result; only the newest `OBSERVED_AT_MOST` are sure to be kept."""

    __slots__ = ("_first", "_kept")

    def __init__(self) -> None:
        self._kept: list[Mark] = []
        self._first = 0

    def append(self) -> int:
        """Make room for the next result; its ordinal."""
        if len(self._kept) >= 2 * OBSERVED_AT_MOST:
            del self._kept[:OBSERVED_AT_MOST]
            self._first += OBSERVED_AT_MOST
        self._kept.append(0)
        return self._first + len(self._kept) - 1

    def put(self, at: int, flags: Mark) -> None:
        """Set `flags` of result `at`."""
        if at >= self._first:
            self._kept[at - self._first] |= flags

    def take(self, at: int, flags: Mark) -> bool:
        """Clear `flags` of result `at`; whether any was set."""
        if at < self._first:
            return False
        before = self._kept[at - self._first]
        self._kept[at - self._first] = before & ~flags
        return bool(before & flags)

    def clear(self, at: int) -> None:
        """The failure of result `at` is over, and so it was not in vain."""
        self.take(at, WEIGHT | BARREN)

    def newest(self) -> tuple[Mark, ...]:
        """The marks of the newest results, oldest first."""
        return tuple(self._kept[-OBSERVED_AT_MOST:])
