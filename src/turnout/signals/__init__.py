"""Signals: what a conversation's tool results show. Pure functions."""

from turnout.signals.observation import ErrorClass, Evidence, Observation, Signals, Status, ToolKind

__all__ = ["ErrorClass", "Evidence", "Observation", "Signals", "Status", "ToolKind"]
