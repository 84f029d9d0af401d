"""Which task of the user's a turn belongs to: tasks begin where a person says something new."""

import hashlib

from turnout.routing.core import Turn
from turnout.signals import real_user_text

_OPENING = 2_000


def task_of(turn: Turn) -> str:
    """A name for the task: where the user's newest words stand and what they say; "" when there are none. Texts that a harness
    put into user messages are no words of the user's."""
    said_at, messages = turn.signals.said_at, turn.conversation.messages
    if said_at is None or said_at >= len(messages):
        return ""
    # The opening tells a place in one history from the same place in the history that replaced it.
    opening, said = messages[0].text[:_OPENING], real_user_text(messages[said_at]) or ""
    named = f"{opening}\x1f{said_at}\x1f{said}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=8).hexdigest()


def same_task(turn: Turn, task: str) -> bool:
    """Whether the turn goes on with `task`. A summary that replaced the history is no new task, though positions have moved."""
    signals = turn.signals
    return (signals.compacted and not signals.user_turn) or task_of(turn) == task
