"""Changing a JSON body without re-encoding the rest: top-level values are located by byte offset and spliced.

Everything outside the replaced values stays byte for byte: white space, key order, escapes, number spelling, unknown
fields. That is what makes a same-format relay exact.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from turnout.errors import ClientError

_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]+")
_MODEL_FIRST = re.compile(rb'\s*\{\s*"model"\s*:\s*("[^"\\]*")')
_WHITE = re.compile(rb"[ \t\r\n]*")
_NESTED = re.compile(rb'[\[\]{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class Span(NamedTuple):
    """Byte offsets of one top-level member: of its key's opening quote, its value's first byte, and after its value."""

    key: int
    start: int
    end: int


def fields(body: bytes) -> dict[str, msgspec.Raw]:
    """The top-level fields of a JSON object, undecoded. Raises ClientError when `body` is not a JSON object."""
    try:
        return _TOP.decode(body)
    except msgspec.ValidationError:
        raise ClientError("the body must be a JSON object", code="invalid_json") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ClientError("the body is nested too deeply", code="invalid_json") from None


def spans(body: bytes, only: str | None = None) -> dict[str, Span]:
    """Where every top-level member of a JSON object lies (the last one of a repeated key, as decoders see it).

    `only`: stop at the first member of this name, for the common case of one value near the front. `body` must be known to
    be a JSON object (see `fields`).
    """
    found: dict[str, Span] = {}
    for key, span in members(body):
        found[key] = span
        if key == only:
            break
    return found


def members(body: bytes) -> Iterator[tuple[str, Span]]:
    """Every top-level member of a JSON object in order, repeated keys too."""
    raws: dict[str, msgspec.Raw] | None = None
    at = _after_white(body, body.index(b"{") + 1)
    while body[at : at + 1] == b'"':
        key_end = _STRING.match(body, at).end()  # type: ignore[union-attr]  # a quote starts a string
        key = _TEXT.decode(body[at:key_end])
        start = _after_white(body, body.index(b":", key_end) + 1)
        first = body[start]
        if first == 0x22:
            end = _STRING.match(body, start).end()  # type: ignore[union-attr]  # a quote starts a string
        elif first in b"{[":
            if raws is None:
                raws = fields(body)
            end = _nested_end(body, start, raws[key])
        else:
            end = _SCALAR.match(body, start).end()  # type: ignore[union-attr]  # a value starts here
        yield key, Span(at, start, end)
        at = _after_white(body, end)
        if body[at : at + 1] != b",":
            break
        at = _after_white(body, at + 1)


def splice(body: bytes, changes: Mapping[str, bytes | None]) -> bytes:
    """`body` with top-level values replaced by JSON text; a new key goes last; None removes the key; the rest untouched.

    A repeated key is replaced or removed wherever it stands: decoders differ in which one they believe. Splicing the same
    changes twice gives the same bytes as once.
    """
    found = list(members(body))
    edits: list[tuple[int, int, bytes]] = []
    for key, span in found:
        value = changes.get(key)
        if value is not None:
            edits.append((span.start, span.end, value))
    gone = [changes.get(key, b"") is None for key, _ in found]
    edits += [(start, end, b"") for start, end in _removals([span for _, span in found], gone)]
    there = {key for key, _ in found}
    added = [
        msgspec.json.encode(key) + b":" + value
        for key, value in changes.items()
        if value is not None and key not in there
    ]
    if added:
        close = body.rindex(b"}")
        edits.append((close, close, (b"" if all(gone) else b",") + b",".join(added)))
    edits.sort()
    pieces: list[bytes] = []
    at = 0
    for start, end, value in edits:
        pieces += (body[at:start], value)
        at = end
    pieces.append(body[at:])
    return b"".join(pieces)


def restamp(body: bytes, model: bytes, read: str | None = None) -> bytes:
    """`body` with the value of its top-level `model` replaced by `model` (JSON text); the rest byte for byte.

    `read`: the model that a decoder has read from `body`, where known. It spares looking through a long body for a second
    `model`, which would be the one an upstream believes.
    """
    if read is not None:
        first = _MODEL_FIRST.match(body)
        if first is not None and first[1] == msgspec.json.encode(read):
            return body[: first.start(1)] + model + body[first.end(1) :]
    place = spans(body, "model").get("model")
    if place is None:
        return splice(body, {"model": model})
    if read is None or body[place.start : place.end] != msgspec.json.encode(read):
        # A second one may be spelled with escapes, too.
        repeated = body.find(b'"model"', place.end) >= 0 or body.find(b"\\u006", place.end) >= 0
        if repeated:
            return splice(body, {"model": model})
    return body[: place.start] + model + body[place.end :]


def _removals(places: list[Span], gone: list[bool]) -> Iterator[tuple[int, int]]:
    """The bytes to cut so that every member that is `gone` goes together with one comma beside it."""
    first = None
    for index, place in enumerate(places):
        if gone[index]:
            first = index if first is None else first
        elif first is not None:
            yield places[first].key, place.key
            first = None
    if first is not None:
        yield places[first - 1].end if first else places[0].key, places[-1].end


def _after_white(body: bytes, at: int) -> int:
    return _WHITE.match(body, at).end()  # type: ignore[union-attr]  # matches the empty string too


def _nested_end(body: bytes, start: int, raw: msgspec.Raw) -> int:
    # The decoder has measured the value already; only a repeated key makes the measure that of another member.
    text = bytes(raw)
    if body.startswith(text, start):
        return start + len(text)
    depth = 0
    for match in _NESTED.finditer(body, start):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if not depth:
                return match.end()
    raise ClientError("the body is not valid JSON", code="invalid_json")
