"""Signals: what a conversation's tool results show. Pure functions."""

from turnout.signals.course import Place, TestRun
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
from turnout.signals.progress import Progress, cleared, progress
from turnout.signals.vocabulary import BUILT_IN, Additions, Vocabulary

__all__ = [
    "BUILT_IN",
    "OBSERVED_AT_MOST",
    "TOOL_KINDS",
    "Additions",
    "ErrorClass",
    "Evidence",
    "Observation",
    "Place",
    "Progress",
    "Signals",
    "Status",
    "TestRun",
    "ToolKind",
    "Vocabulary",
    "cleared",
    "observe",
    "progress",
    "real_user_text",
]
