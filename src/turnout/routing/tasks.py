"""Which task of the user's a turn belongs to: tasks begin where a person says something new."""

import hashlib

from turnout.routing.core import Turn
from turnout.signals import real_user_text


def task_of(turn: Turn) -> str:
    """A name for the task: where the user's newest words stand and what they say; "" when there are none. Texts that a harness
    put into user messages are no words of the user's."""
    said_at = turn.signals.said_at
    if said_at is None or said_at >= len(turn.conversation.messages):
        return ""
    said = real_user_text(turn.conversation.messages[said_at]) or ""
    return hashlib.blake2b(f"{said_at}\x1f{said}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def same_task(turn: Turn, task: str) -> bool:
    """Whether the turn goes on with `task`. A summary that replaced the history is no new task, though positions have moved."""
    signals = turn.signals
    return (signals.compacted and not signals.user_turn) or task_of(turn) == task
