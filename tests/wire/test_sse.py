"""Server-sent events: the same events whatever the chunks, as a line-by-line reference reads them."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from turnout.wire.sse import COMMENT_PING, Event, SSEParser, event, parse


def reference(stream: bytes) -> list[Event]:
    """The standard's algorithm: whole lines, dispatch on a blank one; a last frame without blank line counts too."""
    events, name, data = [], b"", []
    for line in [*re.split(rb"\r\n|\r|\n", stream), b""]:
        if not line:
            if name or data:
                events.append(Event(name, b"\n".join(data)))
            name, data = b"", []
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
    return events


lines = st.one_of(
    st.binary(max_size=8).map(lambda b: b.translate(None, b"\r\n")),
    st.sampled_from(
        [
            b"data: {}",
            b"data:{}",
            b"data",
            b"data:",
            b"data:  two",
            b"event: ping",
            b"event:ping",
            b": comment",
            b":",
            b"id: 7",
            b"retry: 100",
            b"",
            b"",
            b"",
            "data: é€😀".encode(),
            b"data: [DONE]",
        ]
    ),
)
streams = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])), max_size=12).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)
tails = st.sampled_from([b"", b"data: tail", b"data: tail\n", b"data: tail\r", b"data: tail\r\n"])


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(a, len(stream)) for a in at), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


def read(chunks):
    parser = SSEParser()
    return [e for chunk in chunks for e in parser.feed(chunk)] + parser.rest()


@given(streams, tails, st.lists(st.integers(0, 120), max_size=8))
def test_events_do_not_depend_on_the_chunks(stream, tail, at):
    whole = stream + tail
    assert read(cut(whole, at)) == reference(whole)
    assert read([bytes([b]) for b in whole]) == reference(whole)


@given(
    st.lists(st.tuples(st.sampled_from([b"", b"message_stop", b"x"]), st.binary(min_size=1, max_size=20)), max_size=6)
)
def test_what_is_written_is_read(pairs):
    pairs = [(name, data.translate(None, b"\r\n")) for name, data in pairs]
    pairs = [(name, data) for name, data in pairs if data]
    stream = b"".join(event(data, name) for name, data in pairs)
    assert read([stream]) == [Event(name, data) for name, data in pairs]


def test_an_event_is_given_as_soon_as_its_blank_line_is_there():
    parser = SSEParser()
    assert parser.feed(b"data: 1\n") == []
    assert parser.feed(b"\n") == [Event(b"", b"1")]
    assert parser.feed(b"data: 2\r\n\r\n") == [Event(b"", b"2")]
    assert parser.rest() == []


def test_a_comment_is_no_event():
    assert read([COMMENT_PING, b"data: 1\n\n", COMMENT_PING]) == [Event(b"", b"1")]
    assert parse(b": nothing") is None


def test_the_rest_is_given_once():
    parser = SSEParser()
    parser.feed(b"data: 1")
    assert parser.rest() == [Event(b"", b"1")]
    assert parser.rest() == []
