"""An agent's work as a judge reads it: the task, then the newest steps, within a fixed size whatever the conversation's.

The same work reads the same whatever wire format it came in: a step is a turn of the agent's, one tool result, or one message
of somebody else. What others wrote is indented under its label, so that no text can pass for a label.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from turnout.conversation import (
    Conversation,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.signals import Signals, real_user_text

_LEAST_INSTRUCTIONS = 400


class Excerpt(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a conversation a judge is shown.

    `window` (default 28): the newest steps; a step is a turn of the agent's, a tool result, or another message. `chars` (default
    500): the most of each text, call or result; what is too long keeps its beginning and end. `anchor_chars` (default 4000): the
    most of the task: the opening request, the newest one, the instructions. `total_chars` (default 18000): the most in all; the
    oldest steps go first.
    """

    window: Annotated[int, Meta(ge=1, le=500)] = 28
    chars: Annotated[int, Meta(ge=50)] = 500
    anchor_chars: Annotated[int, Meta(ge=200)] = 4_000
    total_chars: Annotated[int, Meta(ge=1_000)] = 18_000


_DEFAULT = Excerpt()


def shortened(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: two thirds from its beginning, the rest from its end, and how much is missing."""
    if len(text) <= limit:
        return text
    gap = f" [... {len(text) - limit + 40} characters left out ...] "
    room = max(limit - len(gap), 0)
    gap = f" [... {len(text) - room} characters left out ...] "
    tail = room // 3
    return text[: room - tail] + gap[:limit] + (text[-tail:] if tail else "")


def transcript(
    conversation: Conversation, signals: Signals, reply: Reply | None = None, excerpt: Excerpt | None = None
) -> str:
    """The work so far, `reply` as its newest step (None: the work before this turn).

    Reads only the beginning and the tail of the conversation.
    """
    how = excerpt or _DEFAULT
    messages, total = conversation.messages, len(conversation.messages)
    opening = _opening(conversation)
    anchors = _anchors(conversation, signals, opening, how.anchor_chars)
    newest = _newest(reply, how.chars) if reply is not None else ""
    head = f"Turn {_turns(conversation.roles) + (reply is not None)} of the agent"
    room = how.total_chars - len(anchors) - len(newest) - len(head) - 200
    steps, first = _steps(messages, conversation.roles, opening, how, room, how.window - (reply is not None))
    whole = total + (reply is not None)
    shown = total - first + (reply is not None)
    pieces = [f"{head}. Shown: the newest {shown} of {whole} messages.", anchors]
    if steps:
        pieces.append("## Newest steps, oldest first\n" + "\n".join(steps))
    if newest:
        pieces.append(f"## The agent's turn to judge\n{newest}")
    return shortened("\n\n".join(piece for piece in pieces if piece), how.total_chars)


def _newest(reply: Reply, limit: int) -> str:
    """The turn to judge, and what ended it where that was not the agent."""
    lines = (_turn(reply.parts, limit) or "(an empty answer)", _ENDED.get(reply.stop, ""))
    return "\n".join(line for line in lines if line)


_ENDED = {
    "length": "(cut off there: the answer had reached the most that it may have)",
    "refusal": "(ended there by the provider's moderation, or declined)",
}


def _turns(roles: Sequence[str]) -> int:
    """How many turns the agent has had; adjacent messages of its are one."""
    turns, before = 0, ""
    for role in roles:
        if role == "assistant" != before:
            turns += 1
        before = role
    return turns


def _opening(conversation: Conversation) -> int:
    """How many messages stand before the agent's first."""
    for index, role in enumerate(conversation.roles):
        if role == "assistant":
            return index
    return len(conversation.roles)


def _anchors(conversation: Conversation, signals: Signals, opening: int, limit: int) -> str:
    """The task: what was asked first, what was asked last, and the instructions in the room that is left."""
    messages = conversation.messages
    system = [part.text for part in conversation.system if isinstance(part, Text)]
    asked = []
    for index in range(opening):
        message = messages[index]
        if message.role in ("system", "developer"):
            system.append(message.text)
        elif text := real_user_text(message):
            asked.append(text)
    pieces, left = [], limit
    said_at = signals.said_at
    if said_at is not None and opening <= said_at < len(messages):
        newest = shortened(real_user_text(messages[said_at]) or "", left // 2)
        if newest:
            pieces.append(f"## Newest request of the user\n{_indented(newest)}")
            left -= len(newest)
    first = shortened("\n\n".join(asked), max(left - _LEAST_INSTRUCTIONS, left // 2))
    if first:
        pieces.insert(0, f"## Opening request of the user\n{_indented(first)}")
        left -= len(first)
    rules = shortened("\n\n".join(text for text in system if text), left) if left > 0 else ""
    if rules.strip():
        pieces.insert(0, f"## Instructions of the agent\n{_indented(rules)}")
    return "\n\n".join(pieces)


def _steps(
    messages: Sequence[Message], roles: Sequence[str], opening: int, how: Excerpt, room: int, window: int
) -> tuple[list[str], int]:
    """The newest steps that fit, oldest first, and the index of the first message they show."""
    found: list[str] = []
    index = first = len(messages)
    while index > opening and window > 0:
        index -= 1
        if roles[index] == "assistant":
            begin = index
            while begin > opening and roles[begin - 1] == "assistant":
                begin -= 1
            parts: list[Part] = [part for at in range(begin, index + 1) for part in messages[at].parts]
            index, lines = begin, [_turn(parts, how.chars)]
        else:
            lines = _others(messages, index, how.chars)
        lines = [line for line in lines if line][-window:]
        room -= sum(map(len, lines)) + len(lines)
        if room < 0:
            break
        found.extend(reversed(lines))
        window -= len(lines)
        first = index
    found.reverse()
    return found, first


def _turn(parts: Sequence[Part], limit: int) -> str:
    """A turn of the agent's."""
    lines = []
    for part in parts:
        if isinstance(part, Text):
            if part.text.strip():
                lines.append(f"agent: {_indented(shortened(part.text.strip(), limit))}")
        elif isinstance(part, ToolCall):
            lines.append(f"agent calls {part.name}({_indented(shortened(part.arguments, limit))})")
        elif isinstance(part, Refusal):
            lines.append(f"agent declines: {_indented(shortened(part.text, limit))}")
        elif not isinstance(part, Reasoning):
            lines.append(f"agent: {_other(part, limit)}")
    return "\n".join(lines)


def _others(messages: Sequence[Message], index: int, limit: int) -> list[str]:
    """What a message that is not the agent's shows: each tool result, and its text."""
    message, lines, said = messages[index], [], []
    for part in message.parts:
        if isinstance(part, ToolResult):
            name = part.name or _called(messages, index, part.call_id)
            failed = " (flagged as failed)" if part.is_error else ""
            text = part.text or ", ".join(_other(inner, limit) for inner in part.parts) or "(nothing)"
            lines.append(f"result of {name}{failed}: {_indented(shortened(text, limit))}")
        elif isinstance(part, Text):
            said.append(part.text)
        else:
            lines.append(f"{message.role}: {_other(part, limit)}")
    text = "\n".join(said).strip()
    if text:
        person = real_user_text(message) if message.role == "user" else None
        who = "user" if person else message.role if message.role != "user" else "harness"
        lines.append(f"{who}: {_indented(shortened(person or text, limit))}")
    return lines


def _called(messages: Sequence[Message], before: int, call_id: str) -> str:
    """The name of the tool behind a result, looked for in the messages just before it."""
    for index in range(before - 1, max(before - 40, -1), -1):
        for part in messages[index].parts:
            if isinstance(part, ToolCall) and part.id == call_id:
                return part.name
    return "a tool"


def _other(part: Part, limit: int) -> str:
    if isinstance(part, Opaque):
        return _indented(shortened(part.visible, limit)) or f"[{part.type}]"
    if isinstance(part, Text | Reasoning | Refusal):
        return _indented(shortened(part.text, limit))
    return f"[{type(part).__name__.lower()}]"


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ") if "\n" in text else text
