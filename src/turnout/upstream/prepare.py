"""The body a target is sent: the client's own, patched, where formats match; a translation where they do not."""

from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Edit, Settings, apply
from turnout.upstream.models import Model
from turnout.wire.body import fields, restamp, splice
from turnout.wire.codec import Request
from turnout.wire.drops import Drop

_JSON = msgspec.json.Encoder()


class Prepared(Struct, frozen=True):
    """A body ready to send, what it could not carry, and the request it renders, which replies are read against."""

    body: bytes
    drops: tuple[Drop, ...]
    request: Request


def prepare(
    request: Request,
    model: Model,
    edits: tuple[Edit, ...] = (),
    *,
    rewrite: Conversation | None = None,
    settings: Settings | None = None,
    stream: bool | None = None,
) -> Prepared:
    """The body for `model`, from the client's `request`.

    Same format, no rewrite, settings as asked: byte for byte but for the model name, the edits, the target's `extra_body` and
    the request for stream usage. Otherwise the neutral form is written anew. `stream`: ask for a stream or for one body,
    whatever the client asked. Raises ClientError for what the format must not lose silently.
    """
    if model.edits:
        edits = (*edits, *model.edits)
    native = request.format == model.format and rewrite is None and settings is None and request.body
    if native:
        body = restamp(model.codec.patch(request.body, edits), model.model_json, request.settings.model)
        drops: tuple[Drop, ...] = ()
        if stream is not None and stream != request.settings.stream:
            body = splice(body, {"stream": b"true" if stream else b"false"})
    else:
        conversation, wanted = rewrite or request.conversation, settings or request.settings
        if edits:
            conversation, wanted = apply(conversation, wanted, edits)
        wanted = msgspec.structs.replace(
            wanted, model=model.target.model, stream=wanted.stream if stream is None else stream
        )
        written = model.write_request(Request(request.format, conversation, wanted))
        body, drops = written.body, written.drops
    if model.fits:
        body, changed = model.fit(body)
        drops += changed
    if model.extra_body:
        body = with_extra(body, model.extra_body)
    if request.settings.stream if stream is None else stream:
        # Whether usage has been asked for is a question to the settings that were written, not to the client's.
        body = model.codec.ask_usage(
            request if settings is None else Request(request.format, request.conversation, settings), body
        )
    return Prepared(body, drops, request)


def with_extra(body: bytes, extra: dict[str, Any]) -> bytes:
    """`body` with the fields of `extra` it does not have."""
    present = fields(body)
    missing = {key: _JSON.encode(value) for key, value in extra.items() if key not in present}
    return splice(body, missing) if missing else body
