"""Signals: what a conversation's tool results show. Pure functions.

`observe` is the way in. `calls` reads what a call does; above it, blind to one another, `results` judges one result by its call,
`people` reads what a user said, `task` folds observations into a `Course`; `history` and `observe` join them.
"""

from turnout.signals.course import Course, Place, TestRun
from turnout.signals.observation import (
    OBSERVED_AT_MOST,
    TOOL_KINDS,
    ErrorClass,
    Evidence,
    Observation,
    Signals,
    Status,
    ToolKind,
)
from turnout.signals.observe import observe
from turnout.signals.patterns import regex
from turnout.signals.people.envelopes import real_user_text
from turnout.signals.task.failures import cleared
from turnout.signals.task.fold import Task
from turnout.signals.task.progress import Progress, progress
from turnout.signals.task.windows import WindowSignals, window_signals
from turnout.signals.vocabulary import BUILT_IN, Additions, Vocabulary

__all__ = [
    "BUILT_IN",
    "OBSERVED_AT_MOST",
    "TOOL_KINDS",
    "Additions",
    "Course",
    "ErrorClass",
    "Evidence",
    "Observation",
    "Place",
    "Progress",
    "Signals",
    "Status",
    "Task",
    "TestRun",
    "ToolKind",
    "Vocabulary",
    "WindowSignals",
    "cleared",
    "observe",
    "progress",
    "real_user_text",
    "regex",
    "window_signals",
]
