"""How one content block of a stream grows into a part."""

from typing import Any

import msgspec
from msgspec import Raw

from turnout.conversation import (
    ArgumentsDelta,
    Delta,
    Opaque,
    Part,
    PartBegin,
    PartEnd,
    Reasoning,
    Text,
    TextDelta,
    ToolCall,
)
from turnout.errors import ClientError
from turnout.wire.anthropic.events import ANY, DeltaBody
from turnout.wire.anthropic.read_content import citation, opaque, read_block
from turnout.wire.names import Names, custom_input


class Growth:
    """A block on its way. Until `lead` it only collects; from then on it also sends.

    `first`: the part as the block began; `pieces`: the text that came since.
    """

    __slots__ = ("first", "index", "pieces", "stopped")

    def __init__(self, first: Part) -> None:
        self.first = first
        self.index = -1
        self.pieces: list[str] = []
        self.stopped = False

    def lead(self, index: int, out: list[Delta]) -> None:
        """This part is the one being sent now: announce it and what it has so far."""
        self.index = index
        out.append(PartBegin(index, self.first))
        if self.pieces:
            self.send("".join(self.pieces), out)

    def grow(self, delta: DeltaBody, data: bytes, out: list[Delta]) -> None:
        """Take one delta of the block; `data` is its whole event."""
        text = delta.text if delta.text is not None else delta.thinking
        if text:
            self.add(text, out)

    def add(self, text: str, out: list[Delta]) -> None:
        """Take more text, and send it if this part is being sent."""
        self.pieces.append(text)
        if self.index >= 0:
            self.send(text, out)

    def send(self, text: str, out: list[Delta]) -> None:
        """Send `text` as a growth of the part."""
        out.append(TextDelta(self.index, text))

    def end(self, out: list[Delta]) -> None:
        """The block has stopped."""
        out.append(PartEnd(self.index))


class TextGrowth(Growth):
    """Text, with citations that come beside it."""

    __slots__ = ("citations",)

    def __init__(self, first: Part) -> None:
        super().__init__(first)
        self.citations: list[Any] = []

    def grow(self, delta: DeltaBody, data: bytes, out: list[Delta]) -> None:
        if delta.text:
            self.add(delta.text, out)
        elif isinstance(delta.citation, dict):
            self.citations.append(delta.citation)

    def end(self, out: list[Delta]) -> None:
        part = self.first
        assert isinstance(part, Text)
        if not self.citations:
            out.append(PartEnd(self.index))
            return
        text = part.text + "".join(self.pieces)
        annotations = part.annotations + tuple(map(citation, self.citations))
        out.append(PartEnd(self.index, msgspec.structs.replace(part, text=text, annotations=annotations)))


class ThinkingGrowth(Growth):
    """Thinking, closed by its signature."""

    __slots__ = ("signature",)

    def __init__(self, first: Part) -> None:
        super().__init__(first)
        self.signature: str | None = None

    def grow(self, delta: DeltaBody, data: bytes, out: list[Delta]) -> None:
        if delta.thinking:
            self.add(delta.thinking, out)
        elif delta.signature is not None:
            self.signature = delta.signature

    def end(self, out: list[Delta]) -> None:
        part = self.first
        assert isinstance(part, Reasoning)
        if self.signature is None or self.signature == part.signature:
            out.append(PartEnd(self.index))
            return
        text = part.text + "".join(self.pieces)
        out.append(PartEnd(self.index, msgspec.structs.replace(part, text=text, signature=self.signature)))


class CallGrowth(Growth):
    """A tool call. An input stated at the start counts when no fragments follow; a custom tool's input is unwrapped."""

    __slots__ = ("_given", "_wrapped")

    def __init__(self, first: ToolCall, names: Names | None) -> None:
        self._given = first.arguments
        call = msgspec.structs.replace(first, arguments="")
        restored = names.restore(call) if names is not None else call
        self._wrapped = restored.style == "custom"
        super().__init__(msgspec.structs.replace(restored, arguments="") if self._wrapped else restored)

    def grow(self, delta: DeltaBody, data: bytes, out: list[Delta]) -> None:
        if delta.partial_json:
            self.add(delta.partial_json, out)

    def send(self, text: str, out: list[Delta]) -> None:
        if not self._wrapped:
            out.append(ArgumentsDelta(self.index, text))

    def end(self, out: list[Delta]) -> None:
        if self._wrapped:
            text = custom_input("".join(self.pieces) or self._given)
            if text:
                out.append(ArgumentsDelta(self.index, text))
        elif not self.pieces:
            out.append(ArgumentsDelta(self.index, self._given))
        out.append(PartEnd(self.index))


class OpaqueGrowth(Growth):
    """A block that only Messages knows: its value is put together, and stated whole at its end."""

    __slots__ = ("value",)

    def __init__(self, first: Opaque) -> None:
        super().__init__(first)
        self.value = first.value

    def grow(self, delta: DeltaBody, data: bytes, out: list[Delta]) -> None:
        if delta.partial_json is not None:
            self.pieces.append(delta.partial_json)
            return
        for key, fresh in ANY.decode(data)["delta"].items():
            old = self.value.get(key)
            if key == "citation":
                self.value = {**self.value, "citations": [*(self.value.get("citations") or ()), fresh]}
            elif key != "type":
                grown = old + fresh if isinstance(old, str) and isinstance(fresh, str) else fresh
                self.value = {**self.value, key: grown}

    def lead(self, index: int, out: list[Delta]) -> None:
        self.index = index
        out.append(PartBegin(index, self.first))

    def end(self, out: list[Delta]) -> None:
        first = self.first
        assert isinstance(first, Opaque)
        joined = "".join(self.pieces)
        if joined:
            try:
                self.value = {**self.value, "input": ANY.decode(joined)}
            except msgspec.DecodeError:
                raise ClientError(f"the input of a {first.type} block is not valid JSON") from None
        whole = None if self.value is first.value else opaque(first.type, self.value)
        out.append(PartEnd(self.index, whole))


def growth_of(block: Raw, names: Names | None) -> Growth:
    """What a `content_block_start` opens."""
    part = read_block(block, "content_block")
    if isinstance(part, Text):
        return TextGrowth(part)
    if isinstance(part, Reasoning):
        return ThinkingGrowth(part)
    if isinstance(part, ToolCall):
        return CallGrowth(part, names)
    if isinstance(part, Opaque):
        return OpaqueGrowth(part)
    return Growth(part)
