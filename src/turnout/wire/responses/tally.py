"""Watches a streamed response that is relayed byte for byte."""

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from turnout.conversation import Begin, Fault, Stop, Usage
from turnout.errors import UpstreamError
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.responses.reply import CALLS, kinds_of, read_stop, text_of
from turnout.wire.responses.usage import read_usage
from turnout.wire.responses.writer import ResponsesWriter
from turnout.wire.sse import COMMENT_PING, parse

# Only lifecycle events have a response, and inside text a quote is never bare: content events cannot hold these.
_MARKS = (b'"response"', b'"error"')
_QUIET = frozenset({"message", "reasoning"})


def _end(data: bytes) -> int:
    """Where the last whole event of `data` ends: after its blank line; 0 for none."""
    end = data.rfind(b"\n\n") + 2
    if b"\r" in data:
        end = max(end, data.rfind(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0, data.rfind(b"\r\r") + 2)
    return end if end > 1 else 0


_SEQUENCE = re.compile(rb'"sequence_number": ?(\d{1,15})')


class _Peek(Struct):
    type: str = ""
    response: Raw | UnsetType = UNSET
    item: Any = None
    delta: Any = None
    error: Any = None


class _Named(Struct):
    id: str | None = None
    model: str | None = None


_PEEK = msgspec.json.Decoder(_Peek)
_NAMED = msgspec.json.Decoder(_Named)


class ResponsesTally:
    """See `Tally`. The format always reports usage, so nothing is taken out; an event is relayed once it is whole."""

    __slots__ = (
        "_asked",
        "_kept",
        "_over",
        "_seen",
        "_tail",
        "_unclosed",
        "ended",
        "error",
        "id",
        "model",
        "started",
        "stop",
        "usage",
    )

    def __init__(self, asked: Request) -> None:
        self.id = ""
        self.model = ""
        self.usage: Usage | None = None
        self.stop: Stop | None = None
        self.error: UpstreamError | None = None
        self.started = False
        self.ended = False
        self._asked = asked
        self._over = False  # a terminal has been relayed
        self._unclosed = False  # what was returned last lacks its blank line
        self._kept: list[bytes] = []  # the beginning of an event whose end has not come
        self._tail = b""  # its last bytes, where a blank line may be half here
        self._seen = b""  # the latest whole events

    def feed(self, chunk: bytes) -> bytes:
        if (
            self.started
            and not self._kept
            and not self.ended
            and chunk[-2:] == b"\n\n"
            and b'"response"' not in chunk
            and b'"error"' not in chunk
        ):  # whole events of content, as nearly every chunk is
            self._seen = chunk
            return chunk
        if self._tail:
            end = _end(self._tail + chunk) - len(self._tail)
        else:
            end = _end(chunk)
        if end <= 0:
            if chunk:
                self._kept.append(chunk)
                self._tail = (self._tail + chunk)[-3:]
            return b""
        whole, rest = (chunk, b"") if end == len(chunk) else (chunk[:end], chunk[end:])
        if self._kept:
            whole = b"".join((*self._kept, whole))
        self._kept = [rest] if rest else []
        self._tail = rest[-3:]
        if self.ended:
            return whole
        self._seen = whole
        if self.started:
            for mark in _MARKS:
                if mark in whole:
                    break
            else:
                return whole
        self._events(whole)
        return whole

    def close(self) -> bytes:
        rest = b"".join(self._kept)
        self._kept, self._tail = [], b""
        if rest and not self.ended:
            if _whole(rest):
                self._events(rest)
                self._unclosed = True
            else:
                rest = b""
        if not self.ended:
            self._fail(UpstreamError("malformed", "the stream ended without a terminal event"))
        return rest

    def ping(self) -> bytes:
        return COMMENT_PING

    def fault(self, error: UpstreamError) -> bytes:
        if self._over:
            return b""
        writer = ResponsesWriter(self._asked, self.model)
        if self.id:
            writer.resume(Begin(self.id, self.model), self._next())
        self._over = True
        self._fail(self.error or error)
        return (b"\n\n" if self._unclosed else b"") + writer.feed(Fault(error))

    def _next(self) -> int:
        """The sequence number after the last one relayed."""
        found = _SEQUENCE.findall(self._seen)
        return int(found[-1]) + 1 if found else 0

    def _events(self, frames: bytes) -> None:
        if b"\r" in frames:
            frames = frames.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for frame in frames.split(b"\n\n"):
            if self.started and not any(mark in frame for mark in _MARKS):
                continue
            event = parse(frame.strip(b"\n"))
            if event is not None and event.data and event.data != b"[DONE]":
                self._event(event.data)
            if self.ended:
                return

    def _event(self, data: bytes) -> None:
        try:
            event = _PEEK.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._fail(UpstreamError("malformed", f"an event of the stream is not valid JSON: {error}"))
            return
        kind = event.type
        if kind == "error" or (not kind and event.error):
            self._over = True
            self._fail(upstream_error(None, (), data))
        elif event.response is not UNSET:
            try:
                self._response(kind, event.response)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._fail(UpstreamError("malformed", f"an event of the stream is not valid JSON: {error}"))
        elif kind.endswith(".delta"):
            self.started |= bool(event.delta)
        elif kind == "response.output_item.added" and isinstance(event.item, dict):
            self.started |= text_of(event.item.get("type")) not in _QUIET

    def _response(self, kind: str, raw: Raw) -> None:
        if not self.id:
            try:
                named = _NAMED.decode(raw)
            except msgspec.ValidationError:  # a subclass of DecodeError, and no reason to give up
                named = _Named()
            self.id, self.model = named.id or "", named.model or ""
        if kind in ("response.failed", "response.cancelled"):
            value = msgspec.json.decode(raw)
            error = value.get("error") if isinstance(value, dict) else None
            self._count(value)
            self._over = True
            self._fail(upstream_error(None, (), {"error": error or {"message": f"the upstream sent {kind}"}}))
        elif kind in ("response.completed", "response.incomplete"):
            value = msgspec.json.decode(raw)
            self._count(value)
            self.ended = self._over = True
            if isinstance(value, dict):
                kinds, refused = kinds_of(value.get("output"))
                value["status"] = kind.removeprefix("response.")
                self.stop, _ = read_stop(value, not kinds.isdisjoint(CALLS), refused)
                self.started |= bool(kinds)

    def _count(self, response: Any) -> None:
        if isinstance(response, dict):
            self.usage = read_usage(response.get("usage"))

    def _fail(self, error: UpstreamError) -> None:
        self.error = error
        self.ended = True


def _whole(frame: bytes) -> bool:
    """Whether the last event lacks no more than its blank line."""
    event = parse(frame.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n"))
    if event is None or event.data == b"[DONE]":
        return True
    try:
        msgspec.json.decode(event.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
