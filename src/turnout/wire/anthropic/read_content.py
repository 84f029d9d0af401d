"""Content of Messages -> parts: the usual blocks in one typed pass, anything new or odd block by block."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from turnout.conversation import (
    Citation,
    Document,
    Extra,
    Image,
    Media,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.anthropic.shapes import (
    BLOCKS,
    CONTENT,
    DocumentBlock,
    ImageBlock,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from turnout.wire.anthropic.visible import visible

_RAW_LIST = msgspec.json.Decoder(list[Raw])
_RAW_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_TEXT = msgspec.json.Decoder(str)
_ANY = msgspec.json.Decoder()
_OPEN_BRACE = "{"


def read_content(raw: Raw, path: str, index: int = -1) -> tuple[tuple[Part, ...], bool]:
    """The parts of `content` (or `system`), and whether it was a bare string.

    `path` names the field in errors; with an `index` it is a pattern such as `messages[%d].content`.
    """
    try:
        content = CONTENT.decode(raw)
        if isinstance(content, str):
            return (Text(content),), True
        return tuple([_PART[type(block)](block) for block in content]), False
    except (msgspec.ValidationError, _Odd):
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ClientError("the body is nested too deeply", code="invalid_json") from None
    return _careful(raw, path % index if index >= 0 else path)


def read_block(value: bytes | Raw, path: str) -> Part:
    """One block, from its JSON text."""
    return _careful_block(value, path)


class _Odd(Exception):
    """A block of a known type whose inside the typed pass does not know."""


_NOTHING: Extra = {}


def text_part(block: TextBlock, extra: Extra = _NOTHING) -> Text:
    """A text block as a part."""
    annotations = tuple(map(citation, block.citations)) if block.citations else ()
    return Text(block.text, annotations, block.cache_control, extra)


def citation(value: dict[str, Any]) -> Citation:
    """A citation; only those of web search have an URL, the others keep their native location in `extra`."""
    url, title = value.get("url"), value.get("title")
    rest = dict(value)
    if isinstance(url, str):
        del rest["url"]
    if isinstance(title, str):
        del rest["title"]
    return Citation(url if isinstance(url, str) else "", title if isinstance(title, str) else None, None, None, rest)


def _call(block: ToolUseBlock, extra: Extra = _NOTHING) -> ToolCall:
    arguments = str(block.input, "utf-8")
    if arguments[:1] != _OPEN_BRACE:
        raise _Odd
    if block.caller is not UNSET:
        extra = {**extra, "caller": block.caller}
    return ToolCall(block.id, block.name, arguments, "function", None, None, block.cache_control, extra)


def _result(block: ToolResultBlock, extra: Extra = _NOTHING) -> ToolResult:
    content = block.content
    parts: tuple[Part, ...]
    if isinstance(content, str):
        parts, text_only = (Text(content),), True
    elif content is None:
        parts, text_only = (), True
    else:
        parts, text_only = tuple([_PART[type(inner)](inner) for inner in content]), False
    return ToolResult(
        block.tool_use_id, parts, block.is_error, "function", None, text_only, None, block.cache_control, extra
    )


def _thinking(block: ThinkingBlock, extra: Extra = _NOTHING) -> Reasoning:
    return Reasoning(block.thinking, signature=block.signature, origin="anthropic_messages", extra=extra)


def _redacted(block: RedactedBlock, extra: Extra = _NOTHING) -> Reasoning:
    return Reasoning(redacted=True, encrypted=block.data, origin="anthropic_messages", extra=extra)


def _image(block: ImageBlock, extra: Extra = _NOTHING) -> Image:
    return Image(_media(block.source, None), cache=block.cache_control, extra=extra)


def _document(block: DocumentBlock, extra: Extra = _NOTHING) -> Document:
    source = _media(block.source, "application/pdf")
    return Document(source, block.title, block.context, block.citations, block.cache_control, extra)


_PART: dict[type[Struct], Callable[..., Part]] = {
    TextBlock: text_part,
    ToolUseBlock: _call,
    ToolResultBlock: _result,
    ThinkingBlock: _thinking,
    RedactedBlock: _redacted,
    ImageBlock: _image,
    DocumentBlock: _document,
}


def _media(source: dict[str, Any], default: str | None) -> Media:
    kind, keys = source.get("type"), len(source)
    if kind == "base64" and keys == 3:
        data, media_type = source.get("data"), source.get("media_type")
        if isinstance(data, str) and isinstance(media_type, str):
            return Media("base64", data, media_type)
    elif kind == "url" and keys == 2 and isinstance(source.get("url"), str):
        return Media("url", source["url"], default)
    elif kind == "file" and keys == 2 and isinstance(source.get("file_id"), str):
        return Media("file_id", source["file_id"], None, "anthropic_messages")
    elif kind == "text" and keys == 3 and isinstance(source.get("data"), str):
        if source.get("media_type") != "text/plain":
            raise _Odd
        return Media("text", source["data"], "text/plain")
    raise _Odd


def _careful(raw: bytes | Raw, path: str) -> tuple[tuple[Part, ...], bool]:
    first = bytes(raw)[:1]
    if first == b'"':
        return (Text(_TEXT.decode(raw)),), True
    if first != b"[":
        raise ClientError(f"{path}: expected a string or a list of content blocks", param=path)
    blocks = _RAW_LIST.decode(raw)
    return tuple(_careful_block(block, f"{path}[{i}]") for i, block in enumerate(blocks)), False


def _careful_block(raw: bytes | Raw, path: str) -> Part:
    try:
        fields = _RAW_FIELDS.decode(raw)
        kind = _TEXT.decode(fields["type"])
    except (msgspec.ValidationError, KeyError):
        raise ClientError(f"{path}: expected a content block, an object with a `type`", param=path) from None
    shape = BLOCKS.get(kind)
    if shape is None:
        return opaque(kind, _ANY.decode(raw))
    known = {k: v for k, v in fields.items() if k == "type" or k in shape.__struct_fields__}
    extra = {k: _ANY.decode(v) for k, v in fields.items() if k not in known}
    if kind == "tool_result" and "content" in known and bytes(known["content"])[:1] == b"[":
        nested, _ = _careful(known.pop("content"), f"{path}.content")
        result = _typed(shape, known, path)
        assert isinstance(result, ToolResultBlock)
        return ToolResult(
            result.tool_use_id, nested, result.is_error, text_only=False, cache=result.cache_control, extra=extra
        )
    try:
        return _PART[shape](_typed(shape, known, path), extra)
    except _Odd:
        if kind == "tool_use":
            raise ClientError(f"{path}.input: expected an object", param=f"{path}.input") from None
        return opaque(kind, _ANY.decode(raw))


def _typed(shape: type[msgspec.Struct], fields: dict[str, Raw], path: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(fields), type=shape)
    except msgspec.ValidationError as error:
        raise refusal(error, path) from None


def opaque(kind: str, value: Any) -> Opaque:
    """A block that only this format knows."""
    return Opaque("anthropic_messages", kind, value, visible(kind, value))


def refusal(error: msgspec.ValidationError, prefix: str = "") -> ClientError:
    """A validation error as the client's error, with the path of the field at fault: `$.messages[0].role` ->
    `messages[0].role`."""
    text, _, at = str(error).partition(" - at `$")
    path = at.rstrip("`")
    path = prefix + path if prefix else path.removeprefix(".")
    missing = text.partition("missing required field `")[2].rstrip("`")
    if missing:
        path = f"{path}.{missing}" if path else missing
        text = "this field is required"
    text = text.replace("`", "")
    return ClientError(f"{path}: {text}" if path else text, param=path or None)
