"""The signals that routers decide by: how bad it is, whether anything moves, whether it works, and where that is seen."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnout.signals.course import (
    BARREN,
    CHANGED,
    CITED_AT_MOST,
    LEVELS,
    WAITING,
    WEIGHT,
    Course,
    Mark,
    Place,
    TestRun,
)
from turnout.signals.observation import DEEP, Observation, Signals, ToolKind
from turnout.signals.task.fold import Task
from turnout.signals.task.spinning import SPAN, barren, working
from turnout.signals.task.trend import trend

PATIENCE, STALLED = 6, 24
"""Results without a move up to which nothing is said, and at which a stall is complete."""

COMPACTION_FADES, COMPLAINT_FADES = 4, 8
"""Assistant turns after which a compaction, and a user's complaint, count no more."""

_LOOKING = frozenset({"read", "search"})
_INFORMING = frozenset({"read", "search", "plan"})
_CHANGING = frozenset({"write", "edit"})


class Progress(Struct, frozen=True):
    """The signals a stage decision rests on. Shares and levels are 0..1; counts are of results since the last real user turn.

    Of the newest `results` results: `severity`: the worst failure that nothing later has cleared; `kind`, `culprit`: its error
    kind and what failed; `failures`: uncleared failures; `persistence`: share of the window they take beyond the first;
    `production`: verified changes that still hold and made a difference, among changes and looking around; `tests_passed`: the
    newest test run is green and nothing failed since.
    Of the whole task: `repeated`: how often the most frequent uncleared failure came; `repeated_calls`: how often the most
    frequent call gave the same outcome again (waiting left out); `spinning`: share of the newest results that are activity
    without new information or change, `exploring`: still looking around after something went wrong and nothing was changed
    (0 for requests and agents that only read); `stall`: how long nothing has moved: no change, no better test run, nothing
    cleared; `trend` -1..1: whether the newest series of test runs gets better (positive) or worse, `tests`: that series, oldest
    first; `taken_back`: changes undone by a rollback or a rejected review; `waiting`: the newest results only wait for
    something; `compaction`: 1 right after the history was replaced by a summary, fading; `complaint`: 1 when the user's last
    turn says that it is still wrong, fading, 0 once tests pass.
    `evidence`: for each of these that is not at rest, by name, the results it came from, oldest first, at most `CITED_AT_MOST`.
    """

    results: int = 0
    severity: float = 0.0
    kind: str = ""
    culprit: str = ""
    failures: int = 0
    persistence: float = 0.0
    repeated: int = 0
    spinning: float = 0.0
    exploring: float = 0.0
    production: float = 0.0
    tests_passed: bool = False
    repeated_calls: int = 0
    stall: float = 0.0
    trend: float = 0.0
    tests: tuple[TestRun, ...] = ()
    taken_back: int = 0
    waiting: bool = False
    compaction: float = 0.0
    complaint: float = 0.0
    evidence: dict[str, tuple[Place, ...]] = {}


NO_PROGRESS = Progress()
_NOTHING_DONE = Course()


def progress(signals: Signals, window: int, kinds: Mapping[str, ToolKind] | None = None) -> Progress:
    """What the task so far and its newest `window` results amount to. `kinds`: an operator's kinds by lower-case tool name."""
    seen, course = signals.observations, signals.course
    if not seen and not signals.compacted and not signals.complaint:
        return NO_PROGRESS
    if kinds and any(o.tool.lower() in kinds for o in seen):
        seen, course = tuple(_overridden(o, kinds) for o in seen), None
    if course is None or len(course.marks) != len(seen):
        course = Task(seen).course() if seen else _NOTHING_DONE
    evidence: dict[str, tuple[Place, ...]] = {}
    marks = course.marks
    begin = max(len(seen) - window, 0)
    worst, level, failed, changed, informing = -1, 0, [], [], 0
    for i in range(begin, len(seen)):
        mark = marks[i]
        weight = mark & WEIGHT
        if weight:
            failed.append(i)
            if weight >= level:
                worst, level = i, weight
        elif mark & (CHANGED | BARREN) == CHANGED:
            changed.append(i)
        if seen[i].kind in _INFORMING:
            informing += 1
    culprit = seen[worst] if level else None
    if level:
        evidence["severity"] = (_place(seen[worst]),)
        evidence["failures"] = _places(seen, failed)
        if len(failed) > 1:
            evidence["persistence"] = evidence["failures"]
    if changed:
        evidence["production"] = _places(seen, changed)
    green = _green(seen, marks, begin)
    if green is not None:
        evidence["tests_passed"] = (_place(green),)
    # What went wrong is counted among the rest of the work, so that a failure never looks like production.
    other = informing + len(failed)
    return Progress(
        results=len(seen) - begin,
        severity=LEVELS[level],
        kind=culprit.error_kind if culprit else "",
        culprit=(culprit.target or culprit.tool) if culprit else "",
        failures=len(failed),
        persistence=(len(failed) - 1) / (window - 1) if len(failed) > 1 else 0.0,
        production=len(changed) / (len(changed) + other) if changed else 0.0,
        tests_passed=green is not None,
        repeated=_repeated(course, seen, failed, evidence),
        repeated_calls=_repeated_calls(course, evidence),
        spinning=_spinning(seen, marks, evidence),
        exploring=_exploring(signals, course, seen, evidence),
        stall=_stall(course, evidence),
        trend=_trend(course, evidence),
        tests=course.runs,
        taken_back=_taken_back(course, evidence),
        waiting=_waiting(seen, marks, evidence),
        compaction=_compaction(signals, evidence),
        complaint=_complaint(signals, course, green, evidence),
        evidence=evidence,
    )


_Evidence = dict[str, tuple[Place, ...]]


def _place(o: Observation) -> Place:
    return Place(o.message, o.part, o.call)


def _places(seen: Sequence[Observation], at: Sequence[int]) -> tuple[Place, ...]:
    return tuple(_place(seen[i]) for i in at[-CITED_AT_MOST:])


def _overridden(o: Observation, kinds: Mapping[str, ToolKind]) -> Observation:
    kind = kinds.get(o.tool.lower())
    if kind is None:
        return o
    if kind in _CHANGING:
        return replace(o, kind=kind, change=None if o.status == "failed" else "verified")
    return replace(o, kind=kind, change=None if kind in _INFORMING else o.change)


def _green(seen: Sequence[Observation], marks: Sequence[Mark], begin: int) -> Observation | None:
    """The newest test run of the window if it is green and nothing failed since."""
    for i in range(len(seen) - 1, begin - 1, -1):
        o = seen[i]
        if marks[i] & WEIGHT:
            return None
        if o.tests_passed is not None and o.tests_run:
            return o if o.tests_passed else None
    return None


def _repeated(course: Course, seen: Sequence[Observation], failed: Sequence[int], evidence: _Evidence) -> int:
    """How often the most frequent uncleared failure came: twice in the window, or more often in the task and again now."""
    for repeat in course.failing:
        now = sum(seen[i].fingerprint == repeat.fingerprint for i in failed)
        if now >= 2 or (now and repeat.count > 2):
            evidence["repeated"] = repeat.places
            return repeat.count
    return 0


def _repeated_calls(course: Course, evidence: _Evidence) -> int:
    if course.repeated is None:
        return 0
    evidence["repeated_calls"] = course.repeated.places
    return course.repeated.count


def _spinning(seen: Sequence[Observation], marks: tuple[Mark, ...], evidence: _Evidence) -> float:
    found = barren(marks)
    if not found:
        return 0.0
    evidence["spinning"] = _places(seen, found)
    return len(found) / SPAN


def _exploring(signals: Signals, course: Course, seen: Sequence[Observation], evidence: _Evidence) -> float:
    """Deep in the task, something went wrong, and still only looking around."""
    if signals.depth < DEEP or signals.reads_only or not course.troubled:
        return 0.0
    marks = course.marks
    newest = working(marks)
    if any(marks[i] & CHANGED for i in newest):
        return 0.0
    looking = [i for i in newest if seen[i].kind in _LOOKING and not marks[i] & (BARREN | WEIGHT)]
    if not looking:
        return 0.0
    evidence["exploring"] = _places(seen, looking)
    return len(looking) / SPAN


def _stall(course: Course, evidence: _Evidence) -> float:
    if course.idle <= PATIENCE:
        return 0.0
    if course.moved is not None:
        evidence["stall"] = (course.moved,)
    return min((course.idle - PATIENCE) / (STALLED - PATIENCE), 1.0)


def _trend(course: Course, evidence: _Evidence) -> float:
    value = trend(course.runs)
    if value:
        evidence["trend"] = tuple(run.place for run in course.runs)
    return value


def _taken_back(course: Course, evidence: _Evidence) -> int:
    if course.taken_back:
        evidence["taken_back"] = course.undone_by
    return course.taken_back


def _waiting(seen: Sequence[Observation], marks: Sequence[Mark], evidence: _Evidence) -> bool:
    if not seen or not marks[-1] & WAITING:
        return False
    evidence["waiting"] = (_place(seen[-1]),)
    return True


def _compaction(signals: Signals, evidence: _Evidence) -> float:
    since = signals.since_compaction if signals.since_compaction is not None else signals.depth
    if not signals.compacted or since >= COMPACTION_FADES:
        return 0.0
    if signals.compacted_at is not None:
        evidence["compaction"] = (Place(signals.compacted_at),)
    return 1.0 - since / COMPACTION_FADES


def _complaint(signals: Signals, course: Course, green: Observation | None, evidence: _Evidence) -> float:
    answered = green is not None or (bool(course.runs) and not course.runs[-1].failed)
    if not signals.complaint or answered or signals.depth >= COMPLAINT_FADES:
        return 0.0
    if signals.said_at is not None:
        evidence["complaint"] = (Place(signals.said_at),)
    return 1.0 - signals.depth / COMPLAINT_FADES
