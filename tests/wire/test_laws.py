"""The laws of every wire format, and of every pair of them."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import native, strategies
from tests.wire.laws import answered, asked, attempt, instructions, one_terminal, read_all, said, streamed, written
from turnout.conversation import (
    Conversation,
    DropForeignReasoning,
    Fault,
    Instruction,
    Message,
    Note,
    Settings,
    Text,
    unfold,
)
from turnout.conversation.edits import Effort
from turnout.errors import ClientError, UpstreamError
from turnout.wire import CODECS
from turnout.wire.codec import Request
from turnout.wire.sse import SSEParser

formats = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
pairs = pytest.mark.parametrize(
    ("source", "target"),
    [pytest.param(s, t, id=f"{s.format}-{t.format}") for s in CODECS.values() for t in CODECS.values()],
)


def every_message(request: Request) -> list[Message]:
    return list(request.conversation.messages)


ORDERED = b'"properties":{"z":{"type":"string"},"a":{"type":"integer"}}'
"""The part of a schema whose keys are out of order; limits around it may be changed for a strict tool."""


def offered(conversation: Conversation) -> list[Any]:
    """The tools; Messages wants closed objects of strict ones."""
    return [
        (t.name, t.description, {k: v for k, v in (t.parameters or {}).items() if k != "additionalProperties"})
        for t in conversation.tools
    ]


# Requests within one format


@formats
@given(data=st.data())
def test_a_request_written_in_its_own_format_is_what_was_read(codec, data):
    body = data.draw(native.bodies(codec.format))
    written = codec.write_request(codec.read_request(native.encoded(body)))
    assert native.plain(msgspec.json.decode(written.body)) == native.plain(body)
    assert written.drops == ()


@formats
@given(data=st.data())
def test_reading_what_was_written_gives_the_same_request(codec, data):
    first = codec.read_request(native.encoded(data.draw(native.bodies(codec.format))))
    once = codec.write_request(first).body
    again = codec.read_request(once)
    assert again.conversation == first.conversation
    assert again.settings == first.settings
    assert codec.write_request(again).body == once


@formats
@given(data=st.data())
def test_roles_are_known_without_decoding_a_message(codec, data):
    request = codec.read_request(native.encoded(data.draw(native.bodies(codec.format))))
    assert list(request.conversation.roles) == [message.role for message in request.conversation.messages]
    assert request.conversation.format == request.format == codec.format


@formats
@given(data=st.data())
def test_the_key_order_of_a_schema_is_kept(codec, data):
    body = data.draw(native.bodies(codec.format))
    for target in CODECS.values():
        try:
            written = target.write_request(codec.read_request(native.encoded(body)), default_max_tokens=100).body
        except ClientError:
            continue
        assert written.count(ORDERED) >= native.encoded(body.get("tools", [])).count(ORDERED)


@st.composite
def damaged(draw: st.DrawFn, body: Any) -> Any:
    """`body` with one value somewhere replaced or removed."""
    junk = st.one_of(
        strategies.json_scalars, st.sampled_from([{}, [], [None], {"type": "x"}, [[]], [{}], "", -1, 1e300])
    )
    if isinstance(body, dict) and body and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(list(body)))
        if draw(st.integers(0, 5)) == 0:
            return {k: v for k, v in body.items() if k != key}
        return {**body, key: draw(damaged(body[key]))}
    if isinstance(body, list) and body and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(body) - 1))
        return [*body[:at], draw(damaged(body[at])), *body[at + 1 :]]
    return draw(junk)


@pairs
@given(data=st.data())
def test_a_damaged_request_is_read_or_refused_in_words(source, target, data):
    body = data.draw(native.bodies(source.format).flatmap(damaged).filter(lambda b: isinstance(b, dict)))

    def whole():
        request = source.read_request(native.encoded(body))
        every_message(request)
        list(request.conversation.system), list(request.conversation.tools)
        return target.write_request(request, default_max_tokens=100)

    _, refused = attempt(whole, ClientError)
    if refused is not None:
        assert 400 <= refused.status < 500
        assert refused.message


@formats
@given(junk=st.one_of(st.binary(max_size=40), strategies.json_values.map(msgspec.json.encode)))
def test_what_is_no_request_is_refused_in_words(codec, junk):
    with pytest.raises(ClientError) as caught:
        every_message(codec.read_request(junk))
    assert caught.value.status == 400


edits = st.lists(
    st.one_of(
        st.builds(Note, strategies.words),
        st.builds(Instruction, strategies.words),
        st.builds(DropForeignReasoning, st.just(()), st.booleans()),
        st.just(Effort("high")),
    ),
    min_size=1,
    max_size=4,
)


@formats
@given(data=st.data(), edits=edits)
def test_patching_twice_is_patching_once(codec, data, edits):
    body = native.encoded(data.draw(native.bodies(codec.format)))
    once = codec.patch(body, edits)
    assert codec.patch(once, edits) == once
    for note in (e for e in edits if isinstance(e, Note)):
        assert any(
            isinstance(p, Text) and p.text == note.text
            for p in codec.read_request(once).conversation.messages[-1].parts
        )
    for edit in (e for e in edits if isinstance(e, Instruction)):
        assert edit.text in "\n\n".join(instructions(codec.read_request(once).conversation))


@formats
@given(data=st.data())
def test_a_patch_leaves_other_fields_as_they_are(codec, data):
    body = data.draw(native.bodies(codec.format))
    after = msgspec.json.decode(codec.patch(native.encoded(body), [Note("be brief"), Instruction("you are")]))
    touched = {"messages", "system", "input", "instructions"}
    assert {k: v for k, v in after.items() if k not in touched} == {k: v for k, v in body.items() if k not in touched}
    assert codec.patch(native.encoded(body), []) == native.encoded(body)


@formats
@given(data=st.data())
def test_asking_for_usage_changes_nothing_else_and_only_once(codec, data):
    body = {**data.draw(native.bodies(codec.format)), "stream": True}
    raw = native.encoded(body)
    after = codec.ask_usage(codec.read_request(raw), raw)
    assert {k: v for k, v in msgspec.json.decode(after).items() if k != "stream_options"} == {
        k: v for k, v in body.items() if k != "stream_options"
    }
    assert codec.read_request(after).settings.stream_usage
    assert codec.ask_usage(codec.read_request(after), after) == after


# Requests from format to format


@pairs
@given(conversation=strategies.conversations())
def test_texts_calls_and_results_survive_every_translation(source, target, conversation):
    first = Request(source.format, conversation, Settings(model="m", max_tokens=100))
    there = source.read_request(source.write_request(first).body)
    arrived = target.read_request(target.write_request(there).body)
    for request in (there, arrived):
        assert said(request.conversation) == said(conversation)
        assert "".join(instructions(request.conversation)) == "".join(
            t for p in conversation.system for t in p.text.split("\n\n")
        )
        assert offered(request.conversation) == offered(conversation)
        assert request.settings.max_tokens == 100


@pairs
@given(data=st.data())
def test_a_translation_is_legal_in_the_target_and_stable(source, target, data):
    body = data.draw(native.bodies(source.format))
    first, refused = attempt(
        lambda: target.write_request(source.read_request(native.encoded(body)), default_max_tokens=100), ClientError
    )
    if first is None:
        assert source is not target
        assert refused.code
        return
    again = target.read_request(first.body)
    every_message(again)
    assert target.write_request(again).drops == ()
    assert target.write_request(source.read_request(native.encoded(body)), default_max_tokens=100) == first


# Replies


@formats
@given(reply=strategies.replies())
def test_a_written_reply_reads_back(codec, reply):
    request = asked(codec, stream=False)
    there = codec.read_reply(codec.write_reply(reply, request, "m").body, request)
    assert answered(there) == answered(reply)
    assert there.model == "m"


@pairs
@given(reply=strategies.replies())
def test_a_reply_survives_every_translation(source, target, reply):
    there = source.read_reply(source.write_reply(reply, asked(source, stream=False), "m").body)
    arrived = target.read_reply(target.write_reply(there, asked(target, stream=False), "m").body)
    assert answered(arrived) == answered(reply)


@formats
@given(reply=strategies.replies(rich=True), data=st.data())
def test_any_reply_can_be_written_or_is_refused_in_words(codec, reply, data):
    request = asked(codec)
    try:
        body = codec.write_reply(reply, request, "m").body
    except (ClientError, UpstreamError):
        return
    codec.read_reply(body, request)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    assert one_terminal(read_all(codec.reader(request), [stream]))


@formats
@given(reply=strategies.replies(), data=st.data())
def test_a_stream_folds_to_the_buffered_reply(codec, reply, data):
    request = asked(codec)
    buffered = codec.read_reply(codec.write_reply(reply, request, "m").body, request)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    assert answered(streamed(codec, stream, request)) == answered(buffered) == answered(reply)


@formats
@given(reply=strategies.replies(), data=st.data())
def test_deltas_do_not_depend_on_the_chunks(codec, reply, data):
    request = asked(codec)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    whole = read_all(codec.reader(request), [stream])
    assert read_all(codec.reader(request), data.draw(strategies.chunked(stream))) == whole
    assert read_all(codec.reader(request), [bytes([b]) for b in stream]) == whole
    assert one_terminal(whole)
    assert read_all(codec.reader(request), [stream.replace(b"\n", b"\r\n")]) == whole


@pairs
@given(reply=strategies.replies(), data=st.data())
def test_a_streamed_reply_survives_every_translation(source, target, reply, data):
    first = written(source, data.draw(strategies.streams(reply)), asked(source))
    deltas = read_all(source.reader(), data.draw(strategies.chunked(first)))
    second = written(target, deltas, asked(target))
    assert answered(streamed(target, second)) == answered(reply)


@formats
@given(reply=strategies.replies(), data=st.data())
def test_pings_mean_nothing_and_after_the_terminal_comes_nothing(codec, reply, data):
    request = asked(codec)
    writer = codec.writer(request, "m")
    pieces = []
    for delta in data.draw(strategies.streams(reply)):
        if data.draw(st.booleans()):
            pieces.append(writer.ping())
        pieces.append(writer.feed(delta))
    for delta in (*unfold(reply), Fault(UpstreamError("timeout", "late"))):
        assert writer.feed(delta) == b""
    assert answered(streamed(codec, b"".join(pieces), request)) == answered(reply)


def events(stream: bytes) -> Iterator[bytes]:
    parser = SSEParser()
    for event in parser.feed(stream):
        yield (b"event: " + event.name + b"\n" if event.name else b"") + b"data: " + event.data + b"\n\n"


@formats
@given(reply=strategies.replies(), data=st.data())
def test_a_cut_stream_is_a_fault_and_never_a_short_answer(codec, reply, data):
    request = asked(codec)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    whole = read_all(codec.reader(request), [stream])
    cut = data.draw(st.integers(0, len(stream)))
    reader, tally = codec.reader(request), codec.tally(request)
    before = reader.feed(stream[:cut])
    relayed = tally.feed(stream[:cut]) + tally.close()
    deltas = [*before, *reader.close()]
    assert one_terminal(deltas)
    if isinstance(deltas[-1], Fault):
        assert deltas[-1].error.kind == "malformed"
        assert deltas[:-1] == whole[: len(deltas) - 1]
        assert tally.error is not None
        assert tally.error.kind == "malformed"
    else:
        # Chat: everything but the usage may have come when the answer was finished.
        assert deltas[:-1] == whole[:-1]
        assert msgspec.structs.replace(deltas[-1], usage=None) == msgspec.structs.replace(whole[-1], usage=None)
        # Messages without its last event: a reader can finish the answer, but what was relayed has no terminal.
        assert tally.error is None or codec.format == "anthropic_messages"
    assert stream.startswith(relayed.rstrip(b"\n"))


@formats
@given(reply=strategies.replies(), data=st.data())
def test_the_tally_agrees_with_the_full_reader(codec, reply, data):
    request = asked(codec)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    there = streamed(codec, stream, request)
    tally = codec.tally(request)
    relayed = b"".join(tally.feed(chunk) for chunk in data.draw(strategies.chunked(stream))) + tally.close()
    assert relayed == stream
    assert (tally.usage, tally.stop, tally.ended, tally.error) == (there.usage, there.stop, True, None)
    assert (tally.id, tally.model) == (there.id, there.model)
    assert tally.started == bool(there.parts)


@formats
@given(reply=strategies.replies(), data=st.data())
def test_usage_is_tallied_also_when_the_client_did_not_ask_for_it(codec, reply, data):
    stream = written(codec, data.draw(strategies.streams(reply)), asked(codec))
    there = streamed(codec, stream)
    silent = asked(codec, usage=False)
    tally = codec.tally(silent)
    relayed = b"".join(tally.feed(chunk) for chunk in data.draw(strategies.chunked(stream))) + tally.close()
    assert tally.usage == there.usage
    assert answered(streamed(codec, relayed))["text"] == there.text
    assert set(events(relayed)) <= set(events(stream))
    if not silent.settings.stream_usage:
        assert streamed(codec, relayed).usage is None
        assert len(list(events(stream))) - len(list(events(relayed))) == 1


kinds = st.sampled_from(["timeout", "unavailable", "rate_limit", "overflow", "refused", "auth", "malformed", "request"])


@formats
@given(reply=strategies.replies(), data=st.data(), kind=kinds)
def test_a_fault_is_the_one_terminal_in_the_dialect(codec, reply, data, kind):
    request = asked(codec)
    deltas = data.draw(strategies.streams(reply))
    kept = deltas[: data.draw(st.integers(0, len(deltas) - 1))]
    writer = codec.writer(request, "m")
    stream = b"".join(writer.feed(delta) for delta in [*kept, Fault(UpstreamError(kind, "it broke"))])
    assert writer.feed(deltas[-1]) == b""
    read = read_all(codec.reader(request), [stream])
    assert one_terminal(read)
    assert isinstance(read[-1], Fault)
    assert "it broke" in read[-1].error.message
    if kind in ("overflow", "rate_limit", "auth") or (kind == "refused" and codec.format != "anthropic_messages"):
        assert read[-1].error.kind == kind
    tally = codec.tally(request)
    assert tally.feed(stream) + tally.close() == stream
    assert tally.error is not None
    assert tally.error.kind == read[-1].error.kind
    assert tally.ended


@formats
@given(reply=strategies.replies(), data=st.data())
def test_a_relay_ends_a_cut_stream_in_the_dialect(codec, reply, data):
    request = asked(codec)
    stream = written(codec, data.draw(strategies.streams(reply)), request)
    tally = codec.tally(request)
    relayed = tally.feed(stream[: data.draw(st.integers(0, len(stream) - 1))])
    ping = tally.ping()
    last = tally.fault(UpstreamError("timeout", "it broke"))
    read = read_all(codec.reader(request), [relayed + ping + last])
    assert one_terminal(read)
    assert tally.fault(UpstreamError("timeout", "again")) == b""
    if last:
        assert isinstance(read[-1], Fault)
        assert "it broke" in read[-1].error.message


@st.composite
def broken(draw: st.DrawFn, stream: bytes) -> bytes:
    """A stream with a few bytes lost, changed or put in."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(stream)))
        stream = stream[:at] + draw(st.binary(max_size=4)) + stream[at + draw(st.integers(0, 6)) :]
    return stream


@formats
@given(reply=strategies.replies(), data=st.data())
def test_a_broken_stream_never_raises(codec, reply, data):
    request = asked(codec)
    stream = data.draw(broken(written(codec, data.draw(strategies.streams(reply)), request)))
    assert one_terminal(read_all(codec.reader(request), data.draw(strategies.chunked(stream))))
    tally = codec.tally(request)
    tally.feed(stream)
    tally.close()


@formats
@given(data=st.data())
def test_a_broken_body_is_a_typed_failure(codec, data):
    body = codec.write_reply(data.draw(strategies.replies()), asked(codec, stream=False), "m").body
    junk = data.draw(
        st.one_of(
            st.binary(max_size=20),
            broken(body),
            strategies.json_values.map(msgspec.json.encode),
            damaged(msgspec.json.decode(body)).map(msgspec.json.encode),
        )
    )
    _, refused = attempt(lambda: codec.read_reply(junk, asked(codec, stream=False)), UpstreamError)
    if refused is not None:
        assert refused.message


# Errors


@formats
@given(
    status=st.sampled_from([400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]),
    body=st.one_of(st.binary(max_size=60), strategies.json_values.map(msgspec.json.encode)),
)
def test_any_error_body_is_classified(codec, status, body):
    error = codec.read_error(status, [(b"retry-after", b"3")], body)
    assert error.status == status
    assert error.retry_after_s == 3
    assert error.message


STATUS = {
    "timeout": 504,
    "unavailable": 502,
    "rate_limit": 429,
    "overflow": 400,
    "refused": 400,
    "malformed": 502,
}


@formats
@pytest.mark.parametrize("kind", STATUS)
def test_an_error_keeps_its_meaning_in_every_envelope(codec, kind):
    reply = codec.write_error(UpstreamError(kind, "it broke", retry_after_s=7.0))
    headers = dict(reply.headers)
    assert reply.status == STATUS[kind]
    assert headers[b"content-type"].startswith(b"application/json")
    assert headers.get(b"retry-after") == b"7"
    back = codec.read_error(reply.status, reply.headers, reply.body)
    assert "it broke" in back.message
    if kind != "malformed" and not (kind == "refused" and codec.format == "anthropic_messages"):
        assert back.kind == kind  # Messages has no name for a refusal, and 502 says no more than unavailable


@formats
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415, 422, 429])
def test_the_clients_own_faults_keep_status_and_path(codec, status):
    reply = codec.write_error(
        ClientError("no such field", status=status, code="a_code", param="messages[0].x", headers={"x-a": "b"})
    )
    assert reply.status == status
    assert (b"x-a", b"b") in reply.headers
    assert "no such field" in codec.read_error(status, reply.headers, reply.body).message


@formats
@pytest.mark.parametrize("status", [500, 503, 529])
def test_an_upstreams_own_status_is_kept(codec, status):
    assert codec.write_error(UpstreamError("unavailable", "x", status=status)).status == status
    assert codec.write_error(UpstreamError("auth", "x", status=403)).status == 403
    assert codec.write_error(UpstreamError("request", "x", status=422)).status == 422


def test_a_conversation_built_by_hand_can_be_written_in_every_format():
    conversation = Conversation((Message("user", (Text("hi"),)),))
    for codec in CODECS.values():
        request = Request(codec.format, conversation, Settings(model="m"))
        assert said(codec.read_request(codec.write_request(request).body).conversation) == [("user", "hi")]
