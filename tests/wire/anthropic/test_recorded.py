"""Recorded Messages exchanges: requests and replies read and written again say the same, streams fold to the same reply."""

from typing import Any

import msgspec
import pytest

from tests.recorded import captures, needs_recordings
from turnout.conversation import Reply, fold
from turnout.wire.anthropic import MESSAGES

pytestmark = needs_recordings


def recorded() -> list[Any]:
    return [row for row in captures() if "anthropic" in row["protocol"]]


def requests() -> list[bytes]:
    found = [row.get("request") for row in recorded()]
    return [msgspec.json.encode(r) for r in found if isinstance(r, dict) and "messages" in r]


def replies() -> list[bytes]:
    found = [row.get("response") for row in recorded()]
    return [msgspec.json.encode(r) for r in found if isinstance(r, dict) and r.get("type") == "message"]


def streams() -> list[bytes]:
    found = []
    for row in recorded():
        if row.get("response_sse"):
            found.append(row["response_sse"].encode())
        elif row.get("response_chunks"):
            chunks = [c if isinstance(c, str) else msgspec.json.encode(c).decode() for c in row["response_chunks"]]
            found.append("".join(f"data: {c}\n\n" for c in chunks).encode())
    return found


def said(value: Any) -> Any:
    """What a body says: fields that say nothing (null, false, an empty list) left out."""
    return {k: v for k, v in value.items() if v is not None and v is not False and v != []}


def plain(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, format=None, frames=None)


def test_there_is_enough_to_test_with() -> None:
    assert len(requests()) >= 35
    assert len(replies()) >= 30
    assert len(streams()) >= 15


def test_requests_say_the_same_after_reading_and_writing() -> None:
    for body in requests():
        request = MESSAGES.read_request(body)
        written = MESSAGES.write_request(request)
        assert written.drops == ()
        assert said(msgspec.json.decode(written.body)) == said(msgspec.json.decode(body))
        again = MESSAGES.read_request(written.body)
        assert again.conversation == request.conversation
        assert again.settings == request.settings


def test_replies_say_the_same_after_reading_and_writing() -> None:
    for body in replies():
        reply = MESSAGES.read_reply(body)
        written = MESSAGES.write_reply(reply, MESSAGES.read_request(requests()[0]), reply.model)
        assert written.drops == ()
        assert said(msgspec.json.decode(written.body)) == said(msgspec.json.decode(body))
        assert plain(MESSAGES.read_reply(written.body)) == plain(reply)


def test_streams_fold_to_a_reply_that_is_written_and_read_alike_whole_or_streamed() -> None:
    asked = MESSAGES.read_request(requests()[0])
    for stream in streams():
        reader = MESSAGES.reader()
        deltas = reader.feed(stream) + reader.close()
        reply = fold(deltas)
        writer = MESSAGES.writer(asked, reply.model)
        again = MESSAGES.reader()
        assert fold(again.feed(b"".join(map(writer.feed, deltas))) + again.close()) == reply
        native = msgspec.structs.replace(reply, format="anthropic_messages")
        assert plain(MESSAGES.read_reply(MESSAGES.write_reply(native, asked, reply.model).body)) == plain(reply)


@pytest.mark.parametrize("size", [1, 13, 1000])
def test_chunk_borders_do_not_matter(size: int) -> None:
    for stream in streams()[:12]:
        whole = MESSAGES.reader()
        expected = whole.feed(stream) + whole.close()
        reader = MESSAGES.reader()
        tally = MESSAGES.tally(MESSAGES.read_request(requests()[0]))
        seen = []
        relayed = b""
        for at in range(0, len(stream), size):
            seen += reader.feed(stream[at : at + size])
            relayed += tally.feed(stream[at : at + size])
        assert seen + reader.close() == expected
        assert relayed + tally.close() == stream
        reply = fold(expected)
        assert tally.error is None
        assert tally.ended
        assert tally.started
        assert (tally.id, tally.model, tally.usage, tally.stop) == (reply.id, reply.model, reply.usage, reply.stop)


def test_recorded_errors_are_classified_and_keep_their_words() -> None:
    seen = set()
    for row in recorded():
        value = row.get("response")
        if isinstance(value, dict) and value.get("type") == "error":
            error = MESSAGES.read_error(row["status"] or 400, (), msgspec.json.encode(value))
            assert error.message == value["error"]["message"]
            seen.add(error.kind)
    assert {"request", "overflow", "rate_limit", "unavailable"} <= seen
