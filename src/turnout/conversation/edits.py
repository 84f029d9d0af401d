"""Changes a router may ask for on the way to a model: a closed union, applied to native bodies by the codecs and to the
neutral form by `apply`. Applying an edit twice gives the same as once."""

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
    """Remove reasoning that only its issuer can read: signed or redacted thinking and encrypted reasoning items."""


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
                first = conversation.system[0] if len(conversation.system) else None
                if not (isinstance(first, Text) and first.text == edit.text):
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
        tail = last.parts[-1] if last.parts else None
        if isinstance(tail, Text) and tail.text == text:
            return conversation
        noted = msgspec.structs.replace(last, parts=(*last.parts, Text(text)), flat=False)
        messages: tuple[Message, ...] = (*conversation.messages[:-1], noted)
    else:
        messages = (*conversation.messages, Message("user", (Text(text),)))
    return msgspec.structs.replace(conversation, messages=messages, roles=())


def _without_reasoning(conversation: Conversation) -> Conversation:
    def keep(part: Part) -> bool:
        return not isinstance(part, Reasoning)

    messages = []
    for message in conversation.messages:
        if message.role == "assistant" and not all(keep(p) for p in message.parts):
            left = tuple(p for p in message.parts if keep(p))
            if not left:
                continue
            message = msgspec.structs.replace(message, parts=left)
        messages.append(message)
    return msgspec.structs.replace(conversation, messages=tuple(messages), roles=())
