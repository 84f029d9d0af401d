"""Content of a message: a string or a list of parts, both ways."""

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any, Final

from turnout.conversation import Audio, Document, Extra, Image, Media, Opaque, Part, Reasoning, Refusal, Text
from turnout.errors import ClientError
from turnout.wire.chat.fields import object_at, rest, text_or_none, wrong

FORMAT: Final = "openai_chat"

_DATA_URI = re.compile(r"data:([^,;]+)((?:;[^,;]*)*?);base64,(.*)", re.DOTALL)

_TEXT = frozenset(("type", "text", "cache_control"))
_IMAGE = frozenset(("type", "image_url", "cache_control"))
_AUDIO = frozenset(("type", "input_audio", "cache_control"))
_FILE = frozenset(("type", "file", "cache_control"))
_URL = frozenset(("url", "detail"))
_CLIP = frozenset(("data", "format"))
_ATTACHED = frozenset(("file_data", "filename", "file_id"))

_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-m4a": "m4a"}


def read_content(value: Any, path: str) -> tuple[Part, ...]:
    """The parts of `value`: a string, a list of parts, or null."""
    if isinstance(value, str):
        return (Text(value),)
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple([read_part(part, f"{path}[{i}]") for i, part in enumerate(value)])
    raise wrong(path, "a string or an array of content parts", value)


def read_part(value: Any, path: str) -> Part:
    """One content part. A type nobody knows is kept as it is; a known type that is malformed raises ClientError."""
    if isinstance(value, str):
        return Text(value)
    block = object_at(value, path)
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        if not isinstance(text, str):
            raise wrong(f"{path}.text", "a string", text)
        if len(block) == 2:
            return Text(text)
        return Text(text, cache=_cache(block), extra=rest(block, _TEXT))
    if not isinstance(kind, str):
        raise wrong(f"{path}.type", "a string", kind)
    reader = _READERS.get(kind)
    return reader(block, path) if reader is not None else Opaque(FORMAT, kind, block)


def _read_image(block: dict[str, Any], path: str) -> Part:
    at = f"{path}.image_url"
    image = block.get("image_url")
    extra = rest(block, _IMAGE)
    if isinstance(image, str):
        return Image(media_from_url(image), cache=_cache(block), extra=extra)
    image = object_at(image, at)
    url = image.get("url")
    if not isinstance(url, str):
        raise wrong(f"{at}.url", "a string", url)
    inner = rest(image, _URL)
    if inner:
        extra["image_url"] = inner
    return Image(media_from_url(url), text_or_none(image.get("detail"), f"{at}.detail"), _cache(block), extra)


def _read_audio(block: dict[str, Any], path: str) -> Part:
    at = f"{path}.input_audio"
    clip = object_at(block.get("input_audio"), at)
    data, form = clip.get("data"), clip.get("format")
    if not isinstance(data, str):
        raise wrong(f"{at}.data", "a string", data)
    extra = rest(block, _AUDIO)
    inner = rest(clip, _CLIP)
    if inner:
        extra["input_audio"] = inner
    media_type = f"audio/{form}" if isinstance(form, str) else None
    kind = "url" if data.startswith(("http://", "https://")) else "base64"
    return Audio(Media(kind, data, media_type), _cache(block), extra)  # type: ignore[arg-type]  # two literals


def _read_file(block: dict[str, Any], path: str) -> Part:
    at = f"{path}.file"
    attached = object_at(block.get("file"), at)
    data = text_or_none(attached.get("file_data"), f"{at}.file_data")
    file_id = text_or_none(attached.get("file_id"), f"{at}.file_id")
    name = text_or_none(attached.get("filename"), f"{at}.filename")
    extra = rest(block, _FILE)
    inner = rest(attached, _ATTACHED)
    if data is not None:
        source = _file_media(data)
        if file_id is not None:
            inner["file_id"] = file_id
    elif file_id is not None:
        source = Media("file_id", file_id, origin=FORMAT)
    else:
        raise ClientError(f"{at}: file_data or file_id is required", param=at, code="missing_required_parameter")
    if inner:
        extra["file"] = inner
    return Document(source, name, cache=_cache(block), extra=extra)


def _read_refusal(block: dict[str, Any], path: str) -> Part:
    text = block.get("refusal")
    if not isinstance(text, str):
        raise wrong(f"{path}.refusal", "a string", text)
    return Refusal(text, rest(block, frozenset(("type", "refusal"))))


def _read_thinking(block: dict[str, Any], path: str) -> Part:
    # Mistral's reasoning models answer with such parts, and take them back.
    inner = block.get("thinking")
    pieces = inner if isinstance(inner, list) else [inner]
    texts = [p if isinstance(p, str) else p.get("text") if isinstance(p, dict) else None for p in pieces]
    return Reasoning("".join(t for t in texts if isinstance(t, str)), origin=FORMAT, extra={"part": block})


_READERS = {
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
    "refusal": _read_refusal,
    "thinking": _read_thinking,
}


def _cache(block: dict[str, Any]) -> dict[str, Any] | None:
    marker = block.get("cache_control")
    return marker if isinstance(marker, dict) else None


def media_from_url(url: str) -> Media:
    """A data URI with base64 as its bytes; anything else (percent-encoded data URIs too) as the URL it is."""
    if url.startswith("data:"):
        match = _DATA_URI.fullmatch(url)
        if match is not None:
            return Media("base64", match[3], match[1])
    return Media("url", url)


def _file_media(data: str) -> Media:
    if data.startswith(("http://", "https://")):
        return Media("url", data)
    media = media_from_url(data)
    if media.kind == "url":
        # Some servers take bare base64 without the data URI around it.
        return media if data.startswith("data:") else Media("base64", data)
    if media.media_type == "text/plain":
        text = _plain(media.data)
        if text is not None:
            return Media("text", text, "text/plain")
    return media


def _plain(data: str) -> str | None:
    """The text of base64, when encoding it again gives the same base64."""
    try:
        raw = base64.b64decode(data, validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == data else None
    except (binascii.Error, ValueError):
        return None


def url_of(media: Media) -> str:
    """A URL for `media`: itself, or a data URI. Not for file ids."""
    if media.kind == "text":
        return f"data:{media.media_type or 'text/plain'};base64,{base64.b64encode(media.data.encode()).decode()}"
    if media.kind == "base64":
        return f"data:{media.media_type};base64,{media.data}" if media.media_type else media.data
    return media.data


def write_text(parts: Sequence[Part]) -> str:
    """Text parts joined as one string."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "".join(p.text for p in parts if isinstance(p, Text))


def write_part(part: Part) -> Any:
    """A part of this format's own kind, as it was read. Parts that are no content (calls, results) raise ClientError."""
    match part:
        case Text():
            return _with({"type": "text", "text": part.text}, part.cache, part.extra)
        case Image():
            image: dict[str, Any] = {"url": url_of(part.source)}
            if part.detail is not None:
                image["detail"] = part.detail
            return _with({"type": "image_url", "image_url": image}, part.cache, part.extra)
        case Audio():
            clip: dict[str, Any] = {"data": part.source.data}
            if part.source.media_type is not None:
                clip["format"] = audio_format(part.source.media_type)
            return _with({"type": "input_audio", "input_audio": clip}, part.cache, part.extra)
        case Document():
            return _with({"type": "file", "file": _write_file(part)}, part.cache, part.extra)
        case Refusal():
            return _with({"type": "refusal", "refusal": part.text}, None, part.extra)
        case Opaque():
            return part.value
        case Reasoning() if "part" in part.extra:
            return part.extra["part"]
        case _:
            raise ClientError(
                f"a {type(part).__name__} cannot be content of a Chat message", code="unsupported_content"
            )


def audio_format(media_type: str) -> str:
    """The format name Chat uses for a MIME type such as `audio/mpeg`."""
    name = media_type.removeprefix("audio/")
    return _AUDIO_FORMATS.get(name, name)


def _write_file(part: Document) -> dict[str, Any]:
    attached: dict[str, Any] = {}
    if part.source.kind == "file_id":
        attached["file_id"] = part.source.data
    else:
        attached["file_data"] = url_of(part.source)
    if part.name is not None:
        attached["filename"] = part.name
    return attached


def _with(block: dict[str, Any], cache: dict[str, Any] | None, extra: Extra) -> dict[str, Any]:
    if cache is not None:
        block["cache_control"] = cache
    for key, value in extra.items():
        inner = block.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            inner.update(value)
        elif key not in block:
            block[key] = value
    return block
