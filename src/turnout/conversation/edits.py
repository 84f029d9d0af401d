"""Changes a router may ask for on the way to a model: a closed union, applied to native bodies by the codecs and to the
neutral form by `apply`. Applying an edit twice gives the same as once."""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from turnout.conversation.conversation import Conversation
from turnout.conversation.issued import details_payloads, mark, payloads, without_thought_signature
from turnout.conversation.parts import Message, Part, Reasoning, Text, ToolCall
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
    items (a readable summary stays). Plain, unsigned reasoning stays.

    `keep`: marks of the payloads that the receiving model made itself; they stay, byte for byte. `mixed`: other models have
    served this conversation, so the tool loop it ends in may have begun without the thinking that Messages asks for there.
    """

    keep: tuple[str, ...] = ()
    mixed: bool = False


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
                conversation = _without_reasoning(conversation, frozenset(edit.keep))
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


def _without_reasoning(conversation: Conversation, keep: frozenset[str]) -> Conversation:
    messages = []
    orphaned = False  # what follows was made together with reasoning that is gone: its ids would ask for that
    for message in conversation.messages:
        if message.role != "assistant":
            orphaned = False
        elif any(isinstance(p, Reasoning | ToolCall) for p in message.parts):
            left = tuple(p for p in (_readable(p, keep) for p in message.parts) if p is not None)
            orphaned |= any(isinstance(p, Reasoning) and p.encrypted and p not in left for p in message.parts)
            if message.parts and not left:
                continue
            if left != message.parts:
                message = msgspec.structs.replace(message, parts=left)
        if orphaned:
            message = _without_ids(message)
        messages.append(message)
    return msgspec.structs.replace(conversation, messages=tuple(messages), roles=())


def _without_ids(message: Message) -> Message:
    parts = tuple(
        msgspec.structs.replace(p, item_id=None) if isinstance(p, ToolCall) and p.item_id is not None else p
        for p in message.parts
    )
    return msgspec.structs.replace(message, id=None, parts=parts)


def _readable(part: Part, keep: frozenset[str]) -> Part | None:
    """`part` without what only its issuer can read; None when nothing is left. Unsigned reasoning is ordinary text."""
    if isinstance(part, ToolCall):
        foreign = part.extra and payloads(part) and mark(payloads(part)[0]) not in keep
        return msgspec.structs.replace(part, extra=without_thought_signature(part.extra)) if foreign else part
    if not isinstance(part, Reasoning):
        return part
    held = payloads(part)
    if any(mark(payload) in keep for payload in held):
        return part
    if part.details is not None and details_payloads(part.details):
        part = msgspec.structs.replace(part, details=None, extra={k: v for k, v in part.extra.items() if k != "field"})
    if part.signature or part.redacted:
        return None
    if held and not part.text:
        return None
    return msgspec.structs.replace(part, encrypted=None, id=None) if part.encrypted else part
