"""A Messages stream -> deltas."""

from typing import Any

import msgspec

from turnout.conversation import Begin, Delta, End, Fault
from turnout.errors import ClientError, UpstreamError
from turnout.wire.anthropic.block_growth import Growth, growth_of
from turnout.wire.anthropic.events import (
    ANY,
    EVENT,
    MESSAGE_FIELDS,
    BlockDelta,
    BlockStart,
    BlockStop,
    ErrorEvent,
    MessageDelta,
    MessageStart,
    MessageStop,
)
from turnout.wire.anthropic.reply import STOPS, stated_extra, stop_detail
from turnout.wire.anthropic.usage import merged, read_usage
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.names import Names
from turnout.wire.sse import Event as Frame
from turnout.wire.sse import SSEParser

_HEAD = frozenset(("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"))
_DELTA = frozenset(("stop_reason", "stop_sequence"))


class MessagesReader:
    """See `turnout.wire.codec.Reader`. Blocks that overlap are put in order: a later one is held back until the one before
    it has stopped."""

    def __init__(self, asked: Request | None = None) -> None:
        foreign = asked is not None and asked.format != "anthropic_messages"
        self._names = Names(asked.conversation.tools) if foreign and asked is not None else None
        self._parser = SSEParser()
        self._usage: dict[str, Any] | None = None
        self._last: MessageDelta | None = None
        self._open: dict[int, Growth] = {}  # by the block's index, in the order they began
        self._count = 0
        self._began = False
        self._over = False

    def feed(self, chunk: bytes) -> list[Delta]:
        """The deltas that `chunk` completes."""
        out: list[Delta] = []
        for frame in self._parser.feed(chunk):
            if self._over:
                break
            self._frame(frame, out)
        return out

    def close(self) -> list[Delta]:
        """What is left when the upstream closes: a Fault unless the reply was finished."""
        out: list[Delta] = []
        for frame in self._parser.rest():
            if not self._over:
                self._frame(frame, out)
        if not self._over:
            if self._last is not None and self._last.delta.get("stop_reason") is not None:
                self._finish(out)
            else:
                self._fault(out, UpstreamError("malformed", "the stream ended before the reply was finished"))
        return out

    def _frame(self, frame: Frame, out: list[Delta]) -> None:
        data = frame.data
        try:
            event = EVENT.decode(data)
        except msgspec.ValidationError as error:
            self._odd(frame, error, out)
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if data != b"[DONE]" and data:
                self._fault(out, UpstreamError("malformed", "the stream holds an event that is not valid JSON"))
            return
        kind = type(event)
        try:
            if kind is BlockDelta:
                self._grow(event, data, out)  # type: ignore[arg-type]  # mypy does not narrow by `type() is`
            elif isinstance(event, BlockStart):
                self._start_block(event, out)
            elif isinstance(event, BlockStop):
                self._stop_block(event.index, out)
            elif isinstance(event, MessageStart):
                self._begin(event, out)
            elif isinstance(event, MessageDelta):
                self._usage = merged(self._usage, event.usage)
                self._last = event if self._last is None else _joined(self._last, event)
            elif isinstance(event, MessageStop):
                self._finish(out)
            elif isinstance(event, ErrorEvent):
                self._fault(out, upstream_error(None, (), ANY.decode(data)))
        except (ClientError, msgspec.DecodeError, RecursionError) as error:
            self._fault(out, UpstreamError("malformed", f"the stream holds an event that is not valid: {error}"))

    def _odd(self, frame: Frame, error: msgspec.ValidationError, out: list[Delta]) -> None:
        """An event of an unknown type is skipped, as the API asks of its clients; a broken one of a known type is a fault."""
        try:
            value = ANY.decode(frame.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._fault(out, UpstreamError("malformed", "the stream holds an event that is not valid JSON"))
            return
        kind = value.get("type") if isinstance(value, dict) else None
        if frame.name == b"error" or (kind is None and isinstance(value, dict) and "error" in value):
            self._fault(out, upstream_error(None, (), value))
        elif kind is None or "Invalid value" not in str(error):
            self._fault(out, UpstreamError("malformed", f"the stream holds an event that is not valid: {error}"))

    def _begin(self, event: MessageStart, out: list[Delta]) -> None:
        if self._began:
            return
        self._began = True
        head = MESSAGE_FIELDS.decode(event.message)
        usage = head.get("usage")
        self._usage = usage if isinstance(usage, dict) else None
        extra = {k: v for k, v in head.items() if k not in _HEAD and v is not None}
        named = str(head.get("id") or ""), str(head.get("model") or "")
        out.append(Begin(*named, None, read_usage(usage), extra, "anthropic_messages"))

    def _start_block(self, event: BlockStart, out: list[Delta]) -> None:
        if event.index in self._open:
            raise ClientError(f"block {event.index} starts twice")
        growth = growth_of(event.content_block, self._names)
        if not self._open:
            self._lead(growth, out)
        self._open[event.index] = growth

    def _lead(self, growth: Growth, out: list[Delta]) -> None:
        """Make `growth` the part that is being sent, with what it has so far."""
        if not self._began:
            self._began = True
            out.append(Begin(format="anthropic_messages"))
        growth.lead(self._count, out)
        self._count += 1

    def _grow(self, event: BlockDelta, data: bytes, out: list[Delta]) -> None:
        growth = self._open.get(event.index)
        if growth is None:
            raise ClientError(f"block {event.index} grows but is not open")
        growth.grow(event.delta, data, out)

    def _stop_block(self, index: int, out: list[Delta]) -> None:
        growth = self._open.get(index)
        if growth is None:
            raise ClientError(f"block {index} stops but is not open")
        growth.stopped = True
        while self._open:
            first = next(iter(self._open))
            if not self._open[first].stopped:
                break
            self._open.pop(first).end(out)
            if self._open:
                self._lead(self._open[next(iter(self._open))], out)

    def _finish(self, out: list[Delta]) -> None:
        last = self._last
        reason = last.delta.get("stop_reason") if last is not None else None
        if last is None or not isinstance(reason, str):
            self._fault(out, UpstreamError("malformed", "the stream ended without a stop_reason"))
            return
        for index in list(self._open):
            if index in self._open:
                self._stop_block(index, out)
        if not self._began:
            self._began = True
            out.append(Begin(format="anthropic_messages"))
        details = last.delta.get("stop_details")
        extra = stated_extra({k: v for k, v in last.delta.items() if k not in _DELTA})
        if last.context_management is not None:
            extra["context_management"] = last.context_management
        sequence = last.delta.get("stop_sequence")
        self._over = True
        out.append(
            End(
                STOPS.get(reason, "end"),
                read_usage(self._usage),
                sequence if isinstance(sequence, str) else None,
                stop_detail(reason, details),
                extra,
            )
        )

    def _fault(self, out: list[Delta], error: UpstreamError) -> None:
        self._over = True
        out.append(Fault(error))


def _joined(early: MessageDelta, late: MessageDelta) -> MessageDelta:
    stated = {k: v for k, v in late.delta.items() if v is not None}
    context = late.context_management if late.context_management is not None else early.context_management
    return MessageDelta({**early.delta, **stated}, None, context)
