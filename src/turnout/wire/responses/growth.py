"""What grows while a response streams: output items and the parts they hold, passed on as deltas in order.

Items may interleave in the stream: the first unfinished one is passed on as it grows, later ones are held until it is
done. Snapshots only fill what the deltas left out; where they contradict them, the stream is broken.
"""

from collections import deque
from typing import Any

import msgspec

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
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
from turnout.wire.names import Names
from turnout.wire.responses.content import FORMAT, text_or_none
from turnout.wire.responses.reply import read_output, text_of

_CALLS = frozenset({"function_call", "custom_tool_call"})
EMPTY_TEXT = Text("")
EMPTY_REFUSAL = Refusal("")


class Slot:
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


class Item:
    """One output item on its way, and the parts it holds."""

    __slots__ = ("at", "done", "id", "kind", "phase", "slots")

    def __init__(self, kind: str, item_id: str | None, phase: Any) -> None:
        self.kind = kind
        self.id = item_id
        self.phase = phase
        self.slots: list[Slot] = []
        self.at = 0
        self.done = False


class Growth:
    """The items of one response. `out`: deltas not yet passed on. `items`: by output index; `last`: the newest one's.

    `called`, `refused`: the response holds a call, a refusal. Methods raise UpstreamError where the stream contradicts itself.
    """

    __slots__ = ("_names", "_next", "_queue", "begun", "called", "items", "last", "out", "refused")

    def __init__(self, names: Names | None) -> None:
        self._names = names
        self.out: list[Delta] = []
        self.items: dict[int, Item] = {}
        self._queue: deque[Item] = deque()
        self.last = -1
        self._next = 0
        self.begun = self.called = self.refused = False

    def take(self) -> list[Delta]:
        """The deltas since the last time."""
        out, self.out = self.out, []
        return out

    def begin(self, response: Any) -> None:
        """The response begins; `response`: its object as far as it is stated."""
        self.begun = True
        response = response if isinstance(response, dict) else {}
        created = response.get("created_at")
        self.out.append(
            Begin(
                text_of(response.get("id")),
                text_of(response.get("model")),
                int(created) if isinstance(created, int | float) else None,
                format="openai_responses",
            )
        )

    def item(self, value: dict[str, Any], key: int) -> Item:
        """A new item at output index `key`, opened by `value`."""
        kind = value.get("type")
        item = Item(kind if isinstance(kind, str) else "message", text_or_none(value.get("id")), value.get("phase"))
        if self._queue and self._queue[-1].kind == "message" and all(s.done for s in self._queue[-1].slots):
            self._queue[-1].done = bool(self._queue[-1].slots)  # servers that skip its done event
        self.items[key] = item
        self._queue.append(item)
        self.last = key
        if not self.begun:
            self.begin(None)
        if item.kind == "reasoning":
            item.slots.append(Slot(Reasoning(id=item.id, origin=FORMAT)))
        elif item.kind in _CALLS:
            self.called = True
            item.slots.append(Slot(self._call(value)))
        elif item.kind != "message":
            item.slots.append(Slot(None))
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

    def item_done(self, value: dict[str, Any], key: int) -> None:
        """Take in the final value of an item."""
        item = self.items[key]
        parts = read_output(value, f"output[{key}]", self._names)
        if item.kind == "message":
            for i, part in enumerate(parts):
                if len(item.slots) <= i:
                    item.slots.append(Slot(opening(part)))
                self.settle(item.slots[i], part)
        elif parts:
            self.settle(item.slots[0], parts[0])
        item.done = True

    def finish(self, item: Item) -> None:
        """No more comes of `item`: what was said of it must be whole."""
        for slot in item.slots:
            if slot.begin is None and slot.index < 0 and not slot.done:
                raise UpstreamError("malformed", f"the stream ended before its {item.kind} item was whole")
            slot.done = True
        item.done = True

    def settle(self, slot: Slot, final: Part) -> None:
        """Compare what grew with the final value, add what is missing, and mark the part as whole."""
        grown = "".join(slot.pieces)
        stated = _grown_text(final)
        if isinstance(final, Refusal):
            self.refused = True
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
                self.grow(slot, stated[len(grown) :])
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

    def grow(self, slot: Slot, text: str) -> None:
        """More of a part; passed on at once where it is the part whose turn it is."""
        slot.pieces.append(text)
        if slot.index >= 0:
            if isinstance(slot.begin, ToolCall):
                self.out.append(ArgumentsDelta(slot.index, text))
            else:
                self.out.append(TextDelta(slot.index, text))

    def fill(self, slot: Slot, stated: str) -> None:
        """The whole text of a part: what its deltas left out is added."""
        grown = "".join(slot.pieces)
        if not stated or stated == grown:
            return
        if stated.startswith(grown) and not slot.done:
            self.grow(slot, stated[len(grown) :])
        elif not (isinstance(slot.begin, ToolCall) and _same_json(stated, grown)):
            raise UpstreamError("malformed", "a finished text contradicts what was streamed of it")

    def reconcile(self, output: list[Any]) -> None:
        """Fill in from the terminal's own output what the stream has not said."""
        left = dict(self.items)
        for position, item in enumerate(output):
            if not isinstance(item, dict):
                continue
            key = self._match(item, position, left)
            if key is None:
                key = max(self.items, default=-1) + 1
                self.item(item, key)
            else:
                del left[key]
            self.item_done(item, key)

    @staticmethod
    def _match(item: dict[str, Any], position: int, left: dict[int, Item]) -> int | None:
        kind, item_id = item.get("type"), item.get("id")
        if item_id is not None:
            for key, seen in left.items():
                if seen.id == item_id and seen.kind == kind:
                    return key
        if position in left and left[position].kind == kind:
            return position
        return next((key for key, seen in left.items() if seen.kind == kind), None)

    def pump(self) -> None:
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
                self.out.append(PartEnd(slot.index, _needed(slot)))
                item.at += 1
            if not item.done:
                return
            queue.popleft()

    def _start(self, slot: Slot, item: Item) -> None:
        slot.index = self._next
        self._next += 1
        begin = slot.begin
        assert begin is not None  # the caller has looked
        if item.phase is not None and isinstance(begin, Text):
            begin = slot.begin = Text("", extra={"phase": item.phase})
        self.out.append(PartBegin(slot.index, begin))
        if slot.pieces:
            grown = "".join(slot.pieces)
            self.out.append(
                ArgumentsDelta(slot.index, grown) if isinstance(begin, ToolCall) else TextDelta(slot.index, grown)
            )


def opening(part: Part) -> Part:
    """What a part begins with, before anything of it has grown."""
    if isinstance(part, Refusal):
        return EMPTY_REFUSAL
    return EMPTY_TEXT if isinstance(part, Text) else part


def _needed(slot: Slot) -> Part | None:
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
