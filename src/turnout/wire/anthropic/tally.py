"""Watches a relayed Messages stream. Content events pass unread: only chunks with a marker of another event are taken apart."""

from typing import Any

import msgspec

from turnout.conversation import Stop, Usage
from turnout.errors import UpstreamError
from turnout.wire.anthropic.failure import error_event
from turnout.wire.anthropic.reply import STOPS
from turnout.wire.anthropic.usage import merged, read_usage
from turnout.wire.faults import upstream_error
from turnout.wire.sse import COMMENT_PING, Event, parse

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_ANY = msgspec.json.Decoder()
_PLAIN_STARTS = ("text", "thinking")


class MessagesTally:
    """See `turnout.wire.codec.Tally`. Messages always reports usage, so nothing is ever taken out of the stream."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.usage: Usage | None = None
        self.stop: Stop | None = None
        self.error: UpstreamError | None = None
        self.started = False
        self.ended = False
        self._native: dict[str, Any] | None = None
        self._begun = False
        self._relayed_terminal = False
        self._tail = b""  # of an event that is not whole yet: its beginning, and the pieces after that
        self._pieces: list[bytes] = []
        self._unclosed = False  # what was returned last lacks its blank line

    def feed(self, chunk: bytes) -> bytes:
        """The whole events of `chunk`, as they came. An incomplete one is held back, so that a ping or an error can always
        follow what has been relayed."""
        if self._tail:
            if chunk.find(b"\n") < 0:
                # Nothing ends here: the pieces of a long event are joined once.
                self._pieces.append(chunk)
                return b""
            data = self._take_tail() + chunk
        else:
            data = chunk
        if data.endswith(b"\n\n"):
            self._tail = b""
        else:
            cut = _last_border(data)
            self._tail = data[cut:]
            data = data[:cut]
            if not data:
                return b""
        # `find`, since `in` on bytes costs four times as much.
        find = data.find
        if not self.started or find(b"message_") >= 0 or find(b'"error"') >= 0 or find(b"event: error") >= 0:
            self._look(data)
        return data

    def close(self) -> bytes:
        """The upstream closed. An event that lacks only its blank line is relayed as it is; half an event is not."""
        tail = self._take_tail()
        event = parse(_unix(tail).rstrip(b"\n")) if tail else None
        if event is None or _decoded(event.data) is None:
            tail = b""
        else:
            self._look(tail)
            self._unclosed = True
        if not self.ended:
            self.ended = True
            self.error = UpstreamError("malformed", "the stream ended before the reply was finished")
        return tail

    def _take_tail(self) -> bytes:
        tail, self._tail = self._tail, b""
        if self._pieces:
            tail = b"".join((tail, *self._pieces))
            self._pieces = []
        return tail

    def ping(self) -> bytes:
        """A `ping` event once the message has begun, before that a comment."""
        if self._relayed_terminal:
            return b""
        return PING if self._begun else COMMENT_PING

    def fault(self, error: UpstreamError) -> bytes:
        """An in-stream `error` event, unless a terminal has been relayed."""
        if self._relayed_terminal:
            return b""
        self._relayed_terminal = self.ended = True
        self.error = self.error or error
        return (b"\n\n" if self._unclosed else b"") + error_event(error)

    def _look(self, data: bytes) -> None:
        for frame in _unix(data).split(b"\n\n"):
            if not frame:
                continue
            if not self.started and b"content_block_" in frame:
                self._content(frame)
            if b"message_" in frame or b"error" in frame:
                event = parse(frame)
                if event is not None:
                    self._event(event)

    def _content(self, frame: bytes) -> None:
        # An empty text or thinking block that opens is no content yet; a call, or any delta, is.
        event = parse(frame)
        value = _decoded(event.data) if event is not None else None
        if value is None:
            return
        kind = value.get("type")
        block = value.get("content_block")
        if kind == "content_block_delta":
            self.started = True
        elif kind == "content_block_start" and isinstance(block, dict):
            plain = any(block.get("type") == kind for kind in _PLAIN_STARTS)
            self.started = not plain or bool(block.get("text") or block.get("thinking"))

    def _event(self, event: Event) -> None:
        if self.ended:
            return
        value = _decoded(event.data)
        if value is None:
            return
        kind = value.get("type")
        if kind == "message_start":
            self._head(value.get("message"))
        elif kind == "message_delta":
            self._native = merged(self._native, value.get("usage"))
            self.usage = read_usage(self._native)
            delta = value.get("delta")
            reason = delta.get("stop_reason") if isinstance(delta, dict) else None
            if isinstance(reason, str):
                self.stop = STOPS.get(reason, "end")
        elif kind == "message_stop":
            self.ended = self._relayed_terminal = True
        elif kind == "error" or event.name == b"error" or (kind is None and "error" in value):
            self.error = upstream_error(None, (), value)
            self.ended = self._relayed_terminal = True

    def _head(self, message: Any) -> None:
        self._begun = True
        if not isinstance(message, dict):
            return
        self.id = str(message.get("id") or "")
        self.model = str(message.get("model") or "")
        usage = message.get("usage")
        self._native = usage if isinstance(usage, dict) else None
        self.usage = read_usage(self._native)


def _last_border(data: bytes) -> int:
    """Where the last whole event ends: behind a blank line, however lines end."""
    border = max(data.rfind(b"\n\n") + 2, data.rfind(b"\n\r\n") + 3)
    if border > 2:
        return border
    return data.rfind(b"\r\r") + 2 if b"\n" not in data and b"\r\r" in data else 0


def _unix(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        value = _ANY.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
