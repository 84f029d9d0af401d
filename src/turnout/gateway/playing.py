"""Plays a finished reply to the client: its own bytes where they fit, else written anew, streamed or whole as asked."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnout.conversation import Reasoning, Reply, unfold
from turnout.routing.core import Answer
from turnout.wire.codec import Codec, Request

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

_JSON_HEADERS = ((b"content-type", b"application/json"),)


async def play_answer(serving: "Serving", request: Request, decision: Answer) -> None:
    """The reply a router has decided on."""
    model = serving.gateway.models[decision.target]
    serving.served_by(model)
    reply = decision.reply
    serving.reasoned = any(isinstance(part, Reasoning) for part in reply.parts)
    for account in reversed(serving.accounts):
        if account.model is model and not account.error and account.reply == reply.id:
            account.served = True
            break
    serving.usage, serving.stop, serving.response_id = reply.usage, reply.stop, reply.id
    await play_reply(serving, request, reply, model.target.model)


async def play_reply(serving: "Serving", request: Request, reply: Reply, model_name: str) -> None:
    """A reply that is whole, committed before any of it goes out."""
    own = reply.frames if reply.format == request.format else None
    if own is None:
        reply = replace(reply, id=serving.continuable(reply.id))
    await serving.commit(reply)
    if not request.settings.stream:
        if own is not None and not reply.streamed:
            await send_body(serving, own)
        else:
            written = serving.codec.write_reply(reply, request, reply.model or model_name)
            serving.drops += written.drops
            await send_body(serving, written.body)
        return
    frames = own if own is not None and reply.streamed else streamed(serving.codec, request, reply, model_name)
    serving.keep_response(frames)
    await serving.outlet.write(frames, last=True)


async def send_body(serving: "Serving", body: bytes) -> None:
    """A whole JSON body."""
    serving.keep_response(body)
    await serving.outlet.send_whole(200, body, _JSON_HEADERS)


def streamed(codec: Codec, request: Request, reply: Reply, model_name: str) -> bytes:
    """A finished reply as a whole stream in the client's format."""
    writer = codec.writer(request, reply.model or model_name)
    return b"".join([writer.feed(delta) for delta in unfold(reply)])
