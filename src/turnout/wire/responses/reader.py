"""The bytes of a streamed response -> deltas: what each event says of the items that grow."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from turnout.conversation import (
    Delta,
    End,
    Fault,
    Part,
    Text,
    TextDelta,
)
from turnout.errors import UpstreamError
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.names import Names
from turnout.wire.responses.content import read_annotation
from turnout.wire.responses.growth import EMPTY_REFUSAL, EMPTY_TEXT, Growth, Slot, opening
from turnout.wire.responses.reply import check_failed, extra_of, read_output, read_stop
from turnout.wire.responses.usage import read_usage
from turnout.wire.sse import SSEParser


class _Event(Struct):
    type: str = ""
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item_id: str | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    item: dict[str, Any] | None = None
    part: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    response: Raw | UnsetType = UNSET
    error: Any = None


_EVENT = msgspec.json.Decoder(_Event)


class ResponsesReader:
    """See `Reader`."""

    __slots__ = ("_ended", "_growth", "_live", "_live_at", "_live_part", "_sse")

    def __init__(self, asked: Request | None = None) -> None:
        self._sse = SSEParser()
        self._growth = Growth(Names(asked.conversation.tools) if asked is not None else None)
        self._live: Slot | None = None  # the text that grows now, so that its deltas find it at once
        self._live_at: int | None = None
        self._live_part: int | None = None
        self._ended = False

    def feed(self, chunk: bytes) -> list[Delta]:
        for event in self._sse.feed(chunk):
            if self._ended:
                break
            self._event(event.data)
        return self._growth.take()

    def close(self) -> list[Delta]:
        for event in self._sse.rest():
            if not self._ended:
                self._event(event.data)
        if not self._ended:
            self._fault(UpstreamError("malformed", "the stream ended without a terminal event"))
        return self._growth.take()

    def _event(self, data: bytes) -> None:
        if not data or data == b"[DONE]":
            return
        try:
            event = _EVENT.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._unread(data, error)
            return
        live = self._live
        if (
            live is not None
            and event.type == "response.output_text.delta"
            and event.output_index == self._live_at
            and event.content_index == self._live_part
            and not live.done
            and event.delta
        ):
            live.pieces.append(event.delta)
            self._growth.out.append(TextDelta(live.index, event.delta))
            return
        handle = _HANDLERS.get(event.type)
        try:
            if handle is not None:
                handle(self, event)
            elif (not event.type and event.error) or event.type == "error":
                self._error(data)
        except UpstreamError as error:
            self._fault(error.with_traceback(None))  # its frames know this reader

    def _unread(self, data: bytes, error: Exception) -> None:
        """An event of another shape than expected: an unknown kind is left out, anything else breaks the stream."""
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._fault(UpstreamError("malformed", f"an event of the stream is not valid JSON: {error}"))
            return
        kind = value.get("type") if isinstance(value, dict) else None
        if kind == "error":
            self._error(data)
        elif not isinstance(kind, str) or kind in _HANDLERS:
            self._fault(UpstreamError("malformed", f"an event of the stream has the wrong shape: {error}"))

    def _error(self, data: bytes) -> None:
        self._fault(upstream_error(None, (), data))

    def _fault(self, error: UpstreamError) -> None:
        self._growth.out.append(Fault(error))
        self._ended = True

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def _created(self, event: _Event) -> None:
        if not self._growth.begun and event.response is not UNSET:
            self._growth.begin(_decoded(event.response))

    def _terminal(self, event: _Event) -> None:
        response = _decoded(event.response)
        if not isinstance(response, dict):
            raise UpstreamError("malformed", f"{event.type} came without its response")
        if response.get("status") in (None, "in_progress", "queued"):
            response["status"] = event.type.removeprefix("response.")
        check_failed(response)
        if not self._growth.begun:
            self._growth.begin(response)
        output = response.get("output")
        if isinstance(output, list):
            self._growth.reconcile(output)
        for item in self._growth.items.values():
            self._growth.finish(item)
        self._growth.pump()
        stop, detail = read_stop(response, self._growth.called, self._growth.refused)
        self._growth.out.append(End(stop, read_usage(response.get("usage")), None, detail, extra_of(response)))
        self._ended = True

    def _failed(self, event: _Event) -> None:
        response = _decoded(event.response)
        error = response.get("error") if isinstance(response, dict) else None
        said = error or event.error or {"message": f"the upstream ended the reply with {event.type}"}
        raise upstream_error(None, (), {"error": said})

    # -- items -------------------------------------------------------------------------------------------------------

    def _key(self, event: _Event) -> int:
        """The output index of an event; by the item's id, or the newest item, where it has none."""
        if event.output_index is not None:
            return event.output_index
        if event.item_id is not None:
            for key, item in self._growth.items.items():
                if item.id == event.item_id:
                    return key
        return self._growth.last

    def _added(self, event: _Event) -> None:
        if not isinstance(event.item, dict):
            raise UpstreamError("malformed", "response.output_item.added came without its item")
        key = event.output_index if event.output_index is not None else self._growth.last + 1
        if key not in self._growth.items:
            self._growth.item(event.item, key)
            self._growth.pump()

    def _done(self, event: _Event) -> None:
        if not isinstance(event.item, dict):
            raise UpstreamError("malformed", "response.output_item.done came without its item")
        key = self._key(event)
        if key not in self._growth.items:
            key = max(key, 0)
            self._growth.item(event.item, key)
        self._growth.item_done(event.item, key)
        self._growth.pump()

    # -- growth ------------------------------------------------------------------------------------------------------

    def _slot(self, event: _Event, begin: Part) -> Slot:
        """The content part of a message that an event speaks of."""
        key = self._key(event)
        item = self._growth.items.get(key)
        if item is None:
            item = self._growth.item({"type": "message", "id": event.item_id}, max(key, 0))
        if item.kind != "message":
            raise UpstreamError("malformed", f"{event.type} speaks of an item of type {item.kind}")
        place = event.content_index if event.content_index is not None else max(0, len(item.slots) - 1)
        while len(item.slots) <= place:
            for earlier in item.slots:
                earlier.done = True
            item.slots.append(Slot(begin))
            self._growth.pump()
        return item.slots[place]

    def _text_delta(self, event: _Event) -> None:
        slot = self._slot(event, EMPTY_TEXT)
        if event.delta and not slot.done:
            self._growth.grow(slot, event.delta)
        if slot.index >= 0 and isinstance(slot.begin, Text):
            self._live, self._live_at, self._live_part = slot, event.output_index, event.content_index

    def _refusal_delta(self, event: _Event) -> None:
        self._growth.refused = True
        slot = self._slot(event, EMPTY_REFUSAL)
        if event.delta and not slot.done:
            self._growth.grow(slot, event.delta)

    def _text_done(self, event: _Event) -> None:
        text = event.text if event.type == "response.output_text.done" else event.refusal
        slot = self._slot(event, EMPTY_TEXT if event.type == "response.output_text.done" else EMPTY_REFUSAL)
        if isinstance(text, str):
            self._growth.fill(slot, text)

    def _part_added(self, event: _Event) -> None:
        kind = event.part.get("type") if isinstance(event.part, dict) else None
        if kind == "reasoning_text":
            return
        self._growth.refused |= kind == "refusal"
        self._slot(event, EMPTY_REFUSAL if kind == "refusal" else EMPTY_TEXT)

    def _part_done(self, event: _Event) -> None:
        if not isinstance(event.part, dict) or event.part.get("type") == "reasoning_text":
            return
        item = self._growth.items.get(self._key(event))
        phase = item.phase if item is not None else None
        value = {"type": "message", "role": "assistant", "phase": phase, "content": [event.part]}
        (final,) = read_output(value, "part", None)
        slot = self._slot(event, opening(final))
        if isinstance(final, Text) and slot.annotations and not final.annotations:
            final = msgspec.structs.replace(final, annotations=tuple(slot.annotations))
        self._growth.settle(slot, final)
        self._growth.pump()

    def _annotation(self, event: _Event) -> None:
        if isinstance(event.annotation, dict):
            self._slot(event, EMPTY_TEXT).annotations.append(read_annotation(event.annotation))

    def _only_slot(self, event: _Event, kind: str) -> Slot | None:
        item = self._growth.items.get(self._key(event))
        if item is None:
            item = self._growth.item({"type": kind, "id": event.item_id}, max(self._key(event), 0))
            self._growth.pump()
        return item.slots[0] if item.kind == kind and item.slots else None

    def _call_delta(self, event: _Event) -> None:
        slot = self._only_slot(event, _call_kind(event.type))
        if slot is not None and event.delta and not slot.done:
            self._growth.grow(slot, event.delta)

    def _call_done(self, event: _Event) -> None:
        slot = self._only_slot(event, _call_kind(event.type))
        stated = event.arguments if event.type.startswith("response.function") else event.input
        if slot is not None and isinstance(stated, str):
            self._growth.fill(slot, stated)

    def _reasoning(self, event: _Event) -> None:
        slot = self._only_slot(event, "reasoning")
        if slot is None or slot.done:
            return
        summary = event.type.startswith("response.reasoning_summary")
        place = ("summary", event.summary_index or 0) if summary else ("content", event.content_index or 0)
        text = event.delta if event.type.endswith(".delta") else event.text
        if not isinstance(text, str) or not text:
            return
        if slot.section is not None and slot.section[0] != place[0]:
            return  # the same thoughts a second time, raw beside summarised
        if slot.section == place:
            if not event.type.endswith(".delta"):
                return  # the deltas have said it
        elif slot.pieces:
            text = "\n\n" + text
        slot.section = place
        self._growth.grow(slot, text)

    # -- order -------------------------------------------------------------------------------------------------------


def _decoded(response: Raw | UnsetType) -> Any:
    """The response object of an event, None where there is none."""
    if response is UNSET:
        return None
    try:
        return msgspec.json.decode(response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError("malformed", f"an event of the stream is not valid JSON: {error}") from None


def _call_kind(event_type: str) -> str:
    return "function_call" if event_type.startswith("response.function") else "custom_tool_call"


_HANDLERS: dict[str, Callable[[ResponsesReader, _Event], None]] = {
    "response.output_text.delta": ResponsesReader._text_delta,
    "response.function_call_arguments.delta": ResponsesReader._call_delta,
    "response.custom_tool_call_input.delta": ResponsesReader._call_delta,
    "response.reasoning_summary_text.delta": ResponsesReader._reasoning,
    "response.reasoning_text.delta": ResponsesReader._reasoning,
    "response.refusal.delta": ResponsesReader._refusal_delta,
    "response.created": ResponsesReader._created,
    "response.queued": ResponsesReader._created,
    "response.in_progress": ResponsesReader._created,
    "response.output_item.added": ResponsesReader._added,
    "response.output_item.done": ResponsesReader._done,
    "response.content_part.added": ResponsesReader._part_added,
    "response.content_part.done": ResponsesReader._part_done,
    "response.output_text.done": ResponsesReader._text_done,
    "response.refusal.done": ResponsesReader._text_done,
    "response.output_text.annotation.added": ResponsesReader._annotation,
    "response.function_call_arguments.done": ResponsesReader._call_done,
    "response.custom_tool_call_input.done": ResponsesReader._call_done,
    "response.reasoning_summary_text.done": ResponsesReader._reasoning,
    "response.reasoning_text.done": ResponsesReader._reasoning,
    "response.completed": ResponsesReader._terminal,
    "response.incomplete": ResponsesReader._terminal,
    "response.failed": ResponsesReader._failed,
    "response.cancelled": ResponsesReader._failed,
}
