"""Deltas -> a Messages stream. Constant pieces are bytes already; only the text of a delta is encoded."""

from typing import Any

import msgspec

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
    End,
    Extra,
    Fault,
    Opaque,
    Part,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)
from turnout.errors import ClientError, TurnoutError
from turnout.wire.anthropic.failure import error_event
from turnout.wire.anthropic.reply import (
    check_native,
    message_id,
    refusal_details,
    reply_extra,
    stop_reason,
)
from turnout.wire.anthropic.usage import write_usage
from turnout.wire.anthropic.write_content import Block, BlockWriter, native_citation
from turnout.wire.drops import Drops
from turnout.wire.names import alias
from turnout.wire.sse import COMMENT_PING

_encode = msgspec.json.encode
_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":'
_TEXT = _DELTA + b'"text_delta","text":'
_THINKING = _DELTA + b'"thinking_delta","thinking":'
_SIGNATURE = _DELTA + b'"signature_delta","signature":'
_JSON = _DELTA + b'"input_json_delta","partial_json":'
_CITATION = _DELTA + b'"citations_delta","citation":'
_BLOCK_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_CLOSE = b"}}\n\n"
_EMPTY_THINKING: Block = {"type": "thinking", "thinking": "", "signature": ""}
_STATED_AT_END = ("stop_details", "container", "context_management")


class MessagesWriter:
    """See `turnout.wire.codec.Writer`. `drops` collects what the reply loses on the way."""

    def __init__(self, model: str) -> None:
        self.drops = Drops()
        self._model = model
        self._began = False
        self._over = False
        self.refusal: ClientError | None = None
        self._usage: Usage | None = None
        self._own = False
        self._extra: Extra = {}
        self._index = -1  # of the last block written: parts that leave no block do not count
        self._prefix = b""  # of a growth of the open block; empty when the open part has no block that grows
        self._part: Part | None = None
        self._sent = 0  # characters of the open part's text that went out
        self._called = False

    def feed(self, delta: Delta) -> bytes:
        """The bytes to send now."""
        kind = type(delta)
        if kind is TextDelta:
            text: str = delta.text  # type: ignore[union-attr]  # mypy does not narrow by `type() is`
            if not self._prefix:
                return self._late(text)
            self._sent += len(text)
            return self._prefix + _encode(text) + _CLOSE
        if self._over:
            return b""
        if kind is ArgumentsDelta:
            return self._arguments(delta.text)  # type: ignore[union-attr]
        if isinstance(delta, PartBegin):
            try:
                return self._start() + self._part_begin(delta.part)
            except ClientError as error:
                self.refusal = error.with_traceback(None)
                return self._fault(error)
        if isinstance(delta, PartEnd):
            return self._part_end(delta.part)
        if isinstance(delta, Begin):
            return self._start(delta)
        if isinstance(delta, End):
            return self._end(delta)
        assert isinstance(delta, Fault)
        return self._fault(delta.error)

    def ping(self) -> bytes:
        """A `ping` event once the message has begun; before that a comment, which every client skips."""
        if self._over:
            return b""
        return _PING if self._began else COMMENT_PING

    def _start(self, begin: Begin | None = None) -> bytes:
        if self._began:
            return b""
        self._began = True
        begin = begin if begin is not None else Begin()
        self._usage, self._extra = begin.usage, begin.extra
        self._own = begin.format == "anthropic_messages" or (begin.format is None and begin.id.startswith("msg_"))
        message: dict[str, Any] = {
            "id": message_id(begin.id),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": write_usage(begin.usage, self._own),
        }
        for key, value in reply_extra(begin.extra, self._own, self.drops).items():
            if key not in _STATED_AT_END:
                message[key] = value
        return _event("message_start", {"type": "message_start", "message": message})

    def _part_begin(self, part: Part) -> bytes:
        self._part, self._prefix, self._sent = part, b"", 0
        if isinstance(part, Text | Refusal):
            return self._open({"type": "text", "text": ""}, _TEXT, part.text)
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, Reasoning) and part.text and not part.redacted:
            return self._open(_EMPTY_THINKING, _THINKING, part.text)
        if isinstance(part, Opaque) and part.format != "anthropic_messages":
            check_native(part.format, part.type)
        return b""  # reasoning opens with its first text; the rest is written whole at its end

    def _call(self, call: ToolCall) -> bytes:
        self._called = True
        name = alias(call.name, call.namespace) if call.namespace else call.name
        block: Block = {"type": "tool_use", "id": call.id, "name": name, "input": {}}
        if self._own:
            block.update(call.extra)
        out = self._open(block, _JSON, "")
        if call.style == "custom":
            out += self._prefix + _encode('{"input":"') + _CLOSE
        return out + self._arguments(call.arguments)

    def _late(self, text: str) -> bytes:
        """Text of a part whose block is not open yet."""
        if self._over or not text or not isinstance(self._part, Reasoning) or self._part.redacted:
            return b""
        return self._open(_EMPTY_THINKING, _THINKING, text)

    def _open(self, block: Block, growth: bytes, text: str) -> bytes:
        self._index += 1
        self._prefix = growth % self._index
        started = _event(
            "content_block_start", {"type": "content_block_start", "index": self._index, "content_block": block}
        )
        return started + self._grown(text)

    def _grown(self, text: str) -> bytes:
        if not text:
            return b""
        self._sent += len(text)
        return self._prefix + _encode(text) + _CLOSE

    def _arguments(self, text: str) -> bytes:
        if not self._prefix or not text:
            return b""
        self._sent += len(text)
        part = self._part
        if isinstance(part, ToolCall) and part.style == "custom":
            # The raw input becomes the inside of a JSON string, so it is escaped once more.
            text = _encode(text)[1:-1].decode()
        return self._prefix + _encode(text) + _CLOSE

    def _part_end(self, final: Part | None) -> bytes:
        part, self._part = final if final is not None else self._part, None
        begun = bool(self._prefix)
        if not begun:
            return self._whole(part) if part is not None else b""
        out = b""
        if isinstance(part, Text | Refusal):
            out = self._rest(part.text, final)
            if isinstance(part, Text) and part.annotations:
                out += self._citations(part)
        elif isinstance(part, ToolCall):
            if final is not None and not self._sent:
                self._part = part
                out = self._arguments(part.arguments)
            if part.style == "custom":
                out += self._prefix + _encode('"}') + _CLOSE
        elif isinstance(part, Reasoning):
            out = self._rest(part.text, final)
            if part.signature and part.origin == "anthropic_messages":
                out += (_SIGNATURE % self._index) + _encode(part.signature) + _CLOSE
        self._prefix, self._part = b"", None
        return out + (_BLOCK_STOP % self._index)

    def _rest(self, text: str, final: Part | None) -> bytes:
        """What the final value of a part has beyond the growths."""
        return self._grown(text[self._sent :]) if final is not None and len(text) > self._sent else b""

    def _citations(self, part: Text) -> bytes:
        native = [native_citation(c) for c in part.annotations if str(c.extra.get("type")).endswith("_location")]
        prefix = _CITATION % self._index
        return b"".join(prefix + _encode(value) + _CLOSE for value in native)

    def _whole(self, part: Part) -> bytes:
        """A part that came without growths: redacted thinking, and blocks only Messages knows."""
        if isinstance(part, Opaque):
            if part.format != "anthropic_messages":
                self.drops.drop(f"content[{self._index + 1}]", f"Messages does not know {part.type}")
                return b""
            return self._native(part.value)
        if isinstance(part, Reasoning) and not part.redacted:
            return self._whole_reasoning(part)
        block = BlockWriter(self.drops, True).block(part, f"content[{self._index + 1}]")
        return self._native(block) if block is not None else b""

    def _whole_reasoning(self, part: Reasoning) -> bytes:
        signed = part.origin == "anthropic_messages"
        if part.text or signed:
            out = self._open(_EMPTY_THINKING, _THINKING, part.text)
            if signed and part.signature:
                out += (_SIGNATURE % self._index) + _encode(part.signature) + _CLOSE
            return out + self._close()
        if part.encrypted is not None or part.details is not None:
            self.drops.drop(f"content[{self._index + 1}]", "encrypted reasoning means nothing to a Messages client")
        return b""

    def _native(self, block: Block) -> bytes:
        """A whole native block. The input of a server tool goes as a fragment, which is where clients look for it."""
        given = block.get("input")
        if not isinstance(given, dict) or not given:
            return self._open(block, _JSON, "") + self._close()
        return self._open({**block, "input": {}}, _JSON, _encode(given).decode()) + self._close()

    def _close(self) -> bytes:
        self._prefix = b""
        return _BLOCK_STOP % self._index

    def _end(self, end: End) -> bytes:
        out = self._start()
        if self._part is not None:
            out += self._part_end(None)
        self._over, self._prefix = True, b""
        delta: dict[str, Any] = {
            "stop_reason": stop_reason(end.stop, end.stop_detail, self._called),
            "stop_sequence": end.stop_sequence,
        }
        if end.stop == "refusal" and end.stop_detail is not None:
            delta["stop_details"] = refusal_details(end.stop_detail)
        extra = {**self._extra, **end.extra} if self._own else {}
        value: dict[str, Any] = {"type": "message_delta", "delta": delta}
        for key in _STATED_AT_END:
            if key in extra:
                (value if key == "context_management" else delta)[key] = extra[key]
        usage = end.usage if end.usage is not None else self._usage
        value["usage"] = write_usage(usage, self._own)
        return out + _event("message_delta", value) + _STOP

    def _fault(self, error: TurnoutError) -> bytes:
        self._over, self._prefix = True, b""
        return error_event(error)


def _event(name: str, value: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _encode(value) + b"\n\n"
