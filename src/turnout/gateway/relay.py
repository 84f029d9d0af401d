"""Passes a model's stream on to the client as it comes.

Nothing that means anything goes out before the first content, so that another target can still take over. The terminal goes
out only after the turn has been committed, so that the next turn finds what this one left. A stream that breaks raises
UpstreamError.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
    End,
    Fault,
    Folding,
    Part,
    PartBegin,
    Reasoning,
    Reply,
    Text,
    TextDelta,
    ToolCall,
)
from turnout.errors import ClientError, UpstreamError, afresh
from turnout.gateway.accounts import Account
from turnout.gateway.artefacts import made_in, made_of
from turnout.upstream.models import Answering, Opened
from turnout.wire.codec import Request, Tally, Writer
from turnout.wire.drops import Drop

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

LINGER_S = 0.5
"""How long an upstream may take to end a response whose terminal has come."""
ANOTHER_MAY = frozenset({"timeout", "unavailable", "rate_limit", "overflow", "refused", "auth", "malformed"})
"""Faults that another target may not have."""
_CONTENT = frozenset({PartBegin, TextDelta, ArgumentsDelta, End})


async def relay_native(serving: "Serving", request: Request, opened: Opened, account: Account) -> None:
    """A stream in the client's own format: the upstream's bytes, untouched, watched by a tally."""
    tally = account.tally = serving.codec.tally(request)
    outlet, response = serving.outlet, opened.response
    kept: list[bytes] | None = [] if serving.keeps_reply else None
    held = b""
    while (chunk := await response.next()) is not None:
        data = tally.feed(chunk)
        if kept is not None:
            kept.append(chunk)
        if account.first_byte is None:
            account.first_byte = time.monotonic()
        if data:
            serving.made += made_in(data, opened.model.format)
        if held:
            data = held + data
            held = b""
        if tally.error is not None:
            await _last_words(serving, data, tally)
            raise afresh(tally.error)
        if tally.ended:
            held = data + await _rest(response, tally.feed)
            break
        if not (outlet.content_sent or tally.started):
            if data and serving.codec.opens_again:
                outlet.pinger, outlet.fault = tally.ping, tally.fault
                serving.keep_response(data)
                await outlet.begin(data)
            else:
                held = data
            continue
        if data:
            if not outlet.content_sent:
                outlet.pinger, outlet.fault = tally.ping, tally.fault
            serving.keep_response(data)
            await outlet.write(data)
    held += tally.close()
    if tally.error is not None:
        await _last_words(serving, held, tally)
        raise afresh(tally.error)
    serving.finished(account, tally.usage, tally.stop or "", tally.id)
    if serving.must_commit:
        frames = b"".join(kept) if kept is not None else b""
        await serving.commit(_folded(serving, request, frames) if kept is not None else None, frames)
    serving.keep_response(held)
    await outlet.write(held, last=True)


async def _rest(response: Answering, feed: Callable[[bytes], bytes]) -> bytes:
    """What follows the terminal. It means nothing, and some servers never end it; a response that does end leaves a
    connection that can be used again."""
    data = b""
    try:
        async with asyncio.timeout(LINGER_S):
            while (chunk := await response.next()) is not None:
                data += feed(chunk)
    except (TimeoutError, UpstreamError):
        response.abort()
    return data


async def _last_words(serving: "Serving", data: bytes, tally: Tally) -> None:
    """What came with a stream's own error: relayed (without secrets) where no other target can take over any more, because
    content has gone out already or because the request itself is at fault."""
    error = tally.error
    if error is not None and not serving.outlet.content_sent and error.kind in ANOTHER_MAY:
        # The tally takes its error for told; should no other target take over, a writer of our own tells it.
        serving.outlet.fault = None
    elif data:
        serving.outlet.fault = tally.fault
        clean = serving.gateway.redactor.with_credentials(serving.headers).clean_bytes(data)
        serving.keep_response(clean)
        await serving.outlet.write(clean)


def unsayable(refusal: ClientError) -> UpstreamError:
    """The model answered with what the client's format cannot say: a failure of the turn that no other target would mend."""
    return UpstreamError("request", refusal.message, status=refusal.status, code=refusal.code, param=refusal.param)


_losses: dict[tuple[Any, ...], tuple[Drop, ...]] = {}
_REMEMBERED_AT_MOST = 512


def losses(serving: "Serving", request: Request, reply: Reply) -> tuple[Drop, ...]:
    """What a translated stream lost: what `write_reply` reports of the reply it amounts to, whose texts may be missing.

    Replies of plain parts lose the same few fields every time, so those are remembered by the names of the fields.
    """
    key = None
    if all(_plain(part) for part in reply.parts):
        usage = tuple(reply.usage.extra) if reply.usage is not None else ()
        key = (serving.codec.format, reply.format, tuple(reply.extra), usage)
        found = _losses.get(key)
        if found is not None:
            return found
    # A text that was not kept is not an empty one, which formats leave out.
    parts = tuple(
        [replace(part, text="-") if isinstance(part, Text) and not part.text else part for part in reply.parts]
    )
    found = serving.codec.write_reply(replace(reply, parts=parts), request, serving.model_name).drops
    if key is not None:
        if len(_losses) >= _REMEMBERED_AT_MOST:
            _losses.clear()
        _losses[key] = found
    return found


def _plain(part: Part) -> bool:
    """Whether no format has trouble with a part."""
    if isinstance(part, Text):
        return not (part.extra or part.annotations)
    if isinstance(part, ToolCall):
        return not part.extra and part.style == "function"
    if isinstance(part, Reasoning):
        return not (part.extra or part.signature or part.encrypted or part.details or part.redacted)
    return False


def _folded(serving: "Serving", request: Request, frames: bytes) -> Reply:
    """The reply that was relayed, as far as it can be read: what has reached the client whole is no failure any more."""
    folding, reader = Folding(), serving.codec.reader(request)
    try:
        for delta in (*reader.feed(frames), *reader.close()):
            folding.feed(delta)
    except UpstreamError:
        return replace(folding.reply, id=serving.response_id)
    return folding.reply


async def _begin(serving: "Serving", writer: Writer, begin: Begin, folding: Folding) -> str:
    """Tell the client that the answer begins; the id it is told."""
    outlet, reply_id = serving.outlet, serving.continuable(begin.id)
    begin = replace(begin, id=reply_id)
    folding.feed(begin)
    serving.begun = (writer, reply_id)
    outlet.pinger = writer.ping
    outlet.fault = lambda error: writer.feed(Fault(error))
    data = writer.feed(begin)
    serving.keep_response(data)
    await outlet.begin(data)
    return reply_id


async def relay_translated(serving: "Serving", request: Request, opened: Opened, account: Account) -> None:
    """A stream in another format: read into deltas, written in the client's.

    Its beginning goes out at once. A target that takes over before any content goes on with the writer that has begun, so that
    the client sees one beginning.
    """
    model, outlet, response = opened.model, serving.outlet, opened.response
    reader = model.codec.reader(request)
    folding, keeps = Folding(), serving.keeps_reply
    held: list[Delta] = []
    if serving.begun is None:
        writer, reply_id = serving.codec.writer(request, model.target.model), ""
    else:
        writer, reply_id = serving.begun
    while True:
        chunk = await response.next()
        deltas = reader.close() if chunk is None else reader.feed(chunk)
        if account.first_byte is None:
            account.first_byte = time.monotonic()
        if held:
            deltas, held = [*held, *deltas], []
        if not deltas:
            if chunk is None:
                raise UpstreamError("malformed", "the stream ended without a terminal event")
            continue
        last = deltas[-1]
        if not outlet.content_sent:
            if type(last) is not Fault and not any(type(delta) in _CONTENT for delta in deltas):
                if type(deltas[0]) is Begin and serving.begun is None:
                    account.usage = deltas[0].usage
                    reply_id = await _begin(serving, writer, deltas[0], folding)
                    deltas = deltas[1:]
                held = deltas
                continue
            if type(deltas[0]) is Begin:
                account.usage = deltas[0].usage
                if serving.begun is None:
                    reply_id = serving.continuable(deltas[0].id)
                    deltas[0] = replace(deltas[0], id=reply_id)
                else:
                    folding.feed(replace(deltas[0], id=reply_id))
                    deltas = deltas[1:]
            outlet.pinger = writer.ping
            outlet.fault = lambda error: writer.feed(Fault(error))
        if type(last) is Fault:
            if outlet.content_sent:
                await outlet.write(b"".join([writer.feed(delta) for delta in deltas[:-1]]))
            raise afresh(last.error)
        for delta in deltas:
            kind = type(delta)
            if (kind is not TextDelta and kind is not ArgumentsDelta) or keeps:
                folding.feed(delta)
        data = b"".join([writer.feed(delta) for delta in deltas])
        if writer.refusal is not None:
            account.usage = last.usage if type(last) is End else account.usage
            if outlet.opened:
                # No other target would mend it, so a stream that has begun, or was kept alive, ends with the writer's error.
                serving.keep_response(data)
                await outlet.write(data)
            raise unsayable(writer.refusal)
        ended = type(last) is End
        if type(last) is End:
            serving.finished(account, last.usage, last.stop, reply_id)
            serving.drops += losses(serving, request, folding.reply)
            serving.made += made_of(folding.reply.parts)
            if serving.must_commit:
                await serving.commit(folding.reply if keeps else None)
        if data or ended:
            serving.keep_response(data)
            await outlet.write(data, last=ended)
        if ended:
            break
    if chunk is not None:
        await _rest(response, bytes)
