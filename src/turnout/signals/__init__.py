"""Signals: what a conversation's tool results show. Pure functions."""

from turnout.signals.course import Course, Place, TestRun
from turnout.signals.failures import cleared
from turnout.signals.harness import real_user_text
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
from turnout.signals.progress import Progress, progress
from turnout.signals.task import Task
from turnout.signals.vocabulary import BUILT_IN, Additions, Vocabulary
from turnout.signals.windows import WindowSignals, window_signals

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
    "window_signals",
]
