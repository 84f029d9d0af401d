"""Parts -> content blocks of Messages, with a report of what a part of another format loses."""

import base64
import binascii
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Raw

from turnout.conversation import (
    Audio,
    Citation,
    Document,
    Extra,
    Format,
    Image,
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.drops import Drops
from turnout.wire.items import CONTROL, UNTRANSLATABLE
from turnout.wire.names import alias, custom_arguments

Block = dict[str, Any]

_TARGET = "Messages"
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ANY = msgspec.json.Decoder()
_PDF = "application/pdf"


class _Places(NamedTuple):
    """Where a format has what this file reports."""

    detail: str = ".detail"
    output: str = "content"


_PLACES: dict[Format, _Places] = {
    "openai_chat": _Places(".image_url.detail"),
    "openai_responses": _Places(output="output"),
}


class BlockWriter:
    """Writes parts as blocks. `own`: the parts were read from Messages, so their extras are native. `source`: the format
    whose paths the report names."""

    __slots__ = ("_places", "drops", "own")

    def __init__(self, drops: Drops, own: bool, source: Format | None = None) -> None:
        self.drops = drops
        self.own = own
        self._places = _PLACES.get(source or "anthropic_messages", _Places())

    def blocks(self, parts: tuple[Part, ...], path: str) -> list[Block]:
        """The blocks of `parts`; a part that cannot be carried leaves none, and a report."""
        written = (self.block(part, f"{path}[{i}]") for i, part in enumerate(parts))
        return [block for block in written if block is not None]

    def block(self, part: Part, path: str, call_id: str | None = None) -> Block | None:
        """The block of one part of a request. `call_id`: the id to write for a call or its result."""
        kind = type(part)
        if kind is Text:
            return self._text(part, path)  # type: ignore[arg-type]  # mypy does not narrow by `type() is`
        if kind is ToolResult:
            return self._result(part, path, call_id)  # type: ignore[arg-type]
        if kind is ToolCall:
            return self.call(part, path, call_id)  # type: ignore[arg-type]
        if isinstance(part, Reasoning):
            return self._reasoning(part, path)
        if isinstance(part, Image):
            return self._image(part, path)
        if isinstance(part, Document):
            return self._document(part, path)
        if isinstance(part, Opaque):
            return self._opaque(part, path)
        if isinstance(part, Audio):
            return self._instead("[audio]", path, "Messages takes no audio")
        assert isinstance(part, Refusal)
        return {"type": "text", "text": part.text} if part.text.strip() else None

    def call(self, part: ToolCall, path: str, call_id: str | None = None) -> Block:
        """The tool_use block of a call."""
        name = part.name if self.own and part.namespace is None else alias(part.name, part.namespace)
        block = {"type": "tool_use", "id": call_id or part.id, "name": name, "input": call_input(part)}
        return self._finish(block, part.cache, part.extra, path)

    def _text(self, part: Text, path: str) -> Block | None:
        if not self.own and not part.text.strip():
            if part.text:
                self.drops.drop(path, "Messages refuses blank text")
            return None
        block: Block = {"type": "text", "text": part.text}
        if part.annotations:
            if self.own:
                block["citations"] = [native_citation(c) for c in part.annotations]
            else:
                self.drops.drop(f"{path}.annotations", "citations of another provider mean nothing to Messages")
        return self._finish(block, part.cache, part.extra, path)

    def _reasoning(self, part: Reasoning, path: str) -> Block | None:
        # Only what this format signed or encrypted can be replayed to it; unsigned thinking is refused upstream.
        if part.origin == "anthropic_messages":
            if part.redacted:
                return self._finish({"type": "redacted_thinking", "data": part.encrypted or ""}, None, part.extra, path)
            if part.signature is not None or self.own:
                block: Block = {"type": "thinking", "thinking": part.text}
                if part.signature is not None:
                    block["signature"] = part.signature
                return self._finish(block, None, part.extra if self.own else {}, path)
        self.drops.drop(path, "reasoning can be replayed only to the model that made it")
        return None

    def _image(self, part: Image, path: str) -> Block:
        source = _source(part.source, self.own)
        if source is None or source["type"] == "text":
            return self._instead("[image]", path, "Messages cannot reach this image (another vendor's file id)")
        if part.detail is not None:
            self.drops.drop(f"{path}{self._places.detail}", "Messages chooses the resolution itself")
        return self._finish({"type": "image", "source": source}, part.cache, part.extra, path)

    def _document(self, part: Document, path: str) -> Block:
        source = _source(part.source, self.own)
        if source is None or (source["type"] == "base64" and source["media_type"] != _PDF and not self.own):
            title = f" {part.name}" if part.name else ""
            why = "another vendor's file id" if source is None else f"of type {part.source.media_type}"
            return self._instead(f"[document{title}]", path, f"Messages cannot read this document ({why})")
        block: Block = {"type": "document", "source": source}
        for key, value in (("title", part.name), ("context", part.context), ("citations", part.citations)):
            if value is not None:
                block[key] = value
        return self._finish(block, part.cache, part.extra, path)

    def _result(self, part: ToolResult, path: str, call_id: str | None) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": call_id or part.call_id}
        if part.text_only and len(part.parts) == 1 and isinstance(part.parts[0], Text):
            block["content"] = part.parts[0].text
        elif part.parts or not part.text_only:
            block["content"] = self.blocks(part.parts, f"{path}.{self._places.output}")
        if part.is_error is not None:
            block["is_error"] = part.is_error
        return self._finish(block, part.cache, part.extra, path)

    def _opaque(self, part: Opaque, path: str) -> Block | None:
        if part.format == "anthropic_messages":
            value: Block = part.value
            return value
        if part.type in CONTROL:
            return None
        if part.type in UNTRANSLATABLE:
            raise ClientError(
                f"{path}: a {part.type} item cannot be sent to a Messages upstream; use an upstream of its own format",
                code="unsupported_capability",
                param=path,
            )
        if part.type == "item_reference":
            raise ClientError(
                f"{path}: an item by reference is known only to the server that keeps it; send the item itself",
                code="unsupported_server_state",
                param=path,
            )
        text = part.visible or msgspec.json.encode(part.value).decode()
        return self._instead(text, path, f"Messages does not know {part.type}")

    def _instead(self, text: str, path: str, why: str) -> Block:
        self.drops.downgrade(path, f"{why}: text in its place")
        return {"type": "text", "text": text}

    def _finish(self, block: Block, cache: dict[str, Any] | None, extra: Extra, path: str) -> Block:
        if cache is not None:
            block["cache_control"] = cache
        if extra:
            if self.own:
                block.update(extra)
            else:
                self.drops.extras(path, extra, _TARGET)
        return block


def call_input(call: ToolCall) -> Any:
    """The input object of a call: the model's own JSON text where it is an object, else wrapped in one."""
    text = call.arguments
    if call.style == "custom":
        return Raw(custom_arguments(text).encode())
    if not text.strip():
        return {}
    try:
        _OBJECT.decode(text)
    except msgspec.ValidationError:
        return {"value": _ANY.decode(text)}
    except (msgspec.DecodeError, RecursionError):
        return {"raw": text}
    return Raw(text.encode())


def native_citation(citation: Citation) -> dict[str, Any]:
    """A citation in Messages' own form."""
    value = dict(citation.extra)
    if citation.title is not None:
        value["title"] = citation.title
    if citation.url:
        value["url"] = citation.url
    return value


def _source(media: Media, own: bool) -> Block | None:
    """The source object of a block; None when Messages cannot reach the bytes."""
    if media.kind == "url":
        unpacked = _data_uri(media.data) if media.data.startswith("data:") and not own else None
        if unpacked is None:
            return {"type": "url", "url": media.data}
        media = unpacked
    if media.kind == "base64":
        media_type = media.media_type or "application/octet-stream"
        if media_type.startswith("text/") and not own:
            text = _plain(media.data)
            if text is not None:
                return {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "base64", "media_type": media_type, "data": media.data}
    if media.kind == "text":
        return {"type": "text", "media_type": "text/plain", "data": media.data}
    if media.origin == "anthropic_messages":
        return {"type": "file", "file_id": media.data}
    return None


def _data_uri(uri: str) -> Media | None:
    head, comma, data = uri.removeprefix("data:").partition(",")
    media_type, *options = head.split(";")
    if not comma or ("%" in data and "base64" in options):
        return None
    if "base64" in options:
        return Media("base64", data, media_type or None)
    if media_type in ("", "text/plain"):
        return Media("text", unquote_to_bytes(data).decode("utf-8", "replace"), "text/plain")
    return None


def _plain(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
