"""Activity without new information or change."""

from turnout.signals.course import BARREN, NEUTRAL, WAITING, Mark
from turnout.signals.observation import Observation
from turnout.signals.task.marks import Marks
from turnout.signals.task.repetition import CUT_OFF, Novelty, thing_of

SPAN = 8
"""Results that spinning is judged over; notes and waiting are passed over."""

POLLS = frozenset(
    {"bashoutput", "taskoutput", "read_background", "get_output", "command_status", "get_terminal_output", "wait_agent"}
)
"""Tools that ask how far something in the background is."""

LONG = 3
"""The same outcome this often in a row: what was changed between was in vain; of a failure the first one too."""

_WAITING = frozenset({"waiting", "pending"})
_LOOKING = frozenset({"read", "search"})


def may_wait(o: Observation) -> bool:
    """Whether doing this again may only be waiting for something."""
    return o.waits or o.error_kind in _WAITING or o.tool.lower() in POLLS


def waits(o: Observation, novelty: Novelty) -> bool:
    """Whether a result only shows that something is waited for."""
    if o.error_kind in _WAITING or (o.waits and o.target.partition(" ")[0] in ("sleep", "")):
        return True
    return novelty == "again" and may_wait(o) and o.error_class in ("none", "informational")


class Spinning:
    """Marks what brought nothing: the same again, changes after which the same came out `LONG` times in a row, and one attempt
    after another that was cut off. To try once more after a change is work, whatever comes out.

    When something that kept giving the same at last gives another outcome, what led there was not in vain. `effective`:
    how often the workspace changed, changes in vain left out.
    """

    __slots__ = ("_in_vain", "_marks", "_series", "_stuck", "_untried", "effective")

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._untried: list[int] = []
        self._in_vain: dict[str, list[int]] = {}
        self._series: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        self._stuck: list[int] = []
        self.effective = 0

    def add(self, at: int, o: Observation, novelty: Novelty, waiting: bool) -> None:
        """Take in result `at`."""
        if waiting:
            self._marks.put(at, WAITING | NEUTRAL)
        elif o.kind == "plan":
            self._marks.put(at, NEUTRAL)
        elif o.change is not None and o.kind in ("write", "edit"):
            if novelty == "again":
                self._marks.put(at, BARREN)
            else:
                self._changed(at)
        elif o.kind in _LOOKING and not o.fingerprint:
            if novelty == "again":
                self._marks.put(at, BARREN)
        else:
            if o.change is not None:
                self._changed(at)
            self._tried(at, o, novelty)

    def _changed(self, at: int) -> None:
        self._untried.append(at)
        self.effective += 1

    def _tried(self, at: int, o: Observation, novelty: Novelty) -> None:
        """Something was run: its outcome tells what the changes before it were good for."""
        stuck = o.error_kind in CUT_OFF and o.status == "failed"
        # Tests that stay green after a change say that nothing broke.
        verified = bool(o.tests_passed) and bool(self._untried)
        if novelty == "again" and not verified:
            first, count, pending = self._series.get(thing_of(o), (at, 1, ()))
            pending = (*pending, *self._untried, at)
            if count + 1 >= LONG or not self._untried:
                if o.fingerprint and count + 1 >= LONG:
                    pending = (first, *pending)
                self._condemn(o, list(pending))
                pending = ()
            self._series[thing_of(o)] = (first, count + 1, pending)
            self.effective -= len(self._untried)
        elif stuck and self._stuck:
            # What the first failure told is not worth more for being told again.
            for one in (*self._untried, at, *(self._stuck[:1] if len(self._stuck) + 1 >= LONG else ())):
                self._marks.put(one, BARREN)
        elif novelty == "moved":
            for key in (o.call, thing_of(o)):
                for one in self._in_vain.pop(key, ()):
                    self._marks.take(one, BARREN)
        if novelty != "again":
            self._series[thing_of(o)] = (at, 1, ())
        if stuck:
            self._stuck.append(at)
        elif o.kind in ("execute", "test") and o.status != "failed":
            self._stuck.clear()
        self._untried.clear()

    def _condemn(self, o: Observation, barren: list[int]) -> None:
        for one in barren:
            self._marks.put(one, BARREN)
        of_this = self._in_vain.setdefault(o.call, [])
        of_this += barren
        del of_this[: -SPAN * 2]
        self._in_vain[thing_of(o)] = of_this


def level(marks: tuple[Mark, ...]) -> float:
    """0..1: the share of the newest `SPAN` results that brought nothing."""
    return len(barren(marks)) / SPAN


def barren(marks: tuple[Mark, ...]) -> list[int]:
    """Which of `marks` are the barren ones among the newest `SPAN`, as negative indices, oldest first."""
    return [i for i in working(marks) if marks[i] & BARREN]


def working(marks: tuple[Mark, ...]) -> list[int]:
    """The newest `SPAN` results that are neither notes nor waiting, as negative indices, oldest first."""
    found = []
    for i in range(-1, -len(marks) - 1, -1):
        if not marks[i] & NEUTRAL:
            found.append(i)
            if len(found) == SPAN:
                break
    return found[::-1]
