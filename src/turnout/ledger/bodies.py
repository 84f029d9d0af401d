"""Request bodies as parts, so that a session's history is stored once and not once per turn.

A body is cut into its messages and its other large fields (tools, system prompt). What stands between the parts is the
skeleton; joining the two gives the bytes back exactly. A body that is not a JSON object is one part.
"""

import zlib
from collections.abc import Callable, Iterable
from hashlib import blake2b

import msgspec

DIGEST_BYTES = 16
LARGE = 512
"""Bytes from which a field is a part of its own, and from which compressing pays."""
LARGE_ENOUGH = 48
"""Mean size from which list elements are parts: a prompt given as token numbers is better kept whole."""

_LISTS = ("messages", "input")
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])


def lane_key(tenant: str, session: str, agent: str) -> bytes:
    """The key under which a lane's parts are digested: equal content of two lanes is never shared."""
    return blake2b(f"{tenant}\x1f{session}\x1f{agent}".encode(errors="surrogatepass"), digest_size=16).digest()


def split(body: bytes) -> tuple[bytes, list[bytes]]:
    """Cut a body into (skeleton, parts)."""
    try:
        fields = _object.decode(body)
        pieces = sorted(_pieces(body, fields))
    except (msgspec.DecodeError, ValueError):
        return b"\0", [body]
    gaps: list[bytes] = []
    parts: list[bytes] = []
    at = 0
    for start, end in pieces:
        gaps.append(body[at:start])
        parts.append(body[start:end])
        at = end
    gaps.append(body[at:])
    if any(b"\0" in gap for gap in gaps):
        return b"\0", [body]
    return b"\0".join(gaps), parts


def join(skeleton: bytes, parts: Iterable[bytes]) -> bytes:
    """The body again."""
    gaps = skeleton.split(b"\0")
    out = [gaps[0]]
    for part, gap in zip(parts, gaps[1:], strict=True):
        out += (part, gap)
    return b"".join(out)


def _pieces(body: bytes, fields: dict[str, msgspec.Raw]) -> list[tuple[int, int]]:
    """Where the parts lie. Equal text elsewhere in the body serves as well, for it is the text that is stored."""
    found: list[tuple[int, int]] = []
    for name, raw in fields.items():
        text = bytes(raw)
        if len(text) < LARGE and name not in _LISTS:
            continue
        start = _locate(body, text, 0)
        if any(start < end and begin < start + len(text) for begin, end in found):
            continue
        elements = _array.decode(text) if name in _LISTS and text.startswith(b"[") else []
        if elements and len(text) >= LARGE_ENOUGH * len(elements):
            at = start
            for element in elements:
                part = bytes(element)
                at = _locate(body, part, at)
                found.append((at, at + len(part)))
                at += len(part)
        else:
            found.append((start, start + len(text)))
    return found


def _locate(body: bytes, text: bytes, at: int) -> int:
    """Where a text that is in the body begins, from `at` on. By its first bytes: preparing a search for all of them is slow."""
    head = text[:48]
    at = body.index(head, at)
    while not body.startswith(text, at):
        at = body.index(head, at + 1)
    return at


def digest(part: bytes, lane: bytes) -> bytes:
    """The name of a part within its lane."""
    return blake2b(part, digest_size=DIGEST_BYTES, key=lane).digest()


def pack(body: bytes) -> bytes:
    """A body as stored: compressed where that pays. The first byte tells."""
    if len(body) >= LARGE:
        small = zlib.compress(body, 1)
        if len(small) < len(body):
            return b"z" + small
    return b"=" + body


def unpack(stored: bytes) -> bytes:
    """What `pack` was given."""
    return zlib.decompress(stored[1:]) if stored[:1] == b"z" else stored[1:]


def restore(skeleton: bytes, digests: bytes, fetch: Callable[[list[bytes]], dict[bytes, bytes]]) -> bytes | None:
    """A stored request; None when a part of it is gone. `fetch`: stored parts by digest."""
    names = [digests[i : i + DIGEST_BYTES] for i in range(0, len(digests), DIGEST_BYTES)]
    stored = fetch(list(dict.fromkeys(names)))
    if any(name not in stored for name in names):
        return None
    bodies = {name: unpack(body) for name, body in stored.items()}
    return join(skeleton, (bodies[name] for name in names))
