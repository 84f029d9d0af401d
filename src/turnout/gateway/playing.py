"""Plays a finished reply to the client: its own bytes where they fit, else written anew, streamed or whole as asked."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnout.conversation import Reply, unfold
from turnout.errors import ClientError
from turnout.gateway.accounts import Account
from turnout.gateway.artefacts import made_of
from turnout.gateway.relay import unsayable
from turnout.routing.core import Answer
from turnout.upstream.credentials import returned_headers
from turnout.upstream.models import Model
from turnout.wire.codec import Request

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

_JSON_HEADERS = ((b"content-type", b"application/json"),)


async def play_answer(serving: "Serving", request: Request, decision: Answer) -> None:
    """The reply a router has decided on, committed before any of it goes out. Raises UpstreamError when the client's format
    cannot say it."""
    model, reply, stream = serving.gateway.models[decision.target], decision.reply, request.settings.stream
    account = _source(serving, model, reply)
    serving.served_by(model, account.drops if account is not None else ())
    serving.made += made_of(reply.parts)
    if account is not None:
        account.served, serving.edits = True, account.edits
        # What an agent asked in steps is no conversation of the client's, so a prompt cache holds nothing of that.
        serving.watched = serving.watched and account.purpose != "step"
        redactor = serving.gateway.redactor
        if model.upstream.forward_auth:
            redactor = redactor.with_credentials(serving.headers)
        serving.outlet.head += [(n, redactor.clean_header(v)) for n, v in returned_headers(account.headers)]
    if reply.format == request.format and reply.frames is not None and reply.streamed == stream:
        body = relayed(serving, request, reply.frames) if stream else reply.frames
    else:
        reply = replace(reply, id=serving.continuable(reply.id))
        body = (streamed if stream else rewritten)(serving, request, reply, model.target.model)
    serving.usage, serving.stop, serving.response_id = reply.usage, reply.stop, reply.id
    await serving.commit(reply, body)
    if stream:
        if serving.outlet.opened and (told := decision.why.consensus or _ended(decision)):
            # The head went out before this was known.
            await serving.tell(told)
        serving.keep_response(body)
        await serving.outlet.write(body, last=True)
    else:
        await send_body(serving, body)


def _ended(decision: Answer) -> str:
    """What a retrieval came to."""
    return f"retrieval: {decision.why.rule}" if decision.why.source == "retrieval" else ""


def _source(serving: "Serving", model: Model, reply: Reply) -> Account | None:
    """The account of the call that `reply` came from."""
    for account in reversed(serving.accounts):
        if account.model is model and not account.error and account.reply == reply.id:
            return account
    return None


def relayed(serving: "Serving", request: Request, frames: bytes) -> bytes:
    """A stream in the client's own format as it would have been relayed live: without usage that the client did not ask for."""
    if request.settings.stream_usage:
        return frames
    tally = serving.codec.tally(request)
    return tally.feed(frames) + tally.close()


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
