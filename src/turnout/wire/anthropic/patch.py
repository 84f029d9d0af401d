"""Edits on a native Messages body. Only the level that changes is re-spelled: cache markers, white space and unknown fields
elsewhere stay byte for byte, and the same edit twice gives the same bytes as once."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from turnout.conversation import DropForeignReasoning, Edit, Instruction, Note, mark
from turnout.conversation.edits import Effort
from turnout.errors import ClientError
from turnout.wire.anthropic.thinking import LEVELS, without_thinking_edits
from turnout.wire.body import Span, fields, members, spans, splice

_RAW_LIST = msgspec.json.Decoder(list[Raw])
_ANY = msgspec.json.Decoder()
_encode = msgspec.json.encode
_WHITE = b" \t\r\n"
_REASONING = frozenset(("thinking", "redacted_thinking"))


Top = dict[str, bytes]
"""The top-level members of a body, as JSON text."""


def patch(body: bytes, edits: Sequence[Edit]) -> bytes:
    """`body` with `edits` applied in order."""
    if edits:
        fields(body)  # refuses what is not a JSON object
    for edit in edits:
        found = list(members(body))
        top = {key: body[span.start : span.end] for key, span in found}
        changes = _changes(top, edit)
        if changes:
            body = _spliced(body, found, changes)
    return body


def _spliced(body: bytes, found: list[tuple[str, Span]], changes: dict[str, bytes | None]) -> bytes:
    """As `splice`, without looking for the members again in the usual case: one value takes the place of another."""
    if len(changes) == 1:
        ((name, value),) = changes.items()
        places = [span for key, span in found if key == name]
        if value is not None and len(places) == 1:
            return b"".join((body[: places[0].start], value, body[places[0].end :]))
    return splice(body, changes)


def _changes(top: Top, edit: Edit) -> dict[str, bytes | None]:
    match edit:
        case Note():
            return _note(top, edit.text)
        case Instruction():
            return _instruction(top, edit.text)
        case Effort():
            return _effort(top, edit.level)
        case DropForeignReasoning():
            return _without_reasoning(top, frozenset(edit.keep), edit.mixed)


def _note(top: Top, text: str) -> dict[str, bytes | None]:
    messages = top.get("messages", b"[]")
    raws = _list(messages, "messages")
    block = _text_block(text)
    if not raws or _role(raws[-1]) != "user":
        turn = b'{"role":"user","content":[' + block + b"]}"
        return {"messages": _appended(messages, turn, bool(raws))}
    last = bytes(raws[-1])
    start = len(messages[:-1].rstrip(_WHITE)) - len(last)
    content = spans(last).get("content")
    if content is None:
        path = f"messages[{len(raws) - 1}].content"
        raise ClientError(f"{path}: this field is required", param=path)
    old = last[content.start : content.end]
    new = _with_block(old, block, text)
    if new is old:
        return {}
    return {"messages": b"".join((messages[: start + content.start], new, messages[start + content.end :]))}


def _with_block(content: bytes, block: bytes, text: str) -> bytes:
    """`content` (a string or list of blocks) with a text block at its end, or itself when it ends so already."""
    value = _ANY.decode(content)
    if isinstance(value, str):
        if value == text:
            return content
        return b"[" + (b'{"type":"text","text":' + content + b"}," if value else b"") + block + b"]"
    if not isinstance(value, list):
        raise ClientError("messages: the content of the last message is neither text nor blocks", param="messages")
    if _stands(reversed(value), text):
        return content
    return _appended(content, block, bool(value))


def _instruction(top: Top, text: str) -> dict[str, bytes | None]:
    block = _text_block(text)
    system = top.get("system", b"null")
    value = _ANY.decode(system)
    if value is None or value == "":
        return {"system": b"[" + block + b"]"}
    if isinstance(value, str):
        return {"system": b"[" + block + b',{"type":"text","text":' + system + b"}]"}
    if not isinstance(value, list):
        raise ClientError("system: expected a string or a list of text blocks", param="system")
    if _stands(value, text):
        return {}
    return {"system": b"[" + block + (b"," if value else b"") + system[1:]}


def _effort(top: Top, level: str) -> dict[str, bytes | None]:
    config = _object(top, "output_config")
    if level == "none":
        changes: dict[str, bytes | None] = {}
        if config.pop("effort", None) is not None:
            changes["output_config"] = _encode(config) if config else None
        return {**changes, **_thinking_off(top)}
    native = LEVELS.get(level, level)
    if config.get("effort") == native:
        return {}
    return {"output_config": _encode({**config, "effort": native})}


def _thinking_off(top: Top) -> dict[str, bytes | None]:
    """Switch thinking off, and with it the context edits that Messages takes only beside thinking."""
    thinking = _object(top, "thinking")
    if not thinking or thinking.get("type") == "disabled":
        return {}
    changes: dict[str, bytes | None] = {"thinking": b'{"type":"disabled"}'}
    management = {"context_management": _object(top, "context_management")}
    for key, value in without_thinking_edits(management).items():
        changes[key] = None if value is None else _encode(value)
    return changes


def _without_reasoning(top: Top, keep: frozenset[str], mixed: bool) -> dict[str, bytes | None]:
    messages = top.get("messages", b"[]")
    if b"thinking" not in messages and not mixed:
        return {}
    places = _elements(messages, "messages")
    kept: list[tuple[int, int, bytes]] = []
    changed: dict[int, bytes | None] = {}
    for i, (start, end) in enumerate(places):
        old = messages[start:end]
        new = _message_without_reasoning(old, keep) if b"thinking" in old else old
        if new is not old:
            changed[i] = new
        if new is not None:
            kept.append((start, end, new))
    changes: dict[str, bytes | None] = {"messages": _rejoined(messages, places, kept)} if changed else {}
    if (changed or mixed) and _object(top, "thinking").get("type") == "enabled":
        at = len(places) - 2
        if at in changed or mixed:
            asked = changed[at] if at in changed else messages[slice(*places[at])] if at >= 0 else None
            if _ends_in_loop(messages, places) and not _leads(asked):
                # With a fixed budget Messages wants the tool loop in progress to start with thinking, and it does not.
                changes.update(_thinking_off(top))
    return changes


def _message_without_reasoning(message: bytes, keep: frozenset[str]) -> bytes | None:
    """The message without its thinking blocks but those to `keep`: itself when it loses none, None when nothing else is in
    it.

    Unsigned thinking goes too: it was made by a model of another format, and Messages refuses it.
    """
    if _role(message) != "assistant":
        return message
    content = spans(message).get("content")
    if content is None or message[content.start : content.start + 1] != b"[":
        return message
    array = message[content.start : content.end]
    places = _elements(array, "content")
    values = _ANY.decode(array)
    left = [
        (start, end, array[start:end])
        for (start, end), value in zip(places, values, strict=True)
        if not _is_reasoning(value) or _own(value, keep)
    ]
    if len(left) == len(places):
        return message
    if not left:
        return None
    return message[: content.start] + _rejoined(array, places, left) + message[content.end :]


def _is_reasoning(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(kind := block.get("type"), str) and kind in _REASONING


def _own(block: dict[str, Any], keep: frozenset[str]) -> bool:
    """Whether the receiving model made this thinking block itself."""
    payload = block.get("signature" if block["type"] == "thinking" else "data")
    return bool(keep) and isinstance(payload, str) and bool(payload) and mark(payload) in keep


def _leads(message: bytes | None) -> bool:
    """Whether an assistant turn starts with thinking."""
    value = _ANY.decode(message) if message is not None else None
    content = value.get("content") if isinstance(value, dict) else None
    return isinstance(content, list) and bool(content) and _is_reasoning(content[0])


def _ends_in_loop(messages: bytes, places: list[tuple[int, int]]) -> bool:
    """Whether the body ends with the results of an assistant turn's calls."""
    if len(places) < 2:
        return False
    last = _ANY.decode(messages[slice(*places[-1])])
    content = last.get("content") if isinstance(last, dict) else None
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content)


def _list(array: bytes, path: str) -> list[Raw]:
    try:
        return _RAW_LIST.decode(array)
    except msgspec.ValidationError:
        raise ClientError(f"{path}: expected a list", param=path) from None


def _elements(array: bytes, path: str) -> list[tuple[int, int]]:
    """Where every element of a JSON array lies."""
    places = []
    at = 1
    for raw in _list(array, path):
        # Only white space and a comma stand between two elements, so the next match is the element itself.
        text = bytes(raw)
        start = array.index(text, at)
        at = start + len(text)
        places.append((start, at))
    return places


def _rejoined(array: bytes, places: list[tuple[int, int]], kept: list[tuple[int, int, bytes]]) -> bytes:
    """The array with only the `kept` elements, each in its new spelling; what stood between two kept ones stays."""
    ends = {start: places[i + 1][0] if i + 1 < len(places) else end for i, (start, end) in enumerate(places)}
    first, last = places[0][0], places[-1][1]
    pieces = [array[:first]]
    for i, (start, end, text) in enumerate(kept):
        pieces.append(text)
        if i + 1 < len(kept):
            pieces.append(array[end : ends[start]] if end != last else b",")
    pieces.append(array[last:])
    return b"".join(pieces)


def _appended(array: bytes, element: bytes, full: bool) -> bytes:
    """The array with one more element right behind its last one."""
    inside = array[:-1].rstrip(_WHITE)
    return inside + (b"," if full else b"") + element + array[len(inside) :]


def _object(top: Top, key: str) -> dict[str, Any]:
    value = _ANY.decode(top[key]) if key in top else None
    return value if isinstance(value, dict) else {}


def _role(message: bytes | Raw) -> Any:
    value = _ANY.decode(message)
    return value.get("role") if isinstance(value, dict) else None


def _text_block(text: str) -> bytes:
    return b'{"type":"text","text":' + _encode(text) + b"}"


def _stands(blocks: Iterable[Any], text: str) -> bool:
    """Whether `text` is one of the text blocks that `blocks` begin with (edits of one kind may stand side by side)."""
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") != "text":
            return False
        if block.get("text") == text:
            return True
    return False
