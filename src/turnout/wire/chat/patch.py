"""Changes to a native Chat body that leave every other byte where it was."""

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.conversation import DropForeignReasoning, Edit, Instruction, Note, mark
from turnout.conversation import Effort as EffortEdit
from turnout.conversation.issued import details_payloads, thought_signature, without_thought_signature
from turnout.wire.body import fields, spans, splice
from turnout.wire.codec import Request

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_ASK = b',"stream_options":{"include_usage":true}}'
_OPTIONS = b'"stream_options"'
_DETAILS, _SIGNED_CALL = b'"reasoning_details"', b'"thought_signature"'


def patch(body: bytes, edits: Sequence[Edit]) -> bytes:
    """`body` with `edits` applied in place; applying them again changes nothing."""
    for edit in edits:
        match edit:
            case Note():
                body = _note(body, edit.text)
            case Instruction():
                body = _instruction(body, edit.text)
            case DropForeignReasoning():
                body = _without_opaque(body, frozenset(edit.keep))
            case EffortEdit():
                body = _effort(body, edit.level)
    return body


class _Messages:
    """The messages of a body: where they are, and each undecoded."""

    __slots__ = ("_body", "_end", "_start", "array", "items")

    def __init__(self, body: bytes) -> None:
        place = spans(body, "messages")["messages"]
        self._body, self._start, self._end = body, place.start, place.end
        self.array = body[place.start : place.end]
        self.items = [bytes(raw) for raw in _LIST.decode(self.array)]

    def replaced(self, array: bytes) -> bytes:
        """The body with another array in the place of its messages."""
        return self._body[: self._start] + array + self._body[self._end :]


def _note(body: bytes, text: str) -> bytes:
    messages = _Messages(body)
    array, items = messages.array, messages.items
    last = msgspec.json.decode(items[-1]) if items else None
    if not isinstance(last, dict) or last.get("role") != "user":
        end = array.rindex(b"]")
        added = (b"," if items else b"") + msgspec.json.encode({"role": "user", "content": text})
        return messages.replaced(array[:end] + added + array[end:])
    content = last.get("content")
    if isinstance(content, list):
        if _noted(content, text):
            return body
        parts = [*content, {"type": "text", "text": text}]
    elif content == text:
        return body  # the note of an earlier application, as a message of its own
    else:
        parts = [{"type": "text", "text": content or ""}, {"type": "text", "text": text}]
    noted = msgspec.json.encode({**last, "content": parts})
    start = array.rindex(items[-1])
    return messages.replaced(array[:start] + noted + array[start + len(items[-1]) :])


def _noted(parts: list[Any], text: str) -> bool:
    """Whether `text` is among the text parts at the end: several notes may stand side by side."""
    for part in reversed(parts):
        if not isinstance(part, dict) or part.get("type") != "text":
            return False
        if part.get("text") == text:
            return True
    return False


def _instruction(body: bytes, text: str) -> bytes:
    messages = _Messages(body)
    message = {"role": "system", "content": text}
    for item in messages.items:  # several instructions may stand before the client's own messages
        first = msgspec.json.decode(item)
        if first == message:
            return body
        if not isinstance(first, dict) or first.get("role") != "system":
            break
    added = msgspec.json.encode(message) + (b"," if messages.items else b"")
    return messages.replaced(b"[" + added + messages.array[1:])


def _without_opaque(body: bytes, keep: frozenset[str]) -> bytes:
    """Without signed and encrypted reasoning but that to `keep`; what any model can read stays."""
    if _DETAILS not in body and _SIGNED_CALL not in body:
        return body
    messages = _Messages(body)
    array, at = messages.array, 0
    for item in messages.items:
        start = array.index(item, at)
        at = start + len(item)
        if _DETAILS not in item and _SIGNED_CALL not in item:
            continue
        message = msgspec.json.decode(item)
        changes = _foreign(message, keep) if isinstance(message, dict) else {}
        if not changes:
            continue
        cleaned = splice(item, changes)
        array = array[:start] + cleaned + array[at:]
        at = start + len(cleaned)
    return messages.replaced(array)


def _foreign(message: dict[str, Any], keep: frozenset[str]) -> dict[str, bytes | None]:
    """What changes in a message so that it holds no opaque reasoning of another model."""
    changes: dict[str, bytes | None] = {}
    details = message.get("reasoning_details") or ()
    if isinstance(details, list) and any(map(_opaque, details)):
        # The details of a message were made by one model.
        own = any(mark(payload) in keep for payload in details_payloads(details))
        changes = {} if own else {"reasoning_details": None}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        cleaned = [_unsigned(call, keep) for call in calls]
        if cleaned != calls:
            changes["tool_calls"] = msgspec.json.encode(cleaned)
    return changes


def _unsigned(call: Any, keep: frozenset[str]) -> Any:
    signature = thought_signature(call) if isinstance(call, dict) else ""
    return without_thought_signature(call) if signature and mark(signature) not in keep else call


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
    if body.find(_OPTIONS) < 0:
        return body[: body.rindex(b"}")] + _ASK
    raw = fields(body).get("stream_options")
    options = msgspec.json.decode(raw) if raw is not None else None
    options = {**options, "include_usage": True} if isinstance(options, dict) else {"include_usage": True}
    return splice(body, {"stream_options": msgspec.json.encode(options)})
