"""Watching a relayed Chat stream: usage, stop reason and errors, without decoding what does not matter."""

from typing import Any

import msgspec

from turnout.conversation import Stop, Usage
from turnout.errors import UpstreamError
from turnout.wire.chat.chunks import DECODER, Chunk, usage_of
from turnout.wire.chat.fault import envelope
from turnout.wire.chat.reply import is_error, malformed, read_reply, stopped_by
from turnout.wire.chat.usage import BROKEN, read_stop, read_usage
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.sse import COMMENT_PING, event, parse

_USAGE, _USAGE_NULL, _USAGE_NULL_SPACED = b'"usage"', b'"usage":null', b'"usage": null'
_FINISH, _FINISH_NULL, _FINISH_NULL_SPACED = b'"finish_reason"', b'"finish_reason":null', b'"finish_reason": null'
_ERROR, _DONE, _CALLS, _CALLS_SPACED = b'"error"', b"[DONE]", b'"tool_calls":[{', b'"tool_calls": [{'


class ChatTally:
    """See `turnout.wire.codec.Tally`.

    Once content has begun, events are looked at as bytes: only those that hold usage, a finish reason, an error or the
    terminator are decoded. A key inside text has its quotes escaped, so its bytes never look like a key's.
    """

    def __init__(self, asked: Request) -> None:
        self.id = ""
        self.model = ""
        self.usage: Usage | None = None
        self.stop: Stop | None = None
        self.error: UpstreamError | None = None
        self.started = False
        self.ended = False
        self._asked = asked
        self._strip = not asked.settings.stream_usage
        self._tail = b""  # of an event that is not whole yet: its beginning, and the pieces after that
        self._pieces: list[bytes] = []
        self._ragged = False  # the last bytes relayed lacked their blank line
        self._called = False
        self._finish: str | None = None
        self._word: Any = None

    def feed(self, chunk: bytes) -> bytes:
        if self._tail:
            if chunk.find(b"\n") < 0:
                # Nothing ends here: the pieces of a long event are joined once.
                self._pieces.append(chunk)
                return b""
            buffer = self._take_tail() + chunk
        else:
            buffer = chunk
        if buffer.endswith(b"\n\n"):
            self._tail = b""
            return self._scan(buffer)
        # Only whole events are passed on: then a keep-alive or a failure may follow at any time.
        cut = _border(buffer)
        self._tail = buffer[cut:]
        return self._scan(buffer[:cut]) if cut else b""

    def close(self) -> bytes:
        tail = self._take_tail()
        whole = not self.ended and tail.lstrip()[:1] == b"{"
        if whole:
            self._buffered(tail)
        kept = tail if whole else self._scan(tail) if tail else b""
        if not self.ended:
            broken = not whole and bool(tail.strip()) and _broken(tail)
            if not whole and (self._finish is None or broken):
                self.error = self.error or malformed("the stream ended before the answer was finished")
                kept = b"" if broken else kept
            # A failure is a terminal only once `fault` has written it.
            self.ended = self.error is None
        self._ragged = bool(kept) and not kept.endswith(b"\n\n")
        return kept

    def _take_tail(self) -> bytes:
        tail, self._tail = self._tail, b""
        if self._pieces:
            tail = b"".join((tail, *self._pieces))
            self._pieces = []
        return tail

    def ping(self) -> bytes:
        """A comment."""
        return b"" if self.ended else COMMENT_PING

    def fault(self, error: UpstreamError) -> bytes:
        if self.ended:
            return b""
        self.ended = True
        self.error = error
        return (b"\n\n" if self._ragged else b"") + event(msgspec.json.encode(envelope(error)))

    def _buffered(self, body: bytes) -> None:
        """The server ignored `stream` and sent one JSON object."""
        try:
            reply = read_reply(body, self._asked)
        except UpstreamError as error:
            self.error = error.with_traceback(None)
            return
        self.id, self.model, self.usage, self.stop = reply.id, reply.model, reply.usage, reply.stop
        self.started = True

    def _scan(self, whole: bytes) -> bytes:
        if self.started and not self._matters(whole):
            return whole
        kept: list[bytes] = []
        frames = _frames(whole)
        for frame in frames:
            if (self.started and not self._matters(frame)) or self._event(frame):
                kept.append(frame)
            if self.ended and self.error is not None:
                break  # nothing follows an error, however the events were cut into chunks
        return whole if len(kept) == len(frames) else b"".join(kept)

    def _matters(self, events: bytes) -> bool:
        """Whether any of these events may hold more than content."""
        # `find` and `count`, since `in` on bytes costs four times as much.
        find, count = events.find, events.count
        if not self._called and (find(_CALLS) >= 0 or find(_CALLS_SPACED) >= 0):
            self._called = True
        reasons = count(_FINISH)
        return not (
            (reasons == count(_FINISH_NULL) or reasons == count(_FINISH_NULL) + count(_FINISH_NULL_SPACED))
            and find(_DONE) < 0
            and find(_ERROR) < 0
            and (find(_USAGE) < 0 or count(_USAGE) == count(_USAGE_NULL) + count(_USAGE_NULL_SPACED))
        )

    def _event(self, frame: bytes) -> bool:
        """Account for one event; False when it holds only usage that the client did not ask for."""
        if b"\r" in frame:
            frame = frame.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        parsed = parse(frame.strip(b"\n"))
        data = parsed.data if parsed is not None else b""
        if not data or self.ended:
            return True
        if data.strip() == _DONE:
            self.ended = True
            self._settle()
            return True
        try:
            return self._decoded(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Relayed as it is; the client sees what the upstream sent.
            self.error = self.error or malformed("an event of the stream is not valid JSON")
            return True

    def _decoded(self, data: bytes) -> bool:
        try:
            chunk = DECODER.decode(data)
        except msgspec.ValidationError:
            value = msgspec.json.decode(data)
            if isinstance(value, dict) and is_error(value):
                self._fail(upstream_error(None, (), value))
            return True
        return self._chunk(chunk, data)

    def _chunk(self, chunk: Chunk, data: bytes) -> bool:
        if chunk.error or chunk.object == "error":
            self._fail(upstream_error(None, (), msgspec.json.decode(data)))
            return True
        if not self.id and chunk.id:
            self.id = chunk.id
        if not self.model and chunk.model:
            self.model = chunk.model
        usage = usage_of(chunk)
        if usage is not None:
            self.usage = read_usage(usage) or self.usage
        if not chunk.choices:
            if usage is None and chunk.choices is None and is_error(value := msgspec.json.decode(data)):
                self._fail(upstream_error(None, (), value))
            return not (self._strip and usage is not None)
        for choice in chunk.choices:
            if choice.index:
                continue
            if choice.error or choice.finish_reason in BROKEN:
                said = choice.error or {
                    "message": f"the upstream broke off ({choice.finish_reason})",
                    "code": "server_error",
                }
                self._fail(upstream_error(None, (), {"error": said}))
                return True
            delta = choice.delta or choice.message
            if delta is not None:
                if delta.tool_calls or delta.function_call is not None:
                    self._called = self.started = True
                elif (
                    delta.content
                    or delta.reasoning_content
                    or delta.reasoning
                    or delta.reasoning_details
                    or delta.refusal
                ):
                    self.started = True
            if choice.finish_reason:
                self._finish = self._finish or choice.finish_reason
                self._word = choice.stop_reason
                self._settle()
        return True

    def _fail(self, error: UpstreamError) -> None:
        self.error = error
        self.ended = True

    def _settle(self) -> None:
        if self._finish is None:
            if self.usage is None:
                self.error = self.error or malformed("the stream ended without a finish reason")
                return
            self._finish = "stop"
        self.stop, _ = read_stop(self._finish, self._called)
        if self.stop == "end" and isinstance(self._word, str) and self._word:
            self.stop, _ = stopped_by(self._word, self._asked)


def _border(buffer: bytes) -> int:
    """The end of the last whole event in `buffer`; 0 when there is none."""
    cut = buffer.rfind(b"\n\n")
    end = cut + 2 if cut >= 0 else 0
    cut = buffer.rfind(b"\n\r\n")
    return max(end, cut + 3 if cut >= 0 else 0)


def _frames(whole: bytes) -> list[bytes]:
    """Events with the blank lines after them; joined they are `whole`."""
    if whole.find(b"\r") < 0:
        *parts, last = whole.split(b"\n\n")
        frames = [part + b"\n\n" for part in parts]
        return [*frames, last] if last else frames
    frames = []
    at = 0
    while at < len(whole):
        lf, crlf = whole.find(b"\n\n", at), whole.find(b"\n\r\n", at)
        ends = [e for e in (lf + 2 if lf >= 0 else 0, crlf + 3 if crlf >= 0 else 0) if e]
        end = min(ends) if ends else len(whole)
        frames.append(whole[at:end])
        at = end
    return frames


def _broken(tail: bytes) -> bool:
    """Whether the last event was cut before its end."""
    parsed = parse(tail.strip(b"\r\n"))
    if parsed is None or parsed.data.strip() == _DONE:
        return parsed is None and not tail.startswith(b":")
    try:
        msgspec.json.decode(parsed.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return False
