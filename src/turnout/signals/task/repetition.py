"""The same call with the same outcome, counted over a whole task."""

from typing import Literal, TypeAlias

from turnout.signals.calls.harnesses import SHELL_TOOLS
from turnout.signals.course import CITED_AT_MOST, Place, Repeat
from turnout.signals.observation import Observation

Novelty: TypeAlias = Literal["new", "again", "back", "moved"]
"""new: something else than before. again: the outcome it had the last time. back: one it had before the last time. moved: done
before, and the outcome is a new one."""

CUT_OFF = frozenset({"timeout", "download_timeout"})
"""Failures whose output says only how far it got: that it was cut off is the outcome."""

SEVERAL = 5
"""Test runs of at least this many tests are compared by what failed: their output changes with the order and is often cut."""

KNOWN_AT_MOST = 4096
"""Different calls and outcomes kept per task; the oldest are forgotten first."""

RECENT, LATELY = 16, 32
"""Repeated calls looked at, and results after which one that has not come again counts no more."""

_LOOKING = frozenset({"read", "search"})


class _Times:
    """How often one thing came with one outcome, and after how many changes of the workspace it last did."""

    __slots__ = ("at", "changes", "count", "places")

    def __init__(self) -> None:
        self.at = 0
        self.changes = 0
        self.count = 0
        self.places: list[Place] = []


class Repetition:
    """Calls of a task by what they did and what came of it. Adding a result costs the same however long the task is."""

    __slots__ = ("_known", "_recent", "_seen", "_times")

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], _Times] = {}
        self._known: dict[str, _Times] = {}
        self._recent: list[_Times] = []
        self._seen = 0

    def add(self, o: Observation, place: Place, changes: int, counted: bool = True) -> Novelty:
        """Take in a result that came after `changes` changes of the workspace. `counted`: among the repeated calls.

        Looking again after a change is no repetition, nor is what succeeds without a word and changes nothing.
        """
        self._seen += 1
        if not o.call or o.kind == "plan":
            return "new"
        thing = thing_of(o)
        key = (thing, outcome_of(o))
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = _Times()
            novelty: Novelty = self._moved_on(thing, o.call)
            if len(self._times) > KNOWN_AT_MOST:
                self._times.pop(next(iter(self._times)))
        elif times.changes != changes and (expected(o) or (o.change is not None and times.changes + 1 != changes)):
            times.count, times.places, novelty = 0, [], "new"
        else:
            novelty = "again" if self._known.get(thing) is times else "back"
        self._known[thing] = self._known[o.call] = times
        times.at = self._seen
        times.changes = changes
        times.count += 1
        times.places.append(place)
        if len(times.places) > CITED_AT_MOST:
            del times.places[0]
        if counted and times.count > 1:
            if times in self._recent:
                self._recent.remove(times)
            self._recent.append(times)
            del self._recent[:-RECENT]
        return novelty

    def _moved_on(self, thing: str, call: str) -> Novelty:
        """What has another outcome now no longer counts as repeated."""
        before = [times for times in (self._known.get(thing), self._known.get(call)) if times is not None]
        for times in before:
            times.count, times.places = 0, []
        return "moved" if before else "new"

    def most(self) -> Repeat | None:
        """The call that lately gave the same outcome most often, the newest of equals; None when none did twice."""
        found: _Times | None = None
        for times in self._recent:
            if times.count > 1 and self._seen - times.at < LATELY and (found is None or times.count >= found.count):
                found = times
        return Repeat(found.count, tuple(found.places)) if found is not None else None


def expected(o: Observation) -> bool:
    """Whether doing it again after a change is the natural thing to do, and tells nothing."""
    return not o.fingerprint and o.change is None and (o.kind in _LOOKING or not o.size)


def named(o: Observation) -> bool:
    """Whether what was acted on is a named file, rather than a program alone."""
    last = o.target.rpartition(" ")[2]
    return "/" in last or "." in last.strip(".")


def thing_of(o: Observation) -> str:
    """What was done, as far as repetition goes: the call; for failures of a named thing that thing, since flags make no
    difference there, and for tools that are no shell the tool."""
    if o.fingerprint:
        if named(o):
            return f"{o.tool} {o.target}"
        if not o.target and o.tool.lower() not in SHELL_TOOLS:
            return o.tool
    return o.call


def outcome_of(o: Observation) -> str:
    """What came of it: that it was cut off, how an edit or a business tool failed, how many tests did, else the output."""
    if o.error_kind in CUT_OFF:
        return o.error_kind
    if o.fingerprint and o.tool.lower() not in SHELL_TOOLS:
        return o.fingerprint
    if o.fingerprint and o.tests_run and o.tests_run >= SEVERAL:
        return f"{o.fingerprint} {o.tests_failed} {o.tests_run}"
    # Pictures and files have no digest: each is an outcome of its own.
    return o.digest or f"{o.message}.{o.part}"
