"""Whether a request fits a target: what it needs, against what the target is declared able to do."""

from collections.abc import Sequence

from turnout.conversation import Audio, Conversation, Document, Image, ToolResult
from turnout.errors import ClientError
from turnout.upstream.models import Model
from turnout.wire.codec import Request

_KINDS: dict[type, str] = {Image: "images", Document: "documents", Audio: "audio"}


def needs(request: Request, conversation: Conversation) -> Sequence[str]:
    """The capabilities a request needs of its target, among those a target can declare."""
    found: dict[str, None] = {}
    if len(conversation.tools):
        found["tools"] = None
    if request.settings.output is not None and request.settings.output.kind != "text":
        found["structured_output"] = None
    for message in conversation.messages:
        for part in message.parts:
            for inner in part.parts if isinstance(part, ToolResult) else (part,):
                if type(inner) in _KINDS:
                    found[_KINDS[type(inner)]] = None
    return tuple(found)


def unable(model: Model, request: Request, conversation: Conversation) -> ClientError | None:
    """Why `model` cannot serve a request, from its declared capabilities; None when it can, or declares none."""
    able = model.facts.capabilities
    if able is None:
        return None
    for need in needs(request, conversation):
        if need not in able:
            return ClientError(
                f"target {model.name} is declared without {need!r}, which this request needs",
                code="unsupported_capability",
            )
    return None
