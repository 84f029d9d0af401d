"""Recorded exchanges with real providers: each is read, relayed exactly, and translated or refused in words."""

from collections import Counter
from functools import partial
from typing import Any

import anthropic
import msgspec
import openai
import pytest

from tests import native
from tests.recorded import captures, needs_recordings
from tests.wire.laws import answered, asked, attempt, one_terminal, read_all
from tests.wire.leaves import lost
from tests.wire.sdk import take, take_stream, understood
from turnout.conversation import Fault, Folding, Opaque, Refusal, Reply, Text, fold, unfold
from turnout.errors import ClientError, UpstreamError
from turnout.wire import CODECS
from turnout.wire.codec import Codec, Request
from turnout.wire.names import alias
from turnout.wire.sse import event

pytestmark = needs_recordings

REQUESTS = [row for row in captures() if row["request"]]
ERRORS = [row for row in captures() if (row["status"] or 200) >= 400]
BUFFERED = [row for row in captures() if row["response"] is not None and (row["status"] or 200) < 400]
STREAMS = [row for row in captures() if row["response_sse"] or row.get("response_chunks")]
FAILED = {"pa-277"}
"""Streams in which the provider gave up with an error event."""
STREAMED = [row for row in STREAMS if row["id"] not in FAILED]


def by_id(rows: list[Any]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[row["id"] for row in rows])


def codec_of(row: Any) -> Codec:
    return CODECS[row["protocol"]]


def body_of(row: Any) -> bytes:
    return msgspec.json.encode(row["request"])


def request_of(row: Any, **settings: Any) -> Request:
    """The exchange's request; a small one of its format where only the reply was recorded."""
    if row["request"]:
        return codec_of(row).read_request(body_of(row))
    return asked(codec_of(row), **settings)


def stream_of(row: Any) -> bytes:
    """The bytes of a recorded stream."""
    if row["response_sse"]:
        return row["response_sse"].encode()
    named = row["protocol"] != "openai_chat"
    frames = [
        event(chunk.encode(), msgspec.json.decode(chunk).get("type", "").encode() if named else b"")
        for chunk in row["response_chunks"]
    ]
    return b"".join(frames) + (b"" if named else b"data: [DONE]\n\n")


def others(codec: Codec) -> list[Codec]:
    return [c for c in CODECS.values() if c is not codec]


def test_every_recorded_exchange_is_covered():
    assert len(captures()) == 233
    covered = {row["id"] for rows in (REQUESTS, ERRORS, BUFFERED, STREAMS) for row in rows}
    assert covered == {row["id"] for row in captures()}


@by_id(REQUESTS)
def test_a_request_is_read_and_written_again_without_loss(row):
    codec = codec_of(row)
    request = codec.read_request(body_of(row))
    assert [m.role for m in request.conversation.messages] == list(request.conversation.roles)
    written = codec.write_request(request)
    assert native.plain(msgspec.json.decode(written.body)) == native.plain(row["request"])
    assert written.drops == ()
    assert codec.patch(body_of(row), []) == body_of(row)


@by_id(REQUESTS)
def test_a_request_is_translated_with_every_loss_reported(row):
    source = codec_of(row)
    request = source.read_request(body_of(row))
    for target in others(source):
        written, refused = attempt(partial(target.write_request, request, default_max_tokens=4096), ClientError)
        if written is None:
            assert refused.code in ("unsupported_capability", "unsupported_server_state"), refused.message
            assert refused.param, refused.message
            continue
        assert lost(row["request"], msgspec.json.decode(written.body), [d.path for d in written.drops]) == []
        again = target.read_request(written.body)
        list(again.conversation.messages)
        assert target.write_request(again).drops == ()


def test_as_many_requests_are_translated_and_refused_as_ever():
    count: Counter[str] = Counter()
    for row in REQUESTS:
        source = codec_of(row)
        for target in others(source):
            try:
                target.write_request(source.read_request(body_of(row)), default_max_tokens=4096)
                count[f"{source.format} {target.format} translated"] += 1
            except ClientError as error:
                count[f"{source.format} {target.format} {error.code}"] += 1
    assert count == REQUEST_COUNTS


def translate(row: Any, reply: Reply, target: Codec) -> bytes:
    return target.write_reply(reply, asked(target, stream=False), "m").body


@by_id(BUFFERED)
def test_a_buffered_reply_is_read_and_taken_by_the_other_clients(row):
    source = codec_of(row)
    raw = msgspec.json.encode(row["response"])
    reply = source.read_reply(raw, request_of(row, stream=False))
    again = source.read_reply(source.write_reply(reply, request_of(row, stream=False), reply.model).body)
    assert answered(again) == answered(reply)
    for target in others(source):
        body, refused = attempt(partial(translate, row, reply, target), ClientError, UpstreamError)
        if body is None:
            assert refused.code == "unsupported_capability", refused.message
            continue
        assert_seen(reply, *understood(target.format, take(target.format, body)))
        back = answered(target.read_reply(body))
        assert (back["calls"], back["usage"]) == (answered(reply)["calls"], answered(reply)["usage"])


def assert_seen(reply: Reply, text: str, calls: list[tuple[str, str]]) -> None:
    """The client saw every text in order (what only the source knows may stand between as text) and exactly the calls."""
    assert calls == [(c.id, alias(c.name, c.namespace)) for c in reply.calls]
    at = 0
    for part in reply.parts:
        if isinstance(part, Text | Refusal):
            assert part.text in text[at:]
            at = text.index(part.text, at) + len(part.text)
    if not any(isinstance(part, Opaque | Refusal) for part in reply.parts):
        assert text == reply.text


@by_id(STREAMED)
def test_a_stream_reads_the_same_whatever_the_chunks(row):
    codec, stream = codec_of(row), stream_of(row)
    request = request_of(row)
    whole = read_all(codec.reader(request), [stream])
    assert one_terminal(whole)
    assert not isinstance(whole[-1], Fault), whole[-1]
    assert read_all(codec.reader(request), [stream[i : i + 7] for i in range(0, len(stream), 7)]) == whole
    assert read_all(codec.reader(request), [stream.replace(b"\n", b"\r\n")]) == whole


@by_id([row for row in STREAMS if row["id"] in FAILED])
def test_a_failure_inside_a_stream_is_its_one_terminal(row):
    codec, stream = codec_of(row), stream_of(row)
    deltas = read_all(codec.reader(asked(codec)), [stream])
    assert one_terminal(deltas)
    assert isinstance(deltas[-1], Fault)
    assert deltas[-1].error.kind == "request"
    tally = codec.tally(asked(codec))
    assert tally.feed(stream) + tally.close() == stream
    assert tally.error is not None
    assert (tally.error.kind, tally.error.message) == (deltas[-1].error.kind, deltas[-1].error.message)
    for target in others(codec):
        writer = target.writer(asked(target), "m")
        out = b"".join(writer.feed(delta) for delta in deltas)
        if target.format == "openai_responses":  # the failure is an event here, which the client hands on
            assert out.count(b'"type":"response.failed"') == 1
            assert b"response.completed" not in out
        else:
            with pytest.raises((openai.APIError, anthropic.APIError), match="did not call a tool"):
                take_stream(target.format, out)


@by_id(STREAMED)
def test_a_tally_relays_every_byte_and_agrees_with_the_reader(row):
    codec, stream = codec_of(row), stream_of(row)
    request = asked(codec)
    reply = fold(read_all(codec.reader(request), [stream]))
    for size in (len(stream), 1000, 7):
        tally = codec.tally(request)
        relayed = b"".join(tally.feed(stream[i : i + size]) for i in range(0, len(stream), size)) + tally.close()
        assert relayed == stream
        assert (tally.usage, tally.stop, tally.id, tally.model) == (reply.usage, reply.stop, reply.id, reply.model)
        assert (tally.ended, tally.started, tally.error) == (True, bool(reply.parts), None)


@by_id(STREAMED)
def test_a_streamed_reply_is_taken_by_the_other_clients(row):
    source, stream = codec_of(row), stream_of(row)
    deltas = read_all(source.reader(request_of(row)), [stream])
    reply = fold(deltas)
    for target in others(source):
        request = asked(target)
        writer = target.writer(request, "m")
        out = b"".join(writer.feed(delta) for delta in deltas)
        back = read_all(target.reader(request), [out])
        assert one_terminal(back)
        if isinstance(back[-1], Fault):
            with pytest.raises((ClientError, UpstreamError)) as caught:
                translate(row, reply, target)
            assert caught.value.code == "unsupported_capability"
            continue
        assert_seen(reply, *understood(target.format, take_stream(target.format, out)))
        folded, direct = answered(fold(back)), answered(reply)
        assert (folded["calls"], folded["usage"]) == (direct["calls"], direct["usage"])


def test_as_many_replies_are_translated_and_refused_as_ever():
    count: Counter[str] = Counter()
    for row in BUFFERED + STREAMED:
        source = codec_of(row)
        if row["response"] is not None:
            reply = source.read_reply(msgspec.json.encode(row["response"]))
        else:
            reply = fold(read_all(source.reader(), [stream_of(row)]))
        for target in others(source):
            try:
                translate(row, reply, target)
                count[f"{source.format} {target.format} translated"] += 1
            except (ClientError, UpstreamError) as error:
                count[f"{source.format} {target.format} {error.code}"] += 1
    assert count == REPLY_COUNTS


@by_id(BUFFERED + STREAMED)
def test_a_buffered_reply_is_played_back_whole(row):
    codec = codec_of(row)
    if row["response"] is not None:
        reply = codec.read_reply(msgspec.json.encode(row["response"]))
    else:
        reply = fold(read_all(codec.reader(), [stream_of(row)]))
    request = asked(codec)
    writer = codec.writer(request, reply.model)
    folding = Folding()
    for delta in read_all(codec.reader(request), [b"".join(writer.feed(delta) for delta in unfold(reply))]):
        folding.feed(delta)
    assert answered(folding.reply) == answered(reply)


@by_id(ERRORS)
def test_an_error_keeps_status_and_words_in_every_dialect(row):
    source = codec_of(row)
    error = source.read_error(row["status"], [], msgspec.json.encode(row["response"]))
    assert isinstance(error, UpstreamError)
    for target in CODECS.values():
        reply = target.write_error(error)
        if error.kind not in ("overflow", "refused"):
            assert reply.status == row["status"]
        back = target.read_error(reply.status, reply.headers, reply.body)
        assert error.message in back.message
        assert back.kind == error.kind


REQUEST_COUNTS = {
    "anthropic_messages openai_chat translated": 30,
    "anthropic_messages openai_chat unsupported_capability": 10,
    "anthropic_messages openai_responses translated": 29,
    "anthropic_messages openai_responses unsupported_capability": 11,
    "openai_chat anthropic_messages translated": 44,
    "openai_chat openai_responses translated": 44,
    "openai_responses anthropic_messages translated": 46,
    "openai_responses anthropic_messages unsupported_capability": 12,
    "openai_responses openai_chat translated": 45,
    "openai_responses openai_chat unsupported_capability": 11,
    "openai_responses openai_chat unsupported_server_state": 2,
}
REPLY_COUNTS = {
    "anthropic_messages openai_chat translated": 66,
    "anthropic_messages openai_responses translated": 66,
    "openai_chat anthropic_messages translated": 52,
    "openai_chat openai_responses translated": 52,
    "openai_responses anthropic_messages translated": 81,
    "openai_responses anthropic_messages unsupported_capability": 14,
    "openai_responses openai_chat translated": 81,
    "openai_responses openai_chat unsupported_capability": 14,
}
