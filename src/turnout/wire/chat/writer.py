"""Writing a Chat stream from deltas. The constant bytes around each fragment are made once per stream."""

import time
import uuid
from typing import Any

import msgspec

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Delta,
    End,
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
)
from turnout.errors import ClientError, TurnoutError
from turnout.wire.chat.content import FORMAT
from turnout.wire.chat.fault import envelope
from turnout.wire.chat.reply import (
    emulated,
    finish_reason,
    legacy_client,
    unshowable,
    write_annotations,
    write_reply_call,
)
from turnout.wire.chat.usage import write_usage
from turnout.wire.codec import Request
from turnout.wire.items import TIERS, UNTRANSLATABLE
from turnout.wire.sse import COMMENT_PING

_ENCODE = msgspec.json.Encoder().encode
_DONE = b"data: [DONE]\n\n"
_OPEN = b'"choices":[{"index":0,"delta":{'
_CLOSE = b'},"finish_reason":null}]}\n\n'
_FIELDS: dict[type[Part], bytes] = {
    Text: b'"content":',
    Reasoning: b'"reasoning_content":',
    Refusal: b'"refusal":',
}


_INPUT = '{"input":"'


def _inside(text: str) -> str:
    """`text` as it stands within a JSON string."""
    return _ENCODE(text)[1:-1].decode()


class ChatWriter:
    """See `turnout.wire.codec.Writer`. A growth of a part is the prefix of the stream, the field, the text, the end."""

    def __init__(self, asked: Request, model: str) -> None:
        self._usage = asked.settings.stream_usage and asked.format == FORMAT
        self._asked = asked
        self._legacy = legacy_client(asked)
        self._model = model
        self._stem = b""  # `data: {...,` up to the choices
        self._over = False
        self.refusal: ClientError | None = None
        self._before = b""  # bytes before the text of the open part
        self._after = _CLOSE
        self._grown = False
        self._call = -1
        self._own = False  # whether the reply was read from this format
        self._custom = False  # whether the open call is one of a custom tool
        self._emulated = False  # whether the open call's raw input goes out as the argument `input`
        self._characters = 0  # of text parts already written
        self._length = 0  # of the open text part

    def feed(self, delta: Delta) -> bytes:
        if self._over:
            return b""
        kind = type(delta)
        if kind is TextDelta or kind is ArgumentsDelta:
            text: str = delta.text  # type: ignore[union-attr]  # both have it
            if self._emulated and kind is ArgumentsDelta:
                text = _inside(text)
            self._grown = True
            self._length += len(text)
            return self._before + _ENCODE(text) + self._after
        if not self._stem and kind is not Fault:
            return self._begin(delta if isinstance(delta, Begin) else Begin()) + (
                b"" if kind is Begin else self._event(delta)
            )
        return self._event(delta)

    def ping(self) -> bytes:
        """A comment."""
        return b"" if self._over else COMMENT_PING

    def _event(self, delta: Delta) -> bytes:
        match delta:
            case PartBegin():
                return self._part(delta.part)
            case PartEnd():
                return self._part_end(delta.part)
            case End():
                return self._end(delta)
            case Fault():
                return self._fault(delta.error)
            case _:
                return b""

    def _begin(self, begin: Begin) -> bytes:
        self._own = begin.format in (FORMAT, None)
        head = {
            "id": begin.id or f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion.chunk",
            "created": begin.created if begin.created is not None else int(time.time()),
            "model": self._model,
        }
        self._stem = b"data: " + _ENCODE(head)[:-1] + b","
        return self._chunk(b'"role":"assistant","content":""')

    def _chunk(self, delta: bytes) -> bytes:
        return self._stem + _OPEN + delta + _CLOSE

    def _part(self, part: Part) -> bytes:
        self._grown = False
        self._length = 0
        if isinstance(part, ToolCall):
            return self._call_begin(part)
        if isinstance(part, Text | Reasoning | Refusal):
            self._before = self._stem + _OPEN + _FIELDS[type(part)]
            self._after = _CLOSE
            if part.text:
                self._grown = True
                self._length = len(part.text)
                return self._before + _ENCODE(part.text) + _CLOSE
            return b""
        if isinstance(part, Opaque) and part.type in UNTRANSLATABLE:
            self.refusal = unshowable(part.type)
            return self._fault(self.refusal)
        return b""

    def _call_begin(self, call: ToolCall) -> bytes:
        self._call += 1
        self._grown = bool(call.arguments)
        known = emulated(call, self._asked)
        self._custom = known.style == "custom"
        self._emulated = known is not call
        value = write_reply_call(known, self._own)
        kind = known.style
        inner = value[kind]
        field = "input" if kind == "custom" else "arguments"
        inner[field] = _INPUT + _inside(call.arguments) if self._emulated else call.arguments
        if self._legacy:
            self._before = self._stem + _OPEN + b'"function_call":{"' + field.encode() + b'":'
            self._after = b"}" + _CLOSE
            return self._chunk(b'"function_call":' + _ENCODE(inner))
        index = b'"tool_calls":[{"index":' + str(self._call).encode() + b","
        self._before = self._stem + _OPEN + index + b'"' + kind.encode() + b'":{"' + field.encode() + b'":'
        self._after = b"}}]" + _CLOSE
        return self._chunk(index + _ENCODE(value)[1:] + b"]")

    def _part_end(self, part: Part | None) -> bytes:
        """What the end of a part adds: arguments of a call that had none, annotations, details, text never streamed."""
        out = b""
        if self._after is not _CLOSE:  # a call
            if self._emulated:
                late = _inside(part.arguments) if isinstance(part, ToolCall) and not self._grown else ""
                out = self._before + _ENCODE(late + '"}') + self._after
                self._emulated = False
            elif not self._grown:
                given = part.arguments if isinstance(part, ToolCall) else ""
                if given or not self._custom:
                    out = self._before + _ENCODE(given or "{}") + self._after
            self._after = _CLOSE
            return out
        if isinstance(part, Text | Reasoning | Refusal) and not self._grown and part.text:
            out = self._before + _ENCODE(part.text) + _CLOSE
            self._length = len(part.text)
        if isinstance(part, Text):
            if part.annotations:
                written = write_annotations(part.annotations, self._characters, own=False)
                if written:
                    out += self._chunk(b'"annotations":' + _ENCODE(written))
            self._characters += self._length
        elif isinstance(part, Reasoning) and part.details is not None and part.origin == FORMAT:
            out += self._chunk(b'"reasoning_details":' + _ENCODE(part.details))
        return out

    def _end(self, end: End) -> bytes:
        self._over = True
        finish: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": finish_reason(end.stop, self._asked)}
        if end.stop_sequence is not None:
            finish["stop_reason"] = end.stop_sequence
        if "logprobs" in end.extra:
            finish["logprobs"] = end.extra["logprobs"]
        tier = (
            b',"service_tier":' + _ENCODE(end.extra["service_tier"]) if end.extra.get("service_tier") in TIERS else b""
        )
        out = self._stem + b'"choices":[' + _ENCODE(finish) + b"]" + tier + b"}\n\n"
        if self._usage and end.usage is not None:
            out += self._stem + b'"choices":[],"usage":' + _ENCODE(write_usage(end.usage)) + b"}\n\n"
        return out + _DONE

    def _fault(self, error: TurnoutError | ClientError) -> bytes:
        self._over = True
        return b"data: " + _ENCODE(envelope(error)) + b"\n\n"
