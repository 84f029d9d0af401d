"""Content parts of Responses (`input_text`, `output_text`, `input_image`, `input_file` ...) <-> neutral parts."""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

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
    Refusal,
    Text,
)
from turnout.errors import ClientError

FORMAT: Format = "openai_responses"

_ITEM_TYPES = frozenset({"message", "reasoning", "compaction", "item_reference", "mcp_list_tools", "program"})


def fault(path: str, message: str) -> ClientError:
    """The error for a malformed field at `path`."""
    return ClientError(f"{path}: {message}", code="invalid_value", param=path)


def decoded(raw: bytes | msgspec.Raw, path: str) -> Any:
    """The value of a field that was passed over while indexing. Raises ClientError where it is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ClientError(f"{path}: not valid JSON: {error}", code="invalid_json", param=path) from None


def rest(value: dict[str, Any], known: frozenset[str]) -> Extra:
    """The fields of `value` beside `known`, in order."""
    return {k: v for k, v in value.items() if k not in known}


def text_or_none(value: Any) -> str | None:
    """`value` where it is text, else None."""
    return value if isinstance(value, str) else None


def as_json(value: Any) -> str:
    """`value` as JSON text."""
    return msgspec.json.encode(value).decode()


def read_content(content: Any, path: str) -> tuple[Part, ...]:
    """The parts of a message's or tool output's content: a string, or an array of parts. Raises ClientError with the path."""
    if isinstance(content, str):
        return (Text(content),)
    if content is None:
        return ()
    if not isinstance(content, list):
        raise fault(path, f"expected a string or an array of content parts, got {_kind(content)}")
    return tuple(read_part(part, f"{path}[{i}]") for i, part in enumerate(content))


def read_part(part: Any, path: str) -> Part:
    """One content part."""
    if not isinstance(part, dict):
        raise fault(path, f"expected an object, got {_kind(part)}")
    kind = part.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return read(part, path)
    if not isinstance(kind, str):
        raise fault(f"{path}.type", "every content part needs a type")
    if kind in _ITEM_TYPES or kind.endswith(("_call", "_output")):
        raise fault(path, f"an item of type {kind} belongs in `input`, not inside the content of a message")
    return Opaque(FORMAT, kind, part, as_json(part))


_TEXT = frozenset({"type", "text", "annotations"})


def _text(part: dict[str, Any], path: str) -> Part:
    text = part.get("text")
    if not isinstance(text, str):
        raise fault(f"{path}.text", "expected a string")
    if len(part) == 2:
        return Text(text)
    extra = rest(part, _TEXT)
    if not extra.get("logprobs", True):
        del extra["logprobs"]  # `[]` is what every part carries that has none
    return Text(text, read_annotations(part.get("annotations")), extra=extra)


def read_annotations(annotations: Any) -> tuple[Citation, ...]:
    """Citations of a text part; other annotations keep their native form in `extra`."""
    if not isinstance(annotations, list):
        return ()
    return tuple(read_annotation(a) for a in annotations if isinstance(a, dict))


_CITATION = frozenset({"type", "url", "title", "start_index", "end_index"})


def read_annotation(value: dict[str, Any]) -> Citation:
    """One annotation."""
    if value.get("type") == "url_citation" and isinstance(value.get("url"), str):
        start, end = value.get("start_index"), value.get("end_index")
        return Citation(
            value["url"],
            text_or_none(value.get("title")),
            start if isinstance(start, int) else None,
            end if isinstance(end, int) else None,
            rest(value, _CITATION),
        )
    return Citation("", extra=value)


def write_annotation(citation: Citation, length: int) -> dict[str, Any]:
    """One annotation of a text of `length` characters; offsets the source did not give cover the whole text."""
    if not citation.url and "type" in citation.extra:
        return citation.extra
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title if citation.title is not None else "",
        "start_index": citation.start if citation.start is not None else 0,
        "end_index": citation.end if citation.end is not None else length,
        **citation.extra,
    }


_REFUSAL = frozenset({"type", "refusal"})


def _refusal(part: dict[str, Any], path: str) -> Part:
    text = part.get("refusal")
    if not isinstance(text, str):
        raise fault(f"{path}.refusal", "expected a string")
    return Refusal(text, rest(part, _REFUSAL))


def read_uri(uri: str) -> Media:
    """Where an image or file lies: base64 data URIs are taken apart, everything else stays a URL."""
    if uri.startswith("data:"):
        head, comma, payload = uri[5:].partition(",")
        if comma and head.endswith(";base64"):
            return Media("base64", payload, head[:-7].partition(";")[0] or None)
    return Media("url", uri)


def write_uri(media: Media) -> str:
    """The URL or data URI of `media` (not for file ids)."""
    if media.kind == "base64":
        return f"data:{media.media_type or ''};base64,{media.data}"
    if media.kind == "text":
        payload = base64.b64encode(media.data.encode("utf-8", "surrogatepass")).decode()
        return f"data:{media.media_type or 'text/plain'};base64,{payload}"
    return media.data


_IMAGE = frozenset({"type", "image_url", "file_id", "detail"})


def _image(part: dict[str, Any], path: str) -> Part:
    url = part.get("image_url")
    if isinstance(url, dict):  # the spelling of Chat Completions
        part = {"detail": url.get("detail"), **part}
        url = url.get("url")
    if isinstance(url, str):
        source = read_uri(url)
    elif isinstance(part.get("file_id"), str):
        source = Media("file_id", part["file_id"], origin=FORMAT)
    else:
        raise fault(f"{path}.image_url", "an image needs image_url or file_id")
    detail = part.get("detail")
    return Image(source, detail if isinstance(detail, str) else None, extra=rest(part, _IMAGE))


_FILE = frozenset({"type", "file_data", "file_url", "file_id", "filename"})
_UNTITLED = "untitled."


def _file(part: dict[str, Any], path: str) -> Part:
    name = part.get("filename")
    name = name if isinstance(name, str) and not name.startswith(_UNTITLED) else None
    data, url, file_id = part.get("file_data"), part.get("file_url"), part.get("file_id")
    if isinstance(data, str):
        source = _plain(read_uri(data)) if data.startswith("data:") else Media("base64", data)
    elif isinstance(url, str):
        source = Media("url", url)
    elif isinstance(file_id, str):
        source = Media("file_id", file_id, origin=FORMAT)
    else:
        raise fault(path, "a file needs file_data, file_url or file_id")
    return Document(source, name, extra=rest(part, _FILE))


def _plain(media: Media) -> Media:
    """Plain text as text, where encoding it again gives the same bytes."""
    if media.kind != "base64" or media.media_type != "text/plain":
        return media
    try:
        text = base64.b64decode(media.data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return media
    read = Media("text", text, media.media_type)
    return read if write_uri(read).endswith("," + media.data) else media


_AUDIO = frozenset({"type", "input_audio"})


def _audio(part: dict[str, Any], path: str) -> Part:
    audio = part.get("input_audio")
    if not isinstance(audio, dict) or not isinstance(audio.get("data"), str):
        raise fault(f"{path}.input_audio", "audio needs data and format")
    return Audio(Media("base64", audio["data"], f"audio/{audio.get('format', 'wav')}"), extra=rest(part, _AUDIO))


_READERS: dict[str, Callable[[dict[str, Any], str], Part]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}


def write_text(part: Text, assistant: bool) -> dict[str, Any]:
    """A text part of a message of this side of the conversation."""
    if assistant:
        length = len(part.text)
        return {
            "type": "output_text",
            "text": part.text,
            "annotations": [write_annotation(c, length) for c in part.annotations],
            **part.extra,
        }
    annotations = {"annotations": [write_annotation(c, 0) for c in part.annotations]} if part.annotations else {}
    return {"type": "input_text", "text": part.text, **annotations, **part.extra}


def write_image(part: Image) -> dict[str, Any]:
    """An image part."""
    place = {"file_id": part.source.data} if part.source.kind == "file_id" else {"image_url": write_uri(part.source)}
    detail = {"detail": part.detail} if part.detail is not None else {}
    return {"type": "input_image", **place, **detail, **part.extra}


def write_document(part: Document, native: bool) -> dict[str, Any]:
    """A file part. Foreign documents without a name get one that reads back as none: the format asks for it."""
    source = part.source
    if source.kind == "file_id":
        place = {"file_id": source.data}
    elif source.kind == "url":
        place = {"file_url": source.data}
    elif source.kind == "base64" and source.media_type is None:
        place = {"file_data": source.data}
    else:
        place = {"file_data": write_uri(source)}
    name = part.name
    if name is None and not native and "file_data" in place:
        ending = (source.media_type or "application/pdf").rpartition("/")[2]
        name = _UNTITLED + ("txt" if ending == "plain" else ending)
    named = {"filename": name} if name is not None else {}
    return {"type": "input_file", **named, **place, **part.extra}


def write_audio(part: Audio) -> dict[str, Any]:
    """An audio part."""
    kind = (part.source.media_type or "audio/wav").rpartition("/")[2]
    return {"type": "input_audio", "input_audio": {"data": part.source.data, "format": kind}, **part.extra}


def _kind(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return "null" if value is None else names.get(type(value), "an object")
