"""What the newest results amount to: how bad, whether anything moves, whether it works."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from turnout.signals.course import Place, TestRun
from turnout.signals.observation import Observation, Signals, ToolKind

SEVERITY: dict[str, float] = {"none": 0.0, "informational": 0.0, "capability": 0.7, "critical": 1.0}
"""Severity of an error class: 0.7 is hard, 1.0 critical."""

SOFT = 0.3
SOFT_KINDS = frozenset({"edit_failed", "usage", "exit_nonzero", "no_such_file", "lint", "permission_denied"})
"""Kinds that are everyday friction the first time: soft, and hard when they come again."""

LOOKED_BACK = 12
"""Results in which the same failure is looked for, beyond the window."""

WAITS_AT_MOST = 5
"""Waiting for something more often than this is no longer patience."""

DEEP = 8
"""Assistant turns since the last real user turn from which a lack of progress counts."""

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


CITED_AT_MOST = 8
"""Places kept per signal."""

NO_PROGRESS = Progress()


def progress(signals: Signals, window: int, kinds: Mapping[str, ToolKind] | None = None) -> Progress:
    """What the newest `window` results of `signals` amount to. `kinds`: an operator's kinds by lower-case tool name."""
    seen = signals.observations
    if not seen:
        return NO_PROGRESS
    recent = seen[-window:]
    begin = len(seen) - len(recent)
    weights = [_severity(seen, i) for i in range(max(0, len(seen) - LOOKED_BACK), len(seen))]
    offset = len(seen) - len(weights)
    of_window = [weights[i - offset] if i >= offset else _severity(seen, i) for i in range(begin, len(seen))]
    worst = max(range(len(recent)), key=lambda i: (of_window[i], i))
    severity = of_window[worst]
    failures = sum(w > 0 for w in of_window)
    changes = sum(_changed(o, kinds) for o in recent)
    # What went wrong is counted among the rest of the work, so that a failure never looks like production.
    other = sum(_kind(o, kinds) in _INFORMING for o in recent) + failures
    stalled = signals.depth >= DEEP and not changes
    stale = (
        sum(of_window[i] > 0 or _known(seen, begin + i) for i in range(len(recent))) / len(recent) if stalled else 0.0
    )
    looking = sum(_kind(o, kinds) in _INFORMING for o in recent) / len(recent) if stalled else 0.0
    troubled = any(_severity(seen, i) > 0 for i in range(len(seen))) if looking else False
    return Progress(
        results=len(recent),
        severity=severity,
        kind=recent[worst].error_kind if severity else "",
        culprit=(recent[worst].target or recent[worst].tool) if severity else "",
        failures=failures,
        persistence=(failures - 1) / (window - 1) if failures > 1 else 0.0,
        repeated=_repeated(seen, weights, offset, begin),
        spinning=stale,
        exploring=min(looking, 1.0 - stale) if troubled else 0.0,
        production=changes / (changes + other) if changes else 0.0,
        tests_passed=_green(recent, of_window),
    )


def _kind(o: Observation, kinds: Mapping[str, ToolKind] | None) -> ToolKind:
    return kinds.get(o.tool.lower(), o.kind) if kinds else o.kind


def _changed(o: Observation, kinds: Mapping[str, ToolKind] | None) -> bool:
    if o.change == "verified":
        return True
    return bool(kinds) and o.status != "failed" and _kind(o, kinds) in _CHANGING and o.tool.lower() in (kinds or {})


def _severity(seen: Sequence[Observation], at: int) -> float:
    """How bad result `at` still is: 0 once something later has cleared it."""
    o = seen[at]
    weight = SEVERITY[o.error_class]
    if not weight:
        if o.error_kind == "waiting" and sum(x.call == o.call for x in seen[: at + 1]) > WAITS_AT_MOST:
            return SEVERITY["capability"]
        return 0.0
    if cleared(o, seen[at + 1 :]):
        return 0.0
    if o.error_class == "critical":
        return weight
    if o.error_kind in SOFT_KINDS and not any(x.fingerprint == o.fingerprint for x in seen[:at]):
        return SOFT
    if o.tests_failed:
        if _overtaken(seen, at):
            return 0.0
        if _falling(seen, at):
            return SOFT
    return weight


def cleared(failure: Observation, later: Sequence[Observation]) -> bool:
    """Whether something `later` shows that `failure` is over: the same call, or the same change, went well, or a test run
    of at least as many tests is green."""
    for o in later:
        if o.status == "failed":
            continue
        if failure.call and o.call == failure.call and o.status == "ok":
            return True
        if (
            o.tests_passed
            and (failure.kind == "test" or failure.change is None)
            and failure.kind in ("test", "execute", "edit")
        ):
            return True
        if failure.kind in _CHANGING and o.change == "verified" and o.target == failure.target and o.target:
            return True
        if (
            failure.target
            and o.status == "ok"
            and o.target == failure.target
            and o.kind == failure.kind
            and o.kind in ("test", "execute")
        ):
            return True
    return False


def _falling(seen: Sequence[Observation], at: int) -> bool:
    """Whether fewer tests fail than in the run before: progress even when red."""
    now = seen[at]
    for o in reversed(seen[:at]):
        if o.tests_failed is not None and o.target == now.target:
            return bool(now.tests_failed is not None and now.tests_failed < o.tests_failed)
    return False


def _overtaken(seen: Sequence[Observation], at: int) -> bool:
    """Whether the newest later run of the same tests has fewer failures: what this one showed is being worked off."""
    then = seen[at]
    for o in reversed(seen[at + 1 :]):
        if o.tests_failed is not None and o.target == then.target:
            return bool(then.tests_failed is not None and o.tests_failed < then.tests_failed)
    return False


def _repeated(seen: Sequence[Observation], weights: Sequence[float], offset: int, begin: int) -> int:
    """How often the most frequent uncleared failure came: twice in the window, or more often further back."""
    counts: dict[str, list[int]] = {}
    for i, weight in enumerate(weights, offset):
        if weight > 0 and seen[i].fingerprint:
            counts.setdefault(seen[i].fingerprint, []).append(i)
    best = 0
    for places in counts.values():
        if sum(i >= begin for i in places) >= 2 or (len(places) >= 3 and places[-1] >= begin):
            best = max(best, len(places))
    return best


def _known(seen: Sequence[Observation], at: int) -> bool:
    """Whether the same call gave the same output before, with no change in between."""
    now = seen[at]
    for o in reversed(seen[:at]):
        if o.change is not None:
            return False
        if o.call == now.call and o.digest == now.digest and now.call:
            return True
    return False


def _green(recent: Sequence[Observation], weights: Sequence[float]) -> bool:
    for o, weight in zip(reversed(recent), reversed(weights), strict=True):
        if weight > 0:
            return False
        if o.tests_passed is not None and o.tests_run:
            return o.tests_passed
    return False
