"""What a stretch of results shows by itself: for judging signals against labelled stretches."""

from collections.abc import Sequence

from msgspec import Struct

from turnout.signals.course import Place
from turnout.signals.observation import Observation
from turnout.signals.repetition import Repetition
from turnout.signals.spinning import barren
from turnout.signals.task import Task

SPINS_FROM = 4
"""Results of the newest 8 that bring nothing, from which a stretch spins."""


class WindowSignals(Struct, frozen=True):
    """`repeated`: the same action had the same outcome again, waiting included. `spinning`: no progress over the stretch;
    waiting is none."""

    repeated: bool
    spinning: bool


def window_signals(observations: Sequence[Observation]) -> WindowSignals:
    """The signals of a stretch of results, oldest first, as if it were the whole task."""
    repetition = Repetition()
    changes, repeated = 0, False
    for o in observations:
        repeated = repetition.add(o, Place(o.message, o.part, o.call), changes) == "again" or repeated
        changes += o.change is not None
    return WindowSignals(repeated, len(barren(Task(observations).course().marks)) >= SPINS_FROM)
