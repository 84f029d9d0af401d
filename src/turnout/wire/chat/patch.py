"""Changes to a native Chat body that leave every other byte where it was."""

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.conversation import DropForeignReasoning, Edit, Instruction, Note
from turnout.conversation import Effort as EffortEdit
from turnout.wire.body import fields, splice
from turnout.wire.codec import Request

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_ASK = b',"stream_options":{"include_usage":true}}'
_OPTIONS = b'"stream_options"'
_DETAILS = b'"reasoning_details"'


def patch(body: bytes, edits: Sequence[Edit]) -> bytes:
    """`body` with `edits` applied in place; applying them again changes nothing."""
    for edit in edits:
        match edit:
            case Note():
                body = _note(body, edit.text)
            case Instruction():
                body = _instruction(body, edit.text)
            case DropForeignReasoning():
                body = _without_opaque(body)
            case EffortEdit():
                body = _effort(body, edit.level)
    return body


def _messages(body: bytes) -> tuple[bytes, list[msgspec.Raw]]:
    raw = bytes(fields(body).get("messages", b"[]"))
    return raw, _LIST.decode(raw)


def _note(body: bytes, text: str) -> bytes:
    array, items = _messages(body)
    last = msgspec.json.decode(items[-1]) if items else None
    if not isinstance(last, dict) or last.get("role") != "user":
        return splice(body, {"messages": _appended(array, items, {"role": "user", "content": text})})
    content = last.get("content")
    if isinstance(content, list):
        if content and isinstance(content[-1], dict) and content[-1].get("text") == text:
            return body
        parts = [*content, {"type": "text", "text": text}]
    elif content == text:
        return body  # the note of an earlier application, as a message of its own
    else:
        parts = [{"type": "text", "text": content or ""}, {"type": "text", "text": text}]
    noted = msgspec.json.encode({**last, "content": parts})
    start = array.rindex(bytes(items[-1]))
    return splice(body, {"messages": array[:start] + noted + array[start + len(bytes(items[-1])) :]})


def _appended(array: bytes, items: list[msgspec.Raw], message: dict[str, Any]) -> bytes:
    end = array.rindex(b"]")
    return array[:end] + (b"," if items else b"") + msgspec.json.encode(message) + array[end:]


def _instruction(body: bytes, text: str) -> bytes:
    array, items = _messages(body)
    message = {"role": "system", "content": text}
    if items and msgspec.json.decode(items[0]) == message:
        return body
    first = msgspec.json.encode(message) + (b"," if items else b"")
    start = array.index(b"[") + 1
    return splice(body, {"messages": array[:start] + first + array[start:]})


def _without_opaque(body: bytes) -> bytes:
    """Without signed and encrypted reasoning; what any model can read stays."""
    if _DETAILS not in body:
        return body
    array, items = _messages(body)
    at = 0
    for raw in items:
        item = bytes(raw)
        start = array.index(item, at)
        at = start + len(item)
        if _DETAILS not in item:
            continue
        message = msgspec.json.decode(item)
        if not isinstance(message, dict) or not any(map(_opaque, message.get("reasoning_details") or ())):
            continue
        cleaned = splice(item, {"reasoning_details": None})
        array = array[:start] + cleaned + array[at:]
        at = start + len(cleaned)
    return splice(body, {"messages": array})


def _opaque(detail: Any) -> bool:
    return isinstance(detail, dict) and (
        detail.get("type") == "reasoning.encrypted" or bool(detail.get("signature")) or bool(detail.get("data"))
    )


def _effort(body: bytes, level: str) -> bytes:
    raw = fields(body).get("reasoning")
    router = msgspec.json.decode(raw) if raw is not None else None
    if isinstance(router, dict) and "effort" in router:
        return splice(body, {"reasoning": msgspec.json.encode({**router, "effort": level})})
    return splice(body, {"reasoning_effort": msgspec.json.encode(level)})


def ask_usage(request: Request, body: bytes) -> bytes:
    """The body of a streamed request with `stream_options.include_usage` on."""
    if request.settings.stream_usage:
        return body
    if _OPTIONS not in body:
        return body[: body.rindex(b"}")] + _ASK
    raw = fields(body).get("stream_options")
    options = msgspec.json.decode(raw) if raw is not None else None
    options = {**options, "include_usage": True} if isinstance(options, dict) else {"include_usage": True}
    return splice(body, {"stream_options": msgspec.json.encode(options)})
