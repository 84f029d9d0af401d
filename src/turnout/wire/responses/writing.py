"""Neutral messages -> input items of Responses."""

from typing import Any, NamedTuple

import msgspec

from turnout.conversation import (
    Audio,
    Conversation,
    Document,
    Image,
    Lazy,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Settings,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.drops import Drops
from turnout.wire.names import alias, legal_id, original_id
from turnout.wire.paths import inner_path, part_path
from turnout.wire.responses.content import (
    FORMAT,
    as_json,
    write_audio,
    write_document,
    write_image,
    write_text,
)
from turnout.wire.responses.sealed import holds_seal, needs_seal, seal
from turnout.wire.told import FAILED, FAILED_END, told_as_failed, without_call

US = "OpenAI Responses"


class _Unit(NamedTuple):
    """One item to write. `call`, `result`: the id of the call it makes or answers; `plain`: what to write when its
    counterpart is missing."""

    item: dict[str, Any]
    call: str | None = None
    result: str | None = None
    path: str = ""
    plain: dict[str, Any] | None = None


def write_items(conversation: Conversation, settings: Settings, drops: Drops) -> list[Any]:
    """The `input` array, untouched items as raw JSON.

    Tool results stand right after their calls; what lost its counterpart becomes readable text, unless the server may hold
    the counterpart (`previous_response_id`, `conversation`, references, compaction).
    """
    messages = conversation.messages
    if conversation.format == FORMAT and isinstance(messages, Lazy) and not _sealed(messages):
        return list(messages.raw)  # as they were read: exact, and not one of them decoded
    writer = _Items(conversation, drops)
    for index, message in enumerate(conversation.messages):
        writer.message(message, index)
    units = writer.units
    if not (settings.previous_response_id or settings.conversation_id or writer.stateful):
        units = _repaired(units, drops)
    return [unit.item for unit in (units if writer.native else _paired(units))]


def _sealed(messages: Lazy[Message]) -> bool:
    return any(holds_seal(bytes(raw)) for raw in messages.raw if isinstance(raw, msgspec.Raw))


def _repaired(units: list[_Unit], drops: Drops) -> list[_Unit]:
    answered = {u.result for u in units if u.result is not None}
    open_calls: set[str] = set()
    kept: list[_Unit] = []
    for unit in units:
        lost = False
        if unit.call is not None:
            open_calls.add(unit.call)
            lost = unit.call not in answered
        elif unit.result is not None:
            lost = unit.result not in open_calls
        if lost and unit.plain is not None:
            what = "its result is missing" if unit.call is not None else "its call is missing"
            drops.downgrade(unit.path, f"{what}, so it is given as text")
            unit = _Unit(unit.plain)
        kept.append(unit)
    return kept


def _paired(units: list[_Unit]) -> list[_Unit]:
    """Parallel calls and their results as call, result, call, result, in the order of the results. Nothing moves across any
    other item."""
    paired: list[_Unit] = []
    at = 0
    while at < len(units):
        end = at
        while end < len(units) and units[end].call is not None:
            end += 1
        if end == at:
            paired.append(units[at])
            at += 1
            continue
        calls: dict[str | None, list[_Unit]] = {}
        for call in units[at:end]:
            calls.setdefault(call.call, []).append(call)
        at = end
        while at < len(units) and (answers := units[at].result) is not None:
            paired.extend(calls.pop(answers, ()))
            paired.append(units[at])
            at += 1
        paired.extend(call for same in calls.values() for call in same)
    return paired


class _Items:
    def __init__(self, conversation: Conversation, drops: Drops) -> None:
        self.units: list[_Unit] = []
        self.drops = drops
        self.format = conversation.format
        self.native = conversation.format == FORMAT
        self.stateful = False
        self._list = "input" if self.native else "messages"
        self._names: dict[str, str] = {}

    def message(self, message: Message, index: int) -> None:
        """The items of one message: its runs of content, and every other part as an item of its own."""
        path = f"{self._list}[{index}]"
        if message.name is not None:
            self.drops.drop(f"{path}.name", f"{US} has no names of participants")
        extra = message.extra
        if extra and not self.native:
            self.drops.extras(path, extra, US)
            extra = {}
        whole = len(message.parts) > 1 or "type" in extra
        content: list[Part] = []
        places: list[str] = []
        for i, part in enumerate(message.parts):
            at = path if self.native and not whole else part_path(self.format, message, index, i)
            if isinstance(part, Reasoning | ToolCall | ToolResult) or self._is_item(part, whole):
                self._content(message, content, places, extra)
                content, places = [], []
                self._item(part, message, at)
            else:
                content.append(part)
                places.append(at if not self.native else f"{path}.content[{i}]")
        if content or not message.parts:
            self._content(message, content, places, extra)

    @staticmethod
    def _is_item(part: Part, whole: bool) -> bool:
        return isinstance(part, Opaque) and part.format == FORMAT and not whole

    def _content(self, message: Message, parts: list[Part], places: list[str], extra: dict[str, Any]) -> None:
        if not parts and (message.parts or not self.native):
            return
        role = "user" if message.role == "tool" else message.role
        assistant = role == "assistant"
        if self.native:
            flat = message.flat and len(parts) == 1
        else:
            flat = len(parts) == 1 and not (isinstance(parts[0], Text) and parts[0].annotations)
        written = [
            piece
            for part, at in zip(parts, places, strict=True)
            if (piece := self._piece(part, at, assistant)) is not None
        ]
        if not written and parts:
            return
        value: dict[str, Any] = {"type": "message"}
        if message.id is not None and self.native:
            value["id"] = message.id
        if message.status is not None and self.native:
            value["status"] = message.status
        value["role"] = role
        value["content"] = written[0]["text"] if flat and written and "text" in written[0] else written
        value.update(extra)
        self.units.append(_Unit(value))

    def _piece(self, part: Part, path: str, assistant: bool) -> dict[str, Any] | None:
        part = self._own(part, path)
        match part:
            case Text():
                return write_text(part, assistant)
            case Refusal():
                if assistant:
                    return {"type": "refusal", "refusal": part.text, **part.extra}
                return {"type": "input_text", "text": part.text}
            case Image() | Document() | Audio() if assistant and not self.native:
                self.drops.downgrade(path, f"{US} takes no media in an assistant's message")
                return {"type": "output_text", "text": _instead(part), "annotations": []}
            case Image():
                self._same_vendor(part.source, path)
                return write_image(part)
            case Document():
                self._same_vendor(part.source, path)
                return write_document(part, self.native)
            case Audio():
                self._same_vendor(part.source, path)
                return write_audio(part)
            case Opaque() if part.format == FORMAT:
                return part.value if isinstance(part.value, dict) else None
            case Opaque():
                self.drops.downgrade(path, f"{US} has no {part.type}; its JSON is given as text")
                return write_text(Text(as_json(part.value)), assistant)
        return None

    def _own(self, part: Part, path: str) -> Part:
        """`part` without what only its own format knows, all of it reported."""
        if self.native:
            return part
        if getattr(part, "cache", None) is not None:
            self.drops.drop(f"{path}.cache_control", f"{US} caches prompts by itself")
        changes: dict[str, Any] = {}
        extra = getattr(part, "extra", None)
        if extra:
            if not isinstance(part, Reasoning):  # there it only says in which field the source had the text
                self.drops.extras(path, extra, US)
            changes["extra"] = {}
        if isinstance(part, Text) and part.annotations:
            changes["annotations"] = self._citations(part, path)
        if isinstance(part, Document):
            for field in ("context", "citations"):
                if getattr(part, field) is not None:
                    self.drops.drop(f"{path}.{field}", f"{US} has no such field")
        return msgspec.structs.replace(part, **changes) if changes else part

    def _citations(self, part: Text, path: str) -> tuple[Any, ...]:
        kept = []
        for i, citation in enumerate(part.annotations):
            if citation.url:
                kept.append(msgspec.structs.replace(citation, extra={}) if citation.extra else citation)
            else:
                self.drops.drop(f"{path}.annotations[{i}]", f"{US} has no such citation")
        return tuple(kept)

    def _same_vendor(self, source: Media, path: str) -> None:
        if source.kind == "file_id" and source.origin == "anthropic_messages":
            raise ClientError(
                f"{path}: a file id of another provider means nothing here; send the file's bytes or a URL",
                code="unsupported_capability",
                param=path,
            )

    def _item(self, part: Part, message: Message, path: str) -> None:
        part = self._own(part, path)
        status = {"status": message.status} if self.native and message.status is not None else {}
        match part:
            case Reasoning():
                self._reasoning(part, status, path)
            case ToolCall():
                self._call(part, status, path)
            case ToolResult():
                self._result(part, status, path)
            case Opaque():
                self.stateful |= part.type in ("item_reference", "compaction")
                if isinstance(part.value, dict):
                    call_id = part.value.get("call_id")
                    answers = part.type.endswith("_output")
                    self.units.append(
                        _Unit(part.value, None if answers else call_id, call_id if answers else None, path)
                    )

    def _reasoning(self, part: Reasoning, status: dict[str, Any], path: str) -> None:
        if part.origin == "anthropic_messages" or part.redacted:
            self.drops.drop(path, "thinking is readable only by the model that wrote it")
        elif part.origin != FORMAT and not self.native:
            # An item without a payload needs the id of a stored one, which does not exist: servers refuse it.
            self.drops.drop(path, f"{US} takes back only reasoning of its own")
            if part.details is not None:
                self.drops.drop(f"{path.partition('.')[0]}.reasoning_details", f"{US} has no such field")
        else:
            if needs_seal(part):
                part = Reasoning(part.text, part.summary, origin=part.origin)
            if part.text or part.encrypted or (self.native and part.id is not None):
                self.units.append(_Unit(reasoning_item(part, part.id if part.origin == FORMAT else None, status)))

    def _id(self, call_id: str) -> str:
        if self.native:
            return call_id
        own = original_id(call_id)
        return own if len(own) <= 64 else legal_id(own)

    def _call(self, part: ToolCall, status: dict[str, Any], path: str) -> None:
        call_id = self._id(part.id)
        name = part.name if self.native else alias(part.name, part.namespace)
        self._names[call_id] = name
        item = call_item(
            msgspec.structs.replace(part, id=call_id, name=name, namespace=part.namespace if self.native else None),
            part.item_id if self.native else None,
            status,
        )
        text = f"[called {name}: {part.arguments}]"
        self.units.append(_Unit(item, call=call_id, path=path, plain=_says("assistant", text)))

    def _result(self, part: ToolResult, status: dict[str, Any], path: str) -> None:
        call_id = self._id(part.call_id)
        output = self._output(part, path)
        item: dict[str, Any] = {"type": "custom_tool_call_output" if part.style == "custom" else "function_call_output"}
        if self.native and part.item_id is not None:
            item["id"] = part.item_id
        item["call_id"] = call_id
        name = part.name if self.native else self._names.get(call_id, part.name)
        if name is not None and (self.native or part.style == "function"):
            item["name"] = name
        item["output"] = output
        item.update(status)
        item.update(part.extra)
        plain: dict[str, Any] = _says("user", f"{without_call(call_id)}\n{part.text}")
        if isinstance(output, list):
            head = {"type": "input_text", "text": without_call(call_id)}
            plain = {"type": "message", "role": "user", "content": [head, *output]}
        self.units.append(_Unit(item, result=call_id, path=path, plain=plain))

    def _output(self, part: ToolResult, path: str) -> str | list[dict[str, Any]]:
        if part.is_error:
            self.drops.emulate(f"{path}.is_error", "the text says that the tool failed")
        simple = all(isinstance(p, Text) for p in part.parts)
        if simple and (part.text_only or not self.native):
            for i, inner in enumerate(part.parts):
                self._own(inner, inner_path(self.format, part, path, i))
            return told_as_failed(part.text) if part.is_error else part.text
        pieces = (self._piece(p, inner_path(self.format, part, path, i), False) for i, p in enumerate(part.parts))
        made = [p for p in pieces if p is not None]
        return _failed(made) if part.is_error else made


def _failed(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Output of a failed call: its first text begins and its last one ends as `told_as_failed` does."""
    texts = [p for p in pieces if p["type"] == "input_text"]
    if not texts:
        return [write_text(Text(told_as_failed("")), False), *pieces]
    if not texts[0]["text"].startswith(FAILED):
        texts[0]["text"] = FAILED + texts[0]["text"]
        texts[-1]["text"] += FAILED_END
    return pieces


def _says(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _instead(part: Part) -> str:
    return f"[{type(part).__name__.lower()}]"


def reasoning_item(part: Reasoning, item_id: str | None, more: dict[str, Any]) -> dict[str, Any]:
    """A reasoning item: its readable text as summary parts; what only another provider reads is sealed."""
    item: dict[str, Any] = {"type": "reasoning"}
    if item_id is not None:
        item["id"] = item_id
    pieces = part.summary or ((part.text,) if part.text else ())
    item["summary"] = [{"type": "summary_text", "text": t} for t in pieces]
    if needs_seal(part):
        item["encrypted_content"] = seal(part)
    elif part.encrypted is not None:
        item["encrypted_content"] = part.encrypted
    item.update(more)
    if part.origin == FORMAT:
        item.update(part.extra)
    return item


def call_item(part: ToolCall, item_id: str | None, more: dict[str, Any]) -> dict[str, Any]:
    """A function_call or custom_tool_call item."""
    custom = part.style == "custom"
    item: dict[str, Any] = {"type": "custom_tool_call" if custom else "function_call"}
    if item_id is not None:
        item["id"] = item_id
    item["call_id"] = part.id
    if part.namespace is not None:
        item["namespace"] = part.namespace
    item["name"] = part.name
    if custom:
        item["input"] = part.arguments
    else:
        item["arguments"] = part.arguments or "{}"
    item.update(more)
    item.update(part.extra)
    return item
