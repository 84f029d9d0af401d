"""Anthropic Messages <-> the neutral conversation."""

from turnout.wire.anthropic.codec import Messages

MESSAGES = Messages()
"""The codec of Anthropic Messages."""

__all__ = ["MESSAGES", "Messages"]
