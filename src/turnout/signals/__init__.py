"""Signals: what a conversation's tool results show. Pure functions."""

from turnout.signals.course import Place, TestRun
from turnout.signals.harness import real_user_text
from turnout.signals.observation import (
    OBSERVED_AT_MOST,
    ErrorClass,
    Evidence,
    Observation,
    Signals,
    Status,
    ToolKind,
)
from turnout.signals.progress import Progress, cleared, progress
from turnout.signals.trajectory import observe

__all__ = [
    "OBSERVED_AT_MOST",
    "ErrorClass",
    "Evidence",
    "Observation",
    "Place",
    "Progress",
    "Signals",
    "Status",
    "TestRun",
    "ToolKind",
    "cleared",
    "observe",
    "progress",
    "real_user_text",
]
