"""Changes a router may ask for on the way to a model: a closed union, applied to native bodies by the codecs and to the
neutral form by `apply`. Applying an edit twice gives the same as once."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from turnout.conversation.conversation import Conversation
from turnout.conversation.parts import Message, Part, Reasoning, Text
from turnout.conversation.settings import Effort as EffortSetting
from turnout.conversation.settings import Settings


class Note(Struct, frozen=True, tag="note", tag_field="edit"):
    """A text put at the end of the conversation for this call only: as a last text block of the trailing user message, or
    as a new user message after tool results where the format asks for one."""

    text: str


class Instruction(Struct, frozen=True, tag="instruction", tag_field="edit"):
    """A text put before the instructions of the client (a prompt of the tier or target)."""

    text: str


class DropForeignReasoning(Struct, frozen=True, tag="drop_foreign_reasoning", tag_field="edit"):
    """Remove reasoning that only its issuer can read: signed or redacted thinking, and the payload of encrypted reasoning
    items (a readable summary stays). Plain, unsigned reasoning stays."""


class Effort(Struct, frozen=True, tag="effort", tag_field="edit"):
    """Ask for this named reasoning effort instead of the client's."""

    level: str


Edit: TypeAlias = Note | Instruction | DropForeignReasoning | Effort


def apply(conversation: Conversation, settings: Settings, edits: tuple[Edit, ...]) -> tuple[Conversation, Settings]:
    """The neutral form with `edits` applied, in order; idempotent."""
    for edit in edits:
        match edit:
            case Note():
                conversation = _with_note(conversation, edit.text)
            case Instruction():
                if not _begins_with(conversation.system, edit.text):
                    conversation = msgspec.structs.replace(
                        conversation, system=(Text(edit.text), *conversation.system), system_flat=False
                    )
            case DropForeignReasoning():
                conversation = _without_reasoning(conversation)
            case Effort():
                effort = settings.effort or EffortSetting()
                settings = msgspec.structs.replace(settings, effort=msgspec.structs.replace(effort, level=edit.level))
    return conversation, settings


def _with_note(conversation: Conversation, text: str) -> Conversation:
    last = conversation.messages[-1] if len(conversation.messages) else None
    if last is not None and last.role == "user":
        if _begins_with(reversed(last.parts), text):
            return conversation
        noted = msgspec.structs.replace(last, parts=(*last.parts, Text(text)), flat=False)
        messages: tuple[Message, ...] = (*conversation.messages[:-1], noted)
    else:
        messages = (*conversation.messages, Message("user", (Text(text),)))
    return msgspec.structs.replace(conversation, messages=messages, roles=())


def _begins_with(parts: Iterable[Part], text: str) -> bool:
    """Whether `text` is one of the text parts that `parts` begin with (edits of one kind may stand side by side)."""
    for part in parts:
        if not isinstance(part, Text):
            return False
        if part.text == text:
            return True
    return False


def _without_reasoning(conversation: Conversation) -> Conversation:
    messages = []
    for message in conversation.messages:
        if message.role == "assistant" and any(isinstance(p, Reasoning) for p in message.parts):
            left = tuple(p for p in map(_readable, message.parts) if p is not None)
            if message.parts and not left:
                continue
            if left != message.parts:
                message = msgspec.structs.replace(message, parts=left)
        messages.append(message)
    return msgspec.structs.replace(conversation, messages=tuple(messages), roles=())


def _readable(part: Part) -> Part | None:
    """`part` without what only its issuer can read; None when nothing is left. Unsigned reasoning is ordinary text."""
    if not isinstance(part, Reasoning) or not (part.signature or part.encrypted or part.redacted):
        return part
    if part.signature or part.redacted or not part.text:
        return None
    return msgspec.structs.replace(part, encrypted=None, id=None)
