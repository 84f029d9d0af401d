"""Plays a finished reply to the client: its own bytes where they fit, else written anew, streamed or whole as asked."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnout.conversation import Reply, unfold
from turnout.errors import ClientError
from turnout.gateway.artefacts import made_of
from turnout.gateway.relay import unsayable
from turnout.routing.core import Answer
from turnout.wire.codec import Request

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

_JSON_HEADERS = ((b"content-type", b"application/json"),)


async def play_answer(serving: "Serving", request: Request, decision: Answer) -> None:
    """The reply a router has decided on, committed before any of it goes out. Raises UpstreamError when the client's format
    cannot say it."""
    model, reply, stream = serving.gateway.models[decision.target], decision.reply, request.settings.stream
    serving.served_by(model)
    serving.made += made_of(reply.parts)
    upstream_id = reply.id
    if reply.format != request.format or reply.frames is None:
        reply = replace(reply, id=serving.continuable(reply.id))
        own = None
    else:
        own = reply.frames if reply.streamed == stream else None
    body = own if own is not None else (streamed if stream else rewritten)(serving, request, reply, model.target.model)
    for account in reversed(serving.accounts):
        if account.model is model and not account.error and account.reply == upstream_id:
            account.served = True
            break
    serving.usage, serving.stop, serving.response_id = reply.usage, reply.stop, reply.id
    await serving.commit(reply, body)
    if stream:
        serving.keep_response(body)
        await serving.outlet.write(body, last=True)
    else:
        await send_body(serving, body)


async def send_body(serving: "Serving", body: bytes) -> None:
    """A whole JSON body."""
    serving.keep_response(body)
    await serving.outlet.send_whole(200, body, _JSON_HEADERS)


def rewritten(serving: "Serving", request: Request, reply: Reply, model_name: str) -> bytes:
    """A finished reply as one body in the client's format. Raises UpstreamError when it cannot be said there."""
    try:
        written = serving.codec.write_reply(reply, request, reply.model or model_name)
    except ClientError as refusal:
        raise unsayable(refusal) from None
    serving.drops += written.drops
    return written.body


def streamed(serving: "Serving", request: Request, reply: Reply, model_name: str) -> bytes:
    """A finished reply as a whole stream in the client's format. Raises UpstreamError when it cannot be said there."""
    writer = serving.codec.writer(request, reply.model or model_name)
    body = b"".join([writer.feed(delta) for delta in unfold(reply)])
    if writer.refusal is not None:
        raise unsayable(writer.refusal)
    return body
