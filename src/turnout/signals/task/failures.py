"""Failures of a task and what answers them."""

from collections.abc import Sequence

from turnout.signals.calls.harnesses import SHELL_TOOLS
from turnout.signals.course import CITED_AT_MOST, CRITICAL, HARD, SOFT, Mark, Place, Repeat
from turnout.signals.observation import Observation
from turnout.signals.task.marks import Marks

SOFT_KINDS = frozenset({"edit_failed", "usage", "exit_nonzero", "no_such_file", "lint", "permission_denied"})
"""Kinds that are everyday friction the first time: soft, and hard when they come again."""

WAITS_AT_MOST = 5
"""Waiting in vain for something more often than this is no longer patience."""

OPEN_AT_MOST = 64
"""Uncleared failures kept; the oldest are forgotten first."""

_CHANGING = frozenset({"write", "edit"})
_RUNS = frozenset({"test", "execute"})
_ANSWERED_BY_TESTS = frozenset({"test", "execute", "edit"})


class Failures:
    """The failures nothing has cleared yet, oldest first, and every fingerprint the task has shown."""

    __slots__ = ("_marks", "_met", "_waits", "open")

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._met: set[str] = set()
        self._waits: dict[str, int] = {}
        self.open: list[tuple[int, Observation]] = []

    def add(self, at: int, o: Observation, falling: bool) -> tuple[bool, bool]:
        """Take in result `at`; whether it is a failure that counts, and whether it clears earlier ones.

        `falling`: a red test run with fewer failures than the one before.
        """
        cleared = o.status != "failed" and bool(self.open) and self._clear(o)
        if falling:
            self.forget(o.target)
        weight = self._weight(o, falling)
        if not weight:
            return False, cleared
        if o.fingerprint:
            self._met.add(o.fingerprint)
        self._marks.put(at, weight)
        self.open.append((at, o))
        if len(self.open) > OPEN_AT_MOST:
            del self.open[0]
        return True, cleared

    def forget(self, target: str) -> None:
        """The test failures of `target` so far are being worked off."""
        kept = []
        for at, failure in self.open:
            if failure.tests_failed is not None and failure.target == target:
                self._marks.clear(at)
            else:
                kept.append((at, failure))
        self.open = kept

    def repeats(self) -> tuple[Repeat, ...]:
        """The uncleared failures that came more than once, most frequent first."""
        if len(self.open) < 2:
            return ()
        by_print: dict[str, list[Observation]] = {}
        for _, failure in self.open:
            if failure.fingerprint:
                by_print.setdefault(failure.fingerprint, []).append(failure)
        found = [
            Repeat(len(of), tuple(Place(o.message, o.part, o.call) for o in of[-CITED_AT_MOST:]), name)
            for name, of in by_print.items()
            if len(of) > 1
        ]
        return tuple(sorted(found, key=lambda r: -r.count)[:4]) if found else ()

    def _clear(self, o: Observation) -> bool:
        kept = []
        for at, failure in self.open:
            if clears(o, failure):
                self._marks.clear(at)
            else:
                kept.append((at, failure))
        if len(kept) == len(self.open):
            return False
        self.open = kept
        return True

    def _weight(self, o: Observation, falling: bool) -> Mark:
        if o.error_class == "capability":
            if falling:
                return SOFT
            return SOFT if o.error_kind in SOFT_KINDS and o.fingerprint not in self._met else HARD
        if o.error_class == "critical":
            return CRITICAL
        if o.error_kind == "waiting":
            waits = self._waits[o.call] = self._waits.get(o.call, 0) + 1
            return HARD if waits > WAITS_AT_MOST else 0
        return 0


def clears(o: Observation, failure: Observation) -> bool:
    """Whether the later result `o` shows that `failure` is over: the same call went well, or the same thing run or changed,
    or the same tool of a business agent; or a test run is green."""
    if o.status == "failed":
        return False
    ok = o.status == "ok"
    # Where only the text told the failure, the same call without such a text is as good as a success.
    if o.call == failure.call and o.call and (ok or failure.evidence == "text"):
        return True
    if o.tests_passed and failure.kind in _ANSWERED_BY_TESTS and (failure.kind == "test" or failure.change is None):
        return True
    if failure.target:
        if o.target != failure.target:
            return False
        if failure.kind in _CHANGING and o.change == "verified":
            return True
        return ok and o.kind == failure.kind and o.kind in _RUNS
    return ok and o.tool == failure.tool and not o.target and o.tool.lower() not in SHELL_TOOLS


def cleared(failure: Observation, later: Sequence[Observation]) -> bool:
    """Whether anything `later` shows that `failure` is over."""
    return any(clears(o, failure) for o in later)
