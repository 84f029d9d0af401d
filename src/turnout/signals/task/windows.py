"""What a stretch of results shows by itself: for judging signals against labelled stretches."""

from collections.abc import Sequence

from msgspec import Struct

from turnout.signals.calls.harnesses import SHELL_TOOLS
from turnout.signals.observation import Observation
from turnout.signals.task.fold import Task
from turnout.signals.task.repetition import CUT_OFF, named
from turnout.signals.task.spinning import barren

SPINS_FROM = 4
"""Results of the newest 8 that bring nothing, from which a stretch spins."""


class WindowSignals(Struct, frozen=True):
    """`repeated`: the same action had the same outcome again, waiting included. `spinning`: no progress over the stretch;
    waiting is none."""

    repeated: bool
    spinning: bool


def window_signals(observations: Sequence[Observation], before: Sequence[Observation] = ()) -> WindowSignals:
    """The signals of a stretch of results, oldest first. `before`: earlier results of the same task, which tell what is new."""
    marks = Task((*before, *observations)).course().marks[-len(observations) :]
    return WindowSignals(repeats(observations), len(barren(marks)) >= SPINS_FROM)


def repeats(observations: Sequence[Observation]) -> bool:
    """Whether anything was done twice with the same outcome, changes between or not; silent successes count only without."""
    known: dict[tuple[str, str], int] = {}
    changes = 0
    for o in observations:
        if o.call and o.kind != "plan":
            key = (_done(o), _outcome(o))
            at = known.get(key)
            known[key] = changes
            # The same change again: only when nothing else was changed between.
            if at is not None and (
                changes == at + 1 if o.change is not None else at == changes or o.size > 0 or bool(o.fingerprint)
            ):
                return True
        changes += o.change is not None or bool(o.takes_back)
    return False


def _done(o: Observation) -> str:
    if o.fingerprint and o.tool.lower() not in SHELL_TOOLS:
        return o.tool
    return f"{o.tool} {o.target}" if o.kind in ("execute", "test") and o.size and named(o) else o.call


def _outcome(o: Observation) -> str:
    if o.error_kind in CUT_OFF:
        return o.error_kind
    if o.fingerprint:
        return f"{o.fingerprint} {o.tests_failed}" if o.tests_failed is not None else o.fingerprint
    return o.digest
