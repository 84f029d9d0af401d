"""Server-sent events: a push parser and a serialiser.

Tolerates what real servers send: CRLF, frames split anywhere, no space after the colon, comments, a last frame without its
blank line (see `rest`). Nothing is decoded as text before a frame is whole, so multi-byte characters may be cut anywhere.
"""

from typing import NamedTuple


class Event(NamedTuple):
    """One event: its name (b"" when the stream gave none) and its data lines joined by newlines."""

    name: bytes
    data: bytes


class SSEParser:
    """Feed bytes, get whole events. `rest()` after the end gives the event that lacked its blank line, if any."""

    __slots__ = ("_cr", "_held")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # the beginning of an event, as it came: a long one is joined once
        self._cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        # `find`, since `in` on bytes costs four times as much.
        if chunk.find(b"\r") >= 0 or self._cr:
            chunk = self._normalised(chunk)
        held = self._held
        if chunk.find(b"\n\n") < 0 and not (held and chunk.startswith(b"\n") and held[-1].endswith(b"\n")):
            if chunk:
                held.append(chunk)
            return []
        if held:
            held.append(chunk)
            chunk = b"".join(held)
        *frames, rest = chunk.split(b"\n\n")
        self._held = [rest] if rest else []
        return [event for frame in frames if frame and (event := parse(frame)) is not None]

    def rest(self) -> list[Event]:
        """The last event when the stream ended without a blank line after it."""
        frame = b"".join(self._held).rstrip(b"\n")
        self._held = []
        event = parse(frame) if frame else None
        return [event] if event is not None else []

    def _normalised(self, chunk: bytes) -> bytes:
        # A CR at the end may be the first half of a CRLF whose LF is in the next chunk: hold it back.
        if self._cr:
            chunk = b"\r" + chunk
        self._cr = chunk.endswith(b"\r")
        if self._cr:
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def parse(frame: bytes) -> Event | None:
    """The event of one frame (no blank line in it); None for a frame of comments only."""
    if frame.startswith(b"data: ") and frame.find(b"\n") < 0:
        return Event(b"", frame[6:])
    if frame.startswith(b"event: "):
        head, _, rest = frame.partition(b"\n")
        if rest.startswith(b"data: ") and rest.find(b"\n") < 0:
            return Event(head[7:], rest[6:])
    name, data = b"", []
    for line in frame.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return Event(name, b"\n".join(data)) if data or name else None


def event(data: bytes, name: bytes = b"") -> bytes:
    """The bytes of one event."""
    if name:
        return b"event: " + name + b"\ndata: " + data + b"\n\n"
    return b"data: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """A comment that says `text`: bytes on the wire for people who look at it, which no client takes for an event."""
    return b": " + " ".join(text.split()).encode() + b"\n\n"


COMMENT_PING = b": keep-alive\n\n"
"""A comment: bytes on the wire that no client sees."""
