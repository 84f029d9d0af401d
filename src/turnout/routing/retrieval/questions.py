"""The question of a turn, and why a turn has none that a knowledge could answer. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from turnout.conversation import Audio, Conversation, Document, Image, Message, Text
from turnout.routing.core import Turn
from turnout.signals import real_user_text


class Unsuited(Struct, frozen=True):
    """Why a request is no question to a knowledge. `rule`: in a word; `reason`: the rest of a sentence; `param`: the field."""

    rule: str
    reason: str
    param: str


_TOOLS = Unsuited("tools", "the request offers tools, which it does not call", "tools")
_FORMAT = Unsuited(
    "output_format", "the request asks for structured output, which it does not write", "response_format"
)
_SEVERAL = Unsuited("several", "the request asks for several answers", "n")
_BACKGROUND = Unsuited("detached", "the request is to be answered in the background", "background")
_MEDIA = Unsuited("media", "the request holds images, audio or files, which it cannot read", "messages")
_NO_QUESTION = Unsuited("no_question", "the request does not end with a question in words", "messages")


def asked_in(turn: Turn, earlier: int) -> Conversation | Unsuited:
    """The question that the turn asks, as the last message of a conversation of words alone: the client's instructions and up to
    `earlier` questions with their answers stand before it."""
    settings, conversation = turn.settings, turn.conversation
    choice = settings.tool_choice
    if len(conversation.tools) and (choice is None or choice.mode != "none"):
        return _TOOLS
    if settings.output is not None and settings.output.kind != "text":
        return _FORMAT
    if settings.n is not None and settings.n > 1:
        return _SEVERAL
    if settings.background:
        return _BACKGROUND
    messages = conversation.messages
    newest = messages[-1] if len(messages) else None
    if newest is None or newest.role != "user":
        return _NO_QUESTION
    if any(isinstance(part, Image | Audio | Document) for part in newest.parts):
        return _MEDIA
    question = real_user_text(newest)
    if not question or not question.strip():
        return _NO_QUESTION
    system = [part for part in conversation.system if isinstance(part, Text)]
    system += [
        part for m in messages if m.role in ("system", "developer") for part in m.parts if isinstance(part, Text)
    ]
    before = _before(messages, earlier)
    return Conversation((*before, Message("user", (Text(question.strip()),))), system)


def _before(messages: Sequence[Message], earlier: int) -> tuple[Message, ...]:
    """The newest `earlier` questions before the last message, and what was answered to each, words alone."""
    kept: list[Message] = []
    questions = 0
    for at in range(len(messages) - 2, -1, -1):
        message = messages[at]
        if questions >= earlier:
            break
        words = real_user_text(message) if message.role == "user" else message.text
        if message.role not in ("user", "assistant") or not words or not words.strip():
            continue
        kept.append(Message(message.role, (Text(words),)))
        questions += message.role == "user"
    while kept and kept[-1].role != "user":
        kept.pop()
    return tuple(reversed(kept))
