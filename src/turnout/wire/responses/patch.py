"""Edits on a native request body: only the values concerned are replaced, every other byte stays."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from turnout.conversation import DropForeignReasoning, Edit, Instruction, Note, mark
from turnout.errors import ClientError
from turnout.wire.body import fields, splice
from turnout.wire.responses.content import decoded
from turnout.wire.responses.sealed import holds_seal, is_sealed

_LIST = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.encode


def patch(body: bytes, edits: Sequence[Edit]) -> bytes:
    """See `Codec.patch`. Reasoning sealed for another provider goes out of any body: no Responses server can read it."""
    if holds_seal(body):
        change = _readable(fields(body).get("input"), sealed_only=True)
        body = splice(body, {"input": change}) if change is not None else body
    for edit in edits:
        found = fields(body)
        if isinstance(edit, Note):
            change = _noted(found.get("input"), edit.text)
            body = splice(body, {"input": change}) if change is not None else body
        elif isinstance(edit, Instruction):
            body = _instructed(body, found.get("instructions"), edit.text)
        elif isinstance(edit, DropForeignReasoning):
            change = _readable(found.get("input"), frozenset(edit.keep))
            body = splice(body, {"input": change}) if change is not None else body
        else:
            reasoning = _decoded(found.get("reasoning"))
            stated = reasoning if isinstance(reasoning, dict) else {}
            if stated.get("effort") != edit.level:
                body = splice(body, {"reasoning": _encode({**stated, "effort": edit.level})})
    return body


def _decoded(raw: Raw | None) -> Any:
    return None if raw is None else decoded(raw, "the body")


def _items(raw: Raw) -> list[Raw]:
    try:
        return _LIST.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ClientError("input: expected a string or an array", code="invalid_value", param="input") from None


def _instructed(body: bytes, raw: Raw | None, text: str) -> bytes:
    old = _decoded(raw)
    if not isinstance(old, str) or not old:
        return splice(body, {"instructions": _encode(text)})
    if f"\n\n{text}\n\n" in f"\n\n{old}\n\n":
        return body  # it stands there already, maybe behind another
    return splice(body, {"instructions": _encode(f"{text}\n\n{old}")})


def _note_item(text: str) -> bytes:
    return _encode({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})


def _noted(raw: Raw | None, text: str) -> bytes | None:
    """The input with the note in its last user message, or after its last item; None when it is there already."""
    if raw is None:
        return b"[" + _note_item(text) + b"]"
    whole = bytes(raw)
    if whole[:1] == b'"':
        said = decoded(whole, "input")
        first = _encode({"type": "message", "role": "user", "content": said})
        return b"[" + (_with_note(first, text) or first) + b"]"
    items = _items(raw)
    last = len(items)
    while last and _type_of(items[last - 1]) == "compaction_trigger":
        last -= 1  # the trigger asks for a summary and must stay last
    if not last:
        return b"[" + b",".join([_note_item(text), *map(bytes, items)]) + b"]"
    target = bytes(items[last - 1])
    value = decoded(target, "input")
    if isinstance(value, dict) and value.get("role") == "user" and value.get("type", "message") == "message":
        changed = _with_note(target, text)
        if changed is None:
            return None
    else:
        changed = target + b"," + _note_item(text)
    at = _place(whole, items, last - 1)
    return whole[:at] + changed + whole[at + len(target) :]


def _type_of(raw: Raw) -> Any:
    value = decoded(raw, "input")
    return value.get("type") if isinstance(value, dict) else None


def _place(whole: bytes, items: list[Raw], index: int) -> int:
    """Where item `index` begins in the text of the array."""
    at = 0
    for raw in items[: index + 1]:
        text = bytes(raw)
        found = whole.index(text, at)
        at = found + len(text)
    return found


def _with_note(item: bytes, text: str) -> bytes | None:
    """A user message with the note as its last text part; None when it ends with it already."""
    content = decoded(item, "input").get("content")
    part = _encode({"type": "input_text", "text": text})
    if isinstance(content, list):
        for said in reversed(content):
            if not isinstance(said, dict) or not isinstance(said.get("text"), str):
                break
            if said["text"] == text:
                return None
        kept = bytes(fields(item)["content"]).rstrip()[:-1].rstrip()
        return splice(item, {"content": kept + (b"," if content else b"") + part + b"]"})
    if content == text:
        return None
    old = _encode({"type": "input_text", "text": content if isinstance(content, str) else ""})
    return splice(item, {"content": b"[" + old + b"," + part + b"]"})


def _readable(raw: Raw | None, keep: frozenset[str] = frozenset(), sealed_only: bool = False) -> bytes | None:
    """The input with reasoning reduced to what anybody can read, or `keep` says its maker can (`sealed_only`: or the issuer);
    None when it is that."""
    whole = bytes(raw) if raw is not None else b""
    if raw is None or whole[:1] != b"[" or b"encrypted_content" not in whole:
        return None
    kept: list[bytes] = []
    changed = orphaned = False
    for raw_item in _items(raw):
        item = bytes(raw_item)
        left = _left_of(item, keep, sealed_only)
        if left is not None:
            orphaned = not sealed_only
        elif orphaned:
            left, orphaned = _orphan(item)
        changed |= left is not None
        if left != b"":
            kept.append(item if left is None else left)
    return b"[" + b",".join(kept) + b"]" if changed else None


def _left_of(item: bytes, keep: frozenset[str], sealed_only: bool) -> bytes | None:
    """What stays of a reasoning item with a payload (b"": nothing); None for every other item."""
    if b"encrypted_content" not in item or b"reasoning" not in item:
        return None
    value = decoded(item, "input")
    if not isinstance(value, dict) or value.get("type") != "reasoning" or not value.get("encrypted_content"):
        return None
    payload = value["encrypted_content"]
    sealed = is_sealed(payload)
    if not sealed and (sealed_only or (keep and isinstance(payload, str) and mark(payload) in keep)):
        return None
    if sealed or not (value.get("summary") or value.get("content")):
        return b""
    return splice(item, {"encrypted_content": None, "id": None})


_WITH_REASONING = frozenset({"message", "function_call", "custom_tool_call"})


def _orphan(item: bytes) -> tuple[bytes | None, bool]:
    """An item that follows reasoning which is gone: without its id, by which the server would ask for that (None when it has
    none), and whether what comes next may be such an item too."""
    value = decoded(item, "input")
    if not isinstance(value, dict):
        return None, False
    kind = value.get("type", "message")
    if kind == "reasoning":
        return None, False
    if kind not in _WITH_REASONING or value.get("role", "assistant") != "assistant":
        return None, not str(kind).endswith("_output") and "role" not in value
    return (splice(item, {"id": None}) if "id" in value else None), True
