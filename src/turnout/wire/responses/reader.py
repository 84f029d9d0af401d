"""The bytes of a streamed response -> deltas.

Items may interleave in the stream: the first unfinished one is passed on as it grows, later ones are held until it is
done. Snapshots (`*.done`, `response.completed`) only fill what the deltas left out; where they contradict them, the stream
is broken.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
    End,
    Fault,
    Opaque,
    Part,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Text,
    TextDelta,
    ToolCall,
)
from turnout.errors import UpstreamError
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.names import Names
from turnout.wire.responses.content import FORMAT, read_annotation, text_or_none
from turnout.wire.responses.reply import check_failed, extra_of, read_output, read_stop, text_of
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
_CALLS = frozenset({"function_call", "custom_tool_call"})


class _Slot:
    """One part on its way: `begin` is None until enough is known of it to begin; `index` is its place once begun."""

    __slots__ = ("annotations", "begin", "done", "final", "index", "pieces", "section")

    def __init__(self, begin: Part | None) -> None:
        self.begin = begin
        self.pieces: list[str] = []
        self.final: Part | None = None
        self.done = False
        self.index = -1
        self.annotations: list[Any] = []
        self.section: tuple[str, int] | None = None  # which part of a reasoning text grows


class _Item:
    """One output item on its way, and the parts it holds."""

    __slots__ = ("at", "done", "id", "kind", "phase", "slots")

    def __init__(self, kind: str, item_id: str | None, phase: Any) -> None:
        self.kind = kind
        self.id = item_id
        self.phase = phase
        self.slots: list[_Slot] = []
        self.at = 0
        self.done = False


class ResponsesReader:
    """See `Reader`."""

    __slots__ = (
        "_begun",
        "_called",
        "_ended",
        "_items",
        "_last",
        "_live",
        "_live_at",
        "_live_part",
        "_names",
        "_next",
        "_out",
        "_queue",
        "_refused",
        "_sse",
    )

    def __init__(self, asked: Request | None = None) -> None:
        self._sse = SSEParser()
        self._names = Names(asked.conversation.tools) if asked is not None else None
        self._out: list[Delta] = []
        self._items: dict[int, _Item] = {}
        self._queue: deque[_Item] = deque()
        self._last = -1
        self._next = 0
        self._live: _Slot | None = None  # the text that grows now, so that its deltas find it at once
        self._live_at: int | None = None
        self._live_part: int | None = None
        self._begun = self._ended = self._called = self._refused = False

    def feed(self, chunk: bytes) -> list[Delta]:
        for event in self._sse.feed(chunk):
            if self._ended:
                break
            self._event(event.data)
        out, self._out = self._out, []
        return out

    def close(self) -> list[Delta]:
        for event in self._sse.rest():
            if not self._ended:
                self._event(event.data)
        if not self._ended:
            self._fault(UpstreamError("malformed", "the stream ended without a terminal event"))
        out, self._out = self._out, []
        return out

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
            self._out.append(TextDelta(live.index, event.delta))
            return
        handle = _HANDLERS.get(event.type)
        try:
            if handle is not None:
                handle(self, event)
            elif (not event.type and event.error) or event.type == "error":
                self._error(data)
        except UpstreamError as error:
            self._fault(error)

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
        self._out.append(Fault(error))
        self._ended = True

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def _created(self, event: _Event) -> None:
        if not self._begun and event.response is not UNSET:
            self._begin(_decoded(event.response))

    def _begin(self, response: Any) -> None:
        self._begun = True
        response = response if isinstance(response, dict) else {}
        created = response.get("created_at")
        self._out.append(
            Begin(
                text_of(response.get("id")),
                text_of(response.get("model")),
                int(created) if isinstance(created, int | float) else None,
                format="openai_responses",
            )
        )

    def _terminal(self, event: _Event) -> None:
        response = _decoded(event.response)
        if not isinstance(response, dict):
            raise UpstreamError("malformed", f"{event.type} came without its response")
        if response.get("status") in (None, "in_progress", "queued"):
            response["status"] = event.type.removeprefix("response.")
        check_failed(response)
        if not self._begun:
            self._begin(response)
        output = response.get("output")
        if isinstance(output, list):
            self._reconcile(output)
        for item in self._items.values():
            self._finish(item)
        self._pump()
        stop, detail = read_stop(response, self._called, self._refused)
        self._out.append(End(stop, read_usage(response.get("usage")), None, detail, extra_of(response)))
        self._ended = True

    def _failed(self, event: _Event) -> None:
        response = _decoded(event.response)
        error = response.get("error") if isinstance(response, dict) else None
        said = error or event.error or {"message": f"the upstream ended the reply with {event.type}"}
        raise upstream_error(None, (), {"error": said})

    def _reconcile(self, output: list[Any]) -> None:
        """Fill in from the terminal's own output what the stream has not said."""
        left = dict(self._items)
        for position, item in enumerate(output):
            if not isinstance(item, dict):
                continue
            key = self._match(item, position, left)
            if key is None:
                key = max(self._items, default=-1) + 1
                self._item(item, key)
            else:
                del left[key]
            self._item_done(item, key)

    @staticmethod
    def _match(item: dict[str, Any], position: int, left: dict[int, _Item]) -> int | None:
        kind, item_id = item.get("type"), item.get("id")
        if item_id is not None:
            for key, seen in left.items():
                if seen.id == item_id and seen.kind == kind:
                    return key
        if position in left and left[position].kind == kind:
            return position
        return next((key for key, seen in left.items() if seen.kind == kind), None)

    # -- items -------------------------------------------------------------------------------------------------------

    def _key(self, event: _Event) -> int:
        """The output index of an event; by the item's id, or the newest item, where it has none."""
        if event.output_index is not None:
            return event.output_index
        if event.item_id is not None:
            for key, item in self._items.items():
                if item.id == event.item_id:
                    return key
        return self._last

    def _item(self, value: dict[str, Any], key: int) -> _Item:
        kind = value.get("type")
        item = _Item(kind if isinstance(kind, str) else "message", text_or_none(value.get("id")), value.get("phase"))
        if self._queue and self._queue[-1].kind == "message" and all(s.done for s in self._queue[-1].slots):
            self._queue[-1].done = bool(self._queue[-1].slots)  # servers that skip its done event
        self._items[key] = item
        self._queue.append(item)
        self._last = key
        if not self._begun:
            self._begin(None)
        if item.kind == "reasoning":
            item.slots.append(_Slot(Reasoning(id=item.id, origin=FORMAT)))
        elif item.kind in _CALLS:
            self._called = True
            item.slots.append(_Slot(self._call(value)))
        elif item.kind != "message":
            item.slots.append(_Slot(None))
        return item

    def _call(self, value: dict[str, Any]) -> ToolCall | None:
        """What a call begins with, None while its name or id is unknown or its input must be seen whole first."""
        if not value.get("name") or not value.get("call_id"):
            return None
        field = "input" if value["type"] == "custom_tool_call" else "arguments"
        (read,) = read_output({**value, field: ""}, "item", None)
        if not isinstance(read, ToolCall) or self._names is None:
            return read if isinstance(read, ToolCall) else None
        restored = self._names.restore(read)
        return restored if restored.style == read.style else None

    def _added(self, event: _Event) -> None:
        if not isinstance(event.item, dict):
            raise UpstreamError("malformed", "response.output_item.added came without its item")
        key = event.output_index if event.output_index is not None else self._last + 1
        if key not in self._items:
            self._item(event.item, key)
            self._pump()

    def _done(self, event: _Event) -> None:
        if not isinstance(event.item, dict):
            raise UpstreamError("malformed", "response.output_item.done came without its item")
        key = self._key(event)
        if key not in self._items:
            key = max(key, 0)
            self._item(event.item, key)
        self._item_done(event.item, key)
        self._pump()

    def _item_done(self, value: dict[str, Any], key: int) -> None:
        """Take in the final value of an item."""
        item = self._items[key]
        parts = read_output(value, f"output[{key}]", self._names)
        if item.kind == "message":
            for i, part in enumerate(parts):
                if len(item.slots) <= i:
                    item.slots.append(_Slot(_opening(part)))
                self._settle(item.slots[i], part)
        elif parts:
            self._settle(item.slots[0], parts[0])
        item.done = True

    def _finish(self, item: _Item) -> None:
        for slot in item.slots:
            if slot.begin is None and slot.index < 0 and not slot.done:
                raise UpstreamError("malformed", f"the stream ended before its {item.kind} item was whole")
            slot.done = True
        item.done = True

    def _settle(self, slot: _Slot, final: Part) -> None:
        """Compare what grew with the final value, add what is missing, and mark the part as whole."""
        grown = "".join(slot.pieces)
        stated = _grown_text(final)
        if isinstance(final, Refusal):
            self._refused = True
        if isinstance(final, Reasoning) and slot.section is not None and slot.section[0] == "content" and final.summary:
            stated = grown  # the raw reasoning was streamed, the final value has the summary
        if slot.begin is None and not slot.done:
            if isinstance(final, ToolCall):
                slot.begin = msgspec.structs.replace(final, arguments="")
                if stated:
                    slot.pieces = [stated]
                    grown = stated
            elif isinstance(final, Opaque):
                slot.begin = final
        if stated and stated != grown:
            if stated.startswith(grown) and not slot.done:
                self._grow(slot, stated[len(grown) :])
            elif isinstance(final, ToolCall) and _same_json(stated, grown):
                final = msgspec.structs.replace(final, arguments=grown)
            else:
                raise UpstreamError("malformed", "the final value of an item contradicts what was streamed of it")
        elif grown and not stated and isinstance(final, ToolCall):
            final = msgspec.structs.replace(final, arguments=grown)
        elif grown and not stated and isinstance(final, Text | Refusal | Reasoning):
            final = msgspec.structs.replace(final, text=grown)
        if not slot.done:
            slot.final = final
            slot.done = True

    # -- growth ------------------------------------------------------------------------------------------------------

    def _grow(self, slot: _Slot, text: str) -> None:
        slot.pieces.append(text)
        if slot.index >= 0:
            if isinstance(slot.begin, ToolCall):
                self._out.append(ArgumentsDelta(slot.index, text))
            else:
                self._out.append(TextDelta(slot.index, text))

    def _slot(self, event: _Event, begin: Part) -> _Slot:
        """The content part of a message that an event speaks of."""
        key = self._key(event)
        item = self._items.get(key)
        if item is None:
            item = self._item({"type": "message", "id": event.item_id}, max(key, 0))
        if item.kind != "message":
            raise UpstreamError("malformed", f"{event.type} speaks of an item of type {item.kind}")
        place = event.content_index if event.content_index is not None else max(0, len(item.slots) - 1)
        while len(item.slots) <= place:
            for earlier in item.slots:
                earlier.done = True
            item.slots.append(_Slot(begin))
            self._pump()
        return item.slots[place]

    def _text_delta(self, event: _Event) -> None:
        slot = self._slot(event, _EMPTY_TEXT)
        if event.delta and not slot.done:
            self._grow(slot, event.delta)
        if slot.index >= 0 and isinstance(slot.begin, Text):
            self._live, self._live_at, self._live_part = slot, event.output_index, event.content_index

    def _refusal_delta(self, event: _Event) -> None:
        self._refused = True
        slot = self._slot(event, _EMPTY_REFUSAL)
        if event.delta and not slot.done:
            self._grow(slot, event.delta)

    def _text_done(self, event: _Event) -> None:
        text = event.text if event.type == "response.output_text.done" else event.refusal
        slot = self._slot(event, _EMPTY_TEXT if event.type == "response.output_text.done" else _EMPTY_REFUSAL)
        if isinstance(text, str):
            self._fill(slot, text)

    def _fill(self, slot: _Slot, stated: str) -> None:
        grown = "".join(slot.pieces)
        if not stated or stated == grown:
            return
        if stated.startswith(grown) and not slot.done:
            self._grow(slot, stated[len(grown) :])
        elif not (isinstance(slot.begin, ToolCall) and _same_json(stated, grown)):
            raise UpstreamError("malformed", "a finished text contradicts what was streamed of it")

    def _part_added(self, event: _Event) -> None:
        kind = event.part.get("type") if isinstance(event.part, dict) else None
        if kind == "reasoning_text":
            return
        self._refused |= kind == "refusal"
        self._slot(event, _EMPTY_REFUSAL if kind == "refusal" else _EMPTY_TEXT)

    def _part_done(self, event: _Event) -> None:
        if not isinstance(event.part, dict) or event.part.get("type") == "reasoning_text":
            return
        item = self._items.get(self._key(event))
        phase = item.phase if item is not None else None
        value = {"type": "message", "role": "assistant", "phase": phase, "content": [event.part]}
        (final,) = read_output(value, "part", None)
        slot = self._slot(event, _opening(final))
        if isinstance(final, Text) and slot.annotations and not final.annotations:
            final = msgspec.structs.replace(final, annotations=tuple(slot.annotations))
        self._settle(slot, final)
        self._pump()

    def _annotation(self, event: _Event) -> None:
        if isinstance(event.annotation, dict):
            self._slot(event, _EMPTY_TEXT).annotations.append(read_annotation(event.annotation))

    def _only_slot(self, event: _Event, kind: str) -> _Slot | None:
        item = self._items.get(self._key(event))
        if item is None:
            item = self._item({"type": kind, "id": event.item_id}, max(self._key(event), 0))
            self._pump()
        return item.slots[0] if item.kind == kind and item.slots else None

    def _call_delta(self, event: _Event) -> None:
        slot = self._only_slot(event, _call_kind(event.type))
        if slot is not None and event.delta and not slot.done:
            self._grow(slot, event.delta)

    def _call_done(self, event: _Event) -> None:
        slot = self._only_slot(event, _call_kind(event.type))
        stated = event.arguments if event.type.startswith("response.function") else event.input
        if slot is not None and isinstance(stated, str):
            self._fill(slot, stated)

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
        self._grow(slot, text)

    # -- order -------------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Pass on what has become the first unfinished part, and everything finished before it."""
        queue = self._queue
        while queue:
            item = queue[0]
            while item.at < len(item.slots):
                slot = item.slots[item.at]
                if slot.index < 0:
                    if slot.begin is None:
                        return
                    self._start(slot, item)
                if not slot.done:
                    return
                self._out.append(PartEnd(slot.index, _needed(slot)))
                item.at += 1
            if not item.done:
                return
            queue.popleft()

    def _start(self, slot: _Slot, item: _Item) -> None:
        slot.index = self._next
        self._next += 1
        begin = slot.begin
        assert begin is not None  # the caller has looked
        if item.phase is not None and isinstance(begin, Text):
            begin = slot.begin = Text("", extra={"phase": item.phase})
        self._out.append(PartBegin(slot.index, begin))
        if slot.pieces:
            grown = "".join(slot.pieces)
            self._out.append(
                ArgumentsDelta(slot.index, grown) if isinstance(begin, ToolCall) else TextDelta(slot.index, grown)
            )


def _decoded(response: Raw | UnsetType) -> Any:
    """The response object of an event, None where there is none."""
    if response is UNSET:
        return None
    try:
        return msgspec.json.decode(response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError("malformed", f"an event of the stream is not valid JSON: {error}") from None


_EMPTY_TEXT = Text("")
_EMPTY_REFUSAL = Refusal("")


def _opening(part: Part) -> Part:
    if isinstance(part, Refusal):
        return _EMPTY_REFUSAL
    return _EMPTY_TEXT if isinstance(part, Text) else part


def _needed(slot: _Slot) -> Part | None:
    """The final part where it says more than what grew."""
    final = slot.final
    if isinstance(final, Text) and not final.annotations and (not final.extra or final.extra == _extra(slot.begin)):
        return None
    return final


def _extra(part: Part | None) -> Any:
    return part.extra if isinstance(part, Text) else None


def _grown_text(part: Part) -> str:
    if isinstance(part, ToolCall):
        return part.arguments
    return part.text if isinstance(part, Text | Refusal | Reasoning) else ""


def _same_json(one: str, other: str) -> bool:
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except msgspec.DecodeError:
        return False


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
