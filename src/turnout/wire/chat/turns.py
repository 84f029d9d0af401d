"""Turns of another format as Chat messages: merged, split and paired as Chat asks.

Chat wants one assistant message per turn with all its calls, one `tool` message per call directly after it, and nothing
between. Messages puts results beside text in a user turn; Responses has an item for everything. Here units are taken in
order; calls wait for their results; what an assistant says while they wait comes after the results; a user's word ends the
wait, so that no result moves across it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.conversation import (
    Audio,
    Conversation,
    Document,
    Extra,
    Format,
    Image,
    Lazy,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.chat.content import audio_format, url_of
from turnout.wire.drops import Drops
from turnout.wire.items import CONTROL, UNTRANSLATABLE, attribution
from turnout.wire.names import alias, custom_arguments, original_id
from turnout.wire.paths import inner_path, part_path
from turnout.wire.told import told_as_failed, without_call

NAME = "Chat Completions"
NO_RESULT = "(no result: the call was interrupted)"
NO_CACHE = "Chat Completions has no cache markers"

_UNREADABLE = frozenset(("compaction", "compaction_summary", "context_compaction"))


def write_turns(
    conversation: Conversation, drops: Drops, *, reasoning_content: bool = False, developer_role: str = "developer"
) -> list[dict[str, Any]]:
    """The Chat messages of a conversation read from another format (or built by hand)."""
    turns = _Turns(conversation.format, drops, reasoning_content, developer_role)
    if len(conversation.system):
        turns.instructions(conversation.system, conversation.system_flat)
    messages = conversation.messages
    # A request waits for its reply much longer than this takes: what is written need not stay decoded for so long.
    for index, message in enumerate(messages.passing() if isinstance(messages, Lazy) else messages):
        turns.add(message, index)
    turns.finish()
    return turns.out


class _Turns:
    """Takes messages in order; `out` holds finished Chat messages."""

    __slots__ = (
        "_asking",
        "_developer",
        "_drops",
        "_late",
        "_more",
        "_names",
        "_root",
        "_source",
        "_thoughts",
        "_turn",
        "_turn_of",
        "_waiting",
        "_want",
        "out",
    )

    def __init__(self, source: Format | None, drops: Drops, reasoning_content: bool, developer_role: str) -> None:
        self.out: list[dict[str, Any]] = []
        self._drops = drops
        self._source = source
        self._root = "input" if source == "openai_responses" else "messages"
        self._want = reasoning_content
        self._developer = developer_role
        self._names: dict[str, str] = {}  # legal names by the client's names
        self._turn: dict[str, Any] | None = None  # the assistant message being put together
        self._more: list[str] = []  # what it says beyond its content
        self._turn_of = -1  # the source unit that last added to it
        self._asking: dict[str, Any] = {}  # the finished assistant message whose calls wait for results
        self._thoughts: list[tuple[str, str]] = []  # path and text of reasoning whose turn has not come yet
        self._waiting: dict[str, str] = {}  # ids of calls without a result yet -> the tool's name
        self._late: list[dict[str, Any]] = []  # what must come after the results that are waited for

    # Instructions

    def instructions(self, parts: Sequence[Part], flat: bool) -> None:
        texts = []
        for index, part in enumerate(parts):
            path = self._system_path(index, flat)
            text = self._as_text(part, path)
            if attribution(text):
                self._drops.drop(path, "a line that changes with every request would spoil the prefix cache")
            elif text:
                texts.append(text)
        if texts:
            self.out.append({"role": "system", "content": "\n\n".join(texts)})

    def _system_path(self, index: int, flat: bool) -> str:
        if self._source == "openai_responses":
            return "instructions"
        return "system" if flat else f"system[{index}]"

    # Messages

    def add(self, message: Message, index: int) -> None:
        if message.extra:
            self._drops.extras(f"{self._root}[{index}]", message.extra, NAME)
        parts = message.parts
        if len(parts) == 1 and type(parts[0]) is Opaque and parts[0].type in CONTROL:
            return  # no content: what it says is in the tools already, or means nothing here
        role = message.role
        if role == "assistant":
            self._assistant(message, index)
        elif role == "user" or role == "tool":
            self._user(message, index)
        else:
            texts = [self._as_text(p, self._path(message, index, i)) for i, p in enumerate(message.parts)]
            self._say(
                {"role": role if role == "system" else self._developer, "content": "\n\n".join(t for t in texts if t)}
            )

    def finish(self) -> None:
        """The assistant has had its turn: a user speaks, or the conversation ends."""
        self._close_turn()
        for call_id in self._waiting:
            # Chat refuses calls without results.
            self.out.append({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
            self._drops.emulate(self._root, "a call without a result got one that says so")
        self._waiting.clear()
        self._settle()
        self._close_turn()
        for path, _ in self._thoughts:
            self._drops.drop(path, "reasoning without anything said or called after it")
        self._thoughts.clear()

    def _path(self, message: Message, index: int, part: int) -> str:
        return part_path(self._source, message, index, part)

    def _assistant(self, message: Message, index: int) -> None:
        paragraph = True  # text of another unit, or after anything else than text, is a paragraph of its own
        for i, part in enumerate(message.parts):
            if isinstance(part, Text):
                if part.cache is not None or part.extra or part.annotations:
                    self._text_drops(part, self._path(message, index, i))
                self._text(part.text, paragraph, index)
                paragraph = False
                continue
            paragraph = True
            if isinstance(part, ToolCall):
                self._call(part, message, index, i)
            elif isinstance(part, Reasoning):
                self._reasoning(part, self._path(message, index, i))
            else:
                text = self._as_text(part, self._path(message, index, i))
                if text:
                    self._text(text, True, index)

    def _text(self, text: str, paragraph: bool, index: int) -> None:
        turn = self._turn
        if self._waiting and (turn is None or self._turn_of != index):
            # Another unit, said between calls and their results: it comes after the results.
            self._close_turn()
            self._late.append({"role": "assistant", "content": text})
            return
        self._turn_of = index
        if turn is None:
            self._turn = {"role": "assistant", "content": text}
        elif not turn["content"]:
            turn["content"] = text
        else:
            self._more.append(f"\n\n{text}" if paragraph and text else text)

    def _call(self, call: ToolCall, message: Message, index: int, i: int) -> None:
        if call.cache is not None:
            self._drops.drop(f"{self._path(message, index, i)}.cache_control", NO_CACHE)
        if call.extra:
            self._drops.extras(self._path(message, index, i), call.extra, NAME)
        call_id = original_id(call.id)
        if call_id in self._waiting:
            path = self._path(message, index, i)
            raise ClientError(f"{path}: two calls have the id {call.id!r}", param=path, code="duplicate_tool_call_id")
        name = self._names.get(call.name) if call.namespace is None else None
        if name is None:
            name = self._name(call)
        arguments = call.arguments or "{}"
        if call.style == "custom":
            arguments = custom_arguments(call.arguments)
            self._drops.emulate(self._path(message, index, i), "a custom tool is a function with one argument here")
        value = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self._turn is not None:
            turn = self._turn
        elif self._waiting:
            turn = self._asking
        else:
            turn = self._turn = {"role": "assistant", "content": None}
        self._turn_of = index
        calls = turn.get("tool_calls")
        if calls is None:
            turn["tool_calls"] = [value]
        else:
            calls.append(value)
        self._waiting[call_id] = name

    def _name(self, call: ToolCall) -> str:
        name = alias(call.name, call.namespace)
        if call.namespace is None:
            self._names[call.name] = name
        return name

    def _reasoning(self, part: Reasoning, path: str) -> None:
        opaque = part.signature or part.encrypted
        if self._source == "openai_responses" or (self._want and not opaque):
            if opaque:
                self._drops.drop(f"{path}.encrypted_content", "only its issuer can read it")
            if part.text:
                self._thoughts.append((path, part.text))
            elif part.summary:
                self._thoughts.append((path, "\n\n".join(part.summary)))
            if part.extra:
                self._drops.extras(path, part.extra, NAME)
        else:
            self._drops.drop(path, "thinking is not replayed in another format")

    # User turns

    def _user(self, message: Message, index: int) -> None:
        left: list[Any] = []
        media: list[dict[str, Any]] = []
        for i, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                self._result(part, message, index, i, left, media)
            elif isinstance(part, Text):
                if part.cache is not None or part.extra:
                    self._text_drops(part, self._path(message, index, i))
                left.append({"type": "text", "text": part.text})
            else:
                left.append(self._content(part, self._path(message, index, i)))
        blocks = media + left
        if blocks or not message.parts:  # else results only
            value: dict[str, Any] = {"role": "user", "content": _compact(blocks)}
            if message.name is not None:
                value["name"] = message.name
            if left or not message.parts:
                self.finish()
                self.out.append(value)
            else:
                self._say(value)

    def _result(
        self, result: ToolResult, message: Message, index: int, i: int, left: list[Any], media: list[dict[str, Any]]
    ) -> None:
        if self._turn is not None:
            self._close_turn()
        parts = result.parts
        if (
            len(parts) == 1
            and type(part := parts[0]) is Text
            and part.cache is None
            and result.cache is None
            and not (part.extra or result.extra or result.is_error)
        ):
            text = part.text  # nearly every result: nothing to report, so no path is needed
        else:
            path = self._path(message, index, i)
            if result.cache is not None:
                self._drops.drop(f"{path}.cache_control", NO_CACHE)
            if result.extra:
                self._drops.extras(path, result.extra, NAME)
            text = self._result_text(result, path, media)
        call_id = original_id(result.call_id)
        if self._waiting.pop(call_id, None) is None:
            path = self._path(message, index, i)
            self._drops.downgrade(path, "the result of a call that is not in the conversation is told as text")
            left.append({"type": "text", "text": f"{without_call(result.call_id)}\n{text}"})
            return
        self.out.append({"role": "tool", "tool_call_id": call_id, "content": text})
        if self._late and not self._waiting:
            self._settle()

    def _result_text(self, result: ToolResult, path: str, media: list[dict[str, Any]]) -> str:
        parts = result.parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            part = parts[0]
            if part.cache is not None or part.extra:
                self._text_drops(part, inner_path(self._source, result, path, 0))
            text = part.text
        else:
            told = [self._inner(p, inner_path(self._source, result, path, i), media) for i, p in enumerate(parts)]
            text = "\n".join([t for t in told if t])
        if not result.is_error:
            return text
        self._drops.emulate(f"{path}.is_error", "the text says that the tool failed")
        return told_as_failed(text)

    def _inner(self, part: Part, path: str, media: list[dict[str, Any]]) -> str:
        """The text of one part of a result; media go to `media`, for the user message that follows."""
        if isinstance(part, Image | Audio | Document):
            if part.source.kind == "file_id":
                self._drops.downgrade(path, "a file id of another vendor is told as text")
                return msgspec.json.encode(part).decode()
            media.append(self._content(part, path))
            self._drops.downgrade(path, "tool results hold text only; the media follow in a user message")
            return f"[{type(part).__name__.lower()}: see the next user message]"
        return self._as_text(part, path)

    # Pairing

    def _say(self, value: dict[str, Any]) -> None:
        """A message that may not part calls from their results."""
        self._close_turn()
        (self._late if self._waiting else self.out).append(value)

    def _close_turn(self) -> None:
        turn = self._turn
        if turn is None:
            return
        self._turn = None
        if self._more:
            turn["content"] += "".join(self._more)
            self._more.clear()
        if self._thoughts:
            field = "reasoning" if not self._want else "reasoning_content"
            turn[field] = "\n\n".join([text for _, text in self._thoughts])
            self._thoughts.clear()
        elif self._want and "tool_calls" in turn:
            turn["reasoning_content"] = " "  # servers that insist on it take blank but not empty reasoning
        self.out.append(turn)
        self._asking = turn

    def _settle(self) -> None:
        """The results are in: what had to wait may come; what the assistant said last goes on as its turn."""
        if self._late:
            if self._late[-1]["role"] == "assistant":
                self._turn = self._late.pop()
                self._turn_of = -1
            self.out += self._late
            self._late = []

    # Content

    def _text_drops(self, part: Text, path: str) -> None:
        if part.cache is not None:
            self._drops.drop(f"{path}.cache_control", NO_CACHE)
        if part.annotations:
            self._drops.drop(f"{path}.annotations", "citations are not sent back in Chat Completions")
        if part.extra:
            self._drops.extras(path, part.extra, NAME)

    def _as_text(self, part: Part, path: str) -> str:
        """A part where only text may stand."""
        match part:
            case Text():
                if part.cache is not None or part.extra or part.annotations:
                    self._text_drops(part, path)
                return part.text
            case Refusal():
                return part.text
            case Opaque():
                return self._opaque(part, path)
            case Reasoning():
                self._drops.drop(path, "thinking is not replayed in another format")
                return ""
            case _:
                self._drops.downgrade(path, "only text may stand here; it is told as JSON")
                return msgspec.json.encode(part).decode()

    def _opaque(self, part: Opaque, path: str) -> str:
        if part.type in UNTRANSLATABLE:
            raise ClientError(
                f"{path}: {part.type} items are known to Responses servers only",
                param=path,
                code="unsupported_capability",
            )
        if part.type in CONTROL:
            return ""
        if part.type == "item_reference":
            raise ClientError(
                f"{path}: an item by reference is known only to the server that keeps it; send the item itself",
                param=path,
                code="unsupported_server_state",
            )
        if part.type in _UNREADABLE:
            self._drops.drop(path, "only its issuer can read it")
            return ""
        self._drops.downgrade(path, f"{part.type} is told as text")
        return part.visible or msgspec.json.encode(part.value).decode()

    def _content(self, part: Part, path: str) -> dict[str, Any]:
        """A part of a user message."""
        match part:
            case Image():
                self._media_drops(path, part.cache, part.extra)
                if part.source.kind == "file_id":
                    raise _unsendable(path, "an image by file id", "its data or URL")
                image: dict[str, Any] = {"url": url_of(part.source)}
                if part.detail is not None:
                    image["detail"] = part.detail
                return {"type": "image_url", "image_url": image}
            case Audio():
                self._media_drops(path, part.cache, part.extra)
                if part.source.kind != "base64":
                    raise _unsendable(path, "audio by reference", "its data")
                form = audio_format(part.source.media_type or "audio/wav")
                return {"type": "input_audio", "input_audio": {"data": part.source.data, "format": form}}
            case Document():
                return self._document(part, path)
            case _:
                return {"type": "text", "text": self._as_text(part, path)}

    def _document(self, part: Document, path: str) -> dict[str, Any]:
        self._media_drops(path, part.cache, part.extra)
        for field, option in (("context", part.context), ("citations", part.citations)):
            if option is not None:
                self._drops.drop(f"{path}.{field}", f"{NAME} has no such field")
        source = part.source
        if source.kind == "url" and not source.data.startswith("data:"):
            raise _unsendable(path, "a file by URL", "its data")
        if source.kind == "file_id":
            if source.origin == "anthropic_messages":
                raise _unsendable(path, "a file id of another vendor", "its data")
            attached = {"file_id": source.data}
        else:
            attached = {"file_data": url_of(source)}
        if part.name is not None:
            attached["filename"] = part.name
        return {"type": "file", "file": attached}

    def _media_drops(self, path: str, cache: dict[str, Any] | None, extra: Extra) -> None:
        if cache is not None:
            self._drops.drop(f"{path}.cache_control", NO_CACHE)
        if extra:
            self._drops.extras(path, extra, NAME)


def _unsendable(path: str, what: str, instead: str) -> ClientError:
    return ClientError(f"{path}: {NAME} cannot carry {what}; send {instead}", param=path, code="unsupported_capability")


def _compact(blocks: list[dict[str, Any]]) -> Any:
    """One text alone goes as a plain string, which every server takes."""
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks
