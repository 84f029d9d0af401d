"""Activity without new information or change."""

from turnout.signals.course import BARREN, NEUTRAL, WAITING, Mark
from turnout.signals.marks import Marks
from turnout.signals.observation import Observation
from turnout.signals.repetition import Novelty, thing_of

SPAN = 8
"""Results that spinning is judged over; notes and waiting are passed over."""

POLLS = frozenset(
    {"bashoutput", "taskoutput", "read_background", "get_output", "command_status", "get_terminal_output", "wait_agent"}
)
"""Tools that ask how far something in the background is."""

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
    """Marks what brought nothing: the same again, and changes after which the same came out again.

    When something that kept giving the same at last gives another outcome, what led there was not in vain.
    """

    __slots__ = ("_in_vain", "_marks", "_untried")

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._untried: list[int] = []
        self._in_vain: dict[str, list[int]] = {}

    def add(self, at: int, o: Observation, novelty: Novelty, changed: bool, waiting: bool) -> None:
        """Take in result `at`. `changed`: it is a change of the workspace that counts."""
        if waiting:
            self._marks.put(at, WAITING | NEUTRAL)
        elif o.kind == "plan":
            self._marks.put(at, NEUTRAL)
        elif changed or (o.change is not None and o.kind in ("write", "edit")):
            self._untried.append(at)
            if o.kind == "execute" or o.kind == "test":
                self._tried(at, o, novelty)
        elif novelty == "again":
            if o.kind in _LOOKING and not o.fingerprint:
                self._marks.put(at, BARREN)
            else:
                self._tried(at, o, novelty)
        elif o.kind not in _LOOKING:
            self._tried(at, o, novelty)

    def _tried(self, at: int, o: Observation, novelty: Novelty) -> None:
        """Something was run: its outcome tells what the changes before it were good for."""
        if novelty == "again":
            barren = [*self._untried, at]
            for one in barren:
                self._marks.put(one, BARREN)
            of_this = self._in_vain.setdefault(o.call, [])
            of_this += barren
            if o.fingerprint:
                self._in_vain[thing_of(o)] = of_this
            del of_this[: -SPAN * 2]
        elif novelty == "moved":
            for key in (o.call, thing_of(o)):
                for one in self._in_vain.pop(key, ()):
                    self._marks.take(one, BARREN)
        self._untried.clear()


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
