"""What a conversation refers to that lies at one account: uploaded files, containers, stored items, compacted histories.

Another account's server does not know it, and what it stands for cannot be sent instead. A turn that needs it is not sent there.
"""

from collections.abc import Iterator

from turnout.conversation import Audio, Conversation, Document, Image, Opaque, Part, Reasoning, ToolResult
from turnout.errors import ClientError
from turnout.gateway.artefacts import Makers, same_account
from turnout.routing.core import TargetName
from turnout.upstream.credentials import VENDOR
from turnout.upstream.models import Model, Models
from turnout.wire.codec import Request
from turnout.wire.paths import part_path

CODE = "unsupported_server_state"
"""The code of the refusal."""
_SIGNS = (b"file_id", b'"container', b'"compaction', b'item_reference"', b'"conversation"', b'"rs_')


def held_elsewhere(
    request: Request, conversation: Conversation, model: Model, known: Makers, models: Models, whole: bool
) -> ClientError | None:
    """Why `model` cannot take a request: what it refers to lies at the account that served the lane last. None when it can.

    Only what that account has answered to counts: of what came since, nobody can say where it lies. `whole`: the request's body
    holds all of the conversation.
    """
    last = models[TargetName(known.last)] if known.last in models else None
    if last is None or same_account(last, model):
        return None
    if whole and not any(request.body.find(sign) >= 0 for sign in _SIGNS):
        return None
    found = next(_held(request, conversation, model), None)
    if found is None:
        return None
    path, what = found
    return ClientError(
        f"{path}: {what} lies at the account of target {last.name}, which served this conversation last; "
        f"target {model.name} cannot reach it",
        code=CODE,
        param=path,
    )


def _held(request: Request, conversation: Conversation, model: Model) -> Iterator[tuple[str, str]]:
    settings = request.settings
    if settings.conversation_id is not None:
        yield "conversation", "the stored conversation"
    container = settings.extra.get("container")
    if isinstance(container, str) or (isinstance(container, dict) and container.get("id")):
        yield "container", "the container"
    roles = conversation.roles
    answered = next((i for i in range(len(roles) - 1, -1, -1) if roles[i] == "assistant"), -1)
    for i in range(answered + 1):
        message = conversation.messages[i]
        for j, part in enumerate(message.parts):
            for inner in part.parts if isinstance(part, ToolResult) else (part,):
                what = _what(inner, model)
                if what:
                    yield part_path(conversation.format, message, i, j), what


def _what(part: Part, model: Model) -> str:
    """What a part refers to, in words; "" for what any account of the model's vendor can be sent."""
    if isinstance(part, Image | Document | Audio):
        source = part.source
        # Of another vendor's files the translation says itself that they cannot be had.
        mine = source.kind == "file_id" and (source.origin is None or VENDOR[source.origin] == VENDOR[model.format])
        return "the uploaded file" if mine else ""
    if isinstance(part, Reasoning):
        stored = part.id is not None and not (part.encrypted or part.text)
        return "the stored reasoning" if stored and model.format == "openai_responses" else ""
    if isinstance(part, Opaque) and isinstance(part.value, dict):
        if part.type == "container_upload":
            return "the uploaded file"
        if part.type == "item_reference":
            return "the stored item"
        if part.type in ("compaction", "compaction_summary") and part.value.get("encrypted_content"):
            return "the compacted history"
    return ""
