"""Every recorded Chat exchange: read, written again, streamed again, watched."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.recorded import captures, needs_recordings
from tests.wire.chat.exchange import deltas, loose, request
from turnout.conversation import Fault, Reply, fold
from turnout.errors import UpstreamError
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request

pytestmark = needs_recordings

CHAT_ROWS = [row for row in captures() if row["protocol"] == "openai_chat"]


def stream_of(row: Any) -> bytes:
    if row.get("response_sse"):
        return str(row["response_sse"]).encode()
    chunks = row.get("response_chunks") or []
    return b"".join(
        b"data: " + (c.encode() if isinstance(c, str) else msgspec.json.encode(c)) + b"\n\n" for c in chunks
    )


def asked_of(row: Any) -> Request | None:
    value = row.get("request")
    return CHAT.read_request(msgspec.json.encode(value)) if isinstance(value, dict) else None


REQUESTS = [r for r in CHAT_ROWS if isinstance(r.get("request"), dict)]
REPLIES = [r for r in CHAT_ROWS if isinstance(r.get("response"), dict) and r["response"].get("choices")]
ERRORS = [r for r in CHAT_ROWS if isinstance(r.get("response"), dict) and not r["response"].get("choices")]
STREAMS = [r for r in CHAT_ROWS if stream_of(r)]


def test_the_recordings_hold_what_these_tests_need() -> None:
    assert len(REQUESTS) > 30
    assert len(REPLIES) > 30
    assert len(ERRORS) > 5
    assert len(STREAMS) > 10


def bare(value: Any) -> Any:
    """JSON without what says nothing: nulls, `stream: false`, absent against null content."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v is not None and (k, v) != ("stream", False)}
    return [bare(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", REQUESTS)
def test_requests_come_back_whole(row: Any) -> None:
    read = CHAT.read_request(msgspec.json.encode(row["request"]))
    out = CHAT.write_request(loose(read))
    assert out.drops == ()
    assert bare(msgspec.json.decode(out.body)) == bare(row["request"])


@pytest.mark.parametrize("row", REPLIES)
def test_replies_come_back_whole(row: Any) -> None:
    asked = asked_of(row) or request()
    read = CHAT.read_reply(msgspec.json.encode(row["response"]), asked)
    assert read.parts
    assert read.usage is not None
    again = CHAT.read_reply(CHAT.write_reply(read, asked, read.model).body, asked)
    assert replace(again, frames=None, id="") == replace(read, frames=None, id="")


@pytest.mark.parametrize("row", ERRORS)
def test_errors_are_classified_in_the_provider_s_words(row: Any) -> None:
    error = CHAT.read_error(row.get("status") or 400, (), msgspec.json.encode(row["response"]))
    assert error.kind in ("request", "rate_limit", "overflow", "auth", "refused")
    assert error.message
    assert CHAT.write_error(error).status == {"rate_limit": 429}.get(error.kind, error.status or 400)


def finished(row: Any) -> Reply | None:
    try:
        return fold(deltas(stream_of(row), asked_of(row)))
    except UpstreamError:
        return None


@pytest.mark.parametrize("row", STREAMS)
def test_chunk_borders_never_matter(row: Any) -> None:
    stream, asked = stream_of(row), asked_of(row)
    whole = deltas(stream, asked)
    for size in (1, 7, 300):
        pieces = deltas(stream, asked, size)
        if isinstance(whole[-1], Fault) and isinstance(pieces[-1], Fault):
            assert str(pieces[-1].error) == str(whole[-1].error)
            assert pieces[:-1] == whole[:-1]
        else:
            assert pieces == whole


@pytest.mark.parametrize("row", STREAMS)
def test_streams_come_back_whole(row: Any) -> None:
    reply = finished(row)
    if reply is None:
        assert b'"error"' in stream_of(row)
        return
    asked = replace(request(), settings=replace(request().settings, stream_usage=True))
    writer = CHAT.writer(asked, reply.model)
    out = b"".join(writer.feed(d) for d in deltas(stream_of(row), asked_of(row)))
    again = fold(deltas(out, asked))
    assert [(type(p), getattr(p, "text", None), getattr(p, "arguments", None)) for p in again.parts] == [
        (type(p), getattr(p, "text", None), getattr(p, "arguments", None)) for p in reply.parts
    ]
    assert (again.stop, again.usage, again.model) == (reply.stop, reply.usage, reply.model)


@pytest.mark.parametrize("row", STREAMS)
@pytest.mark.parametrize("size", [5, 10_000_000])
def test_the_tally_sees_what_the_reader_sees(row: Any, size: int) -> None:
    stream = stream_of(row)
    asked = replace(request(), settings=replace(request().settings, stream_usage=True))
    tally = CHAT.tally(asked)
    out = b"".join(tally.feed(stream[i : i + size]) for i in range(0, len(stream), size)) + tally.close()
    assert out == stream
    assert tally.ended
    reply = finished(row)
    if reply is None:
        assert tally.error is not None
    else:
        assert (tally.error, tally.stop, tally.usage) == (None, reply.stop, reply.usage)
        assert tally.model == reply.model
        assert tally.id == reply.id or not reply.id
        assert tally.started
