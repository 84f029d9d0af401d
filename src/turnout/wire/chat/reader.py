"""Reading a Chat stream into deltas.

A Chat stream names no parts: text, reasoning, refusals and calls come as fields of one message, and servers differ in how
they cut calls. The reader keeps one part open at a time. A call is announced once its name is whole; a later call is held
back until the earlier one's arguments are complete JSON or the stream ends; text after a call waits for the calls.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Citation,
    Delta,
    End,
    Fault,
    Part,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    unfold,
)
from turnout.errors import UpstreamError
from turnout.wire.chat.calls import Call, Calls
from turnout.wire.chat.chunks import DECODER, CallDelta, ChoiceDelta, Chunk, MessageDelta, usage_of
from turnout.wire.chat.content import FORMAT
from turnout.wire.chat.fields import rest
from turnout.wire.chat.messages import details_text, merged
from turnout.wire.chat.reply import (
    call_id,
    is_error,
    malformed,
    read_annotations,
    read_reply,
    restorer,
    stopped_by,
)
from turnout.wire.chat.usage import BROKEN, read_stop, read_usage
from turnout.wire.codec import Request
from turnout.wire.faults import upstream_error
from turnout.wire.sse import SSEParser

_TOP = frozenset(("id", "object", "created", "model", "choices", "usage", "obfuscation", "x_groq"))
_DONE = b"[DONE]"


class ChatReader:
    """See `turnout.wire.codec.Reader`. `lenient`: a stream that ends in [DONE] without any finish reason is complete."""

    def __init__(self, asked: Request | None = None, *, lenient: bool = False) -> None:
        self._asked = asked
        self._lenient = lenient
        self._parser = SSEParser()
        self._begun = self._over = False
        self._early: dict[str, Any] = {}
        self._body: list[bytes] | None = None  # a server that ignored `stream` and sends one JSON object
        self._first = True
        self._id = ""
        self._kind: type[Part] | None = None  # of the open part
        self._index = -1
        self._pieces: list[str] = []
        self._details: list[Any] | None = None
        self._field = "reasoning_content"
        self._citations: tuple[Citation, ...] = ()
        self._calls = Calls()
        self._open_call: Call | None = None
        self._next_call = 0  # the first call not yet announced
        self._late: list[str] = []  # text that came after calls
        self._restore: Any = None
        self._finish: str | None = None
        self._word: Any = None
        self._usage: Usage | None = None
        self._logprobs: dict[str, Any] | None = None

    def feed(self, chunk: bytes) -> list[Delta]:
        if self._over:
            return []
        if self._first and chunk:
            self._first = False
            if chunk.lstrip()[:1] == b"{":
                self._body = []
        if self._body is not None:
            self._body.append(chunk)
            return []
        out: list[Delta] = []
        self._read(self._parser.feed(chunk), out)
        return out

    def close(self) -> list[Delta]:
        if self._over:
            return []
        if self._body is not None:
            return self._buffered(b"".join(self._body))
        out: list[Delta] = []
        self._read(self._parser.rest(), out)
        if not self._over:
            if self._finish is not None:
                self._end(out)
            else:
                self._fault(malformed("the stream ended before the answer was finished"), out)
        return out

    def _buffered(self, body: bytes) -> list[Delta]:
        self._over = True
        try:
            return list(unfold(read_reply(body, self._asked)))
        except UpstreamError as error:
            return [Fault(error.with_traceback(None))]

    def _read(self, events: Iterable[tuple[bytes, bytes]], out: list[Delta]) -> None:
        try:
            self._take(events, out)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The typed decoder skips what it does not know: only a second look saw that it is no JSON.
            self._fault(malformed("an event of the stream is not valid JSON"), out)

    def _take(self, events: Iterable[tuple[bytes, bytes]], out: list[Delta]) -> None:
        for _, data in events:
            if data == _DONE or not data:
                if data and not self._over:
                    self._terminator(out)
                continue
            try:
                chunk = DECODER.decode(data)
            except msgspec.ValidationError as error:
                self._odd(data, error, out)
                if self._over:
                    return
                continue
            except (msgspec.DecodeError, UnicodeDecodeError):
                if data.strip() == _DONE:
                    self._terminator(out)
                else:
                    self._fault(malformed("an event of the stream is not valid JSON"), out)
                return
            choices = chunk.choices
            if choices and len(choices) == 1 and self._begun:
                choice = choices[0]
                delta = choice.delta
                # The common case first: a little more of the open text.
                if (
                    delta is not None
                    and self._kind is Text
                    and choice.finish_reason is None
                    and chunk.usage is None
                    and choice.logprobs is None
                    and chunk.error is None
                    and not choice.index
                    and delta.content.__class__ is str
                    and delta.tool_calls is None
                    and delta.reasoning_content is None
                    and delta.reasoning is None
                    and delta.annotations is None
                ):
                    if delta.content:
                        self._pieces.append(delta.content)
                        out.append(TextDelta(self._index, delta.content))
                    continue
            self._chunk(chunk, data, out)
            if self._over:
                return

    # Terminals

    def _terminator(self, out: list[Delta]) -> None:
        if self._finish is None:
            # Some gateways send an empty reason; with usage, or where the operator says so, [DONE] is taken at its word.
            if not (self._begun and (self._lenient or self._usage is not None)):
                self._fault(malformed("the stream ended without a finish reason"), out)
                return
            self._finish = "stop"
        self._end(out)

    def _end(self, out: list[Delta]) -> None:
        self._over = True
        self._flush_calls(out, last=True)
        if self._late:
            self._grow(Text, "".join(self._late), out)
        self._close_part(out)
        stop, detail = read_stop(self._finish or "stop", bool(self._calls))
        word = None
        if stop == "end" and isinstance(self._word, str) and self._word:
            stop, word = stopped_by(self._word, self._asked)
        extra = {"logprobs": self._logprobs} if self._logprobs is not None else {}
        out.append(End(stop, self._usage, word, detail, extra))

    def _fault(self, error: UpstreamError, out: list[Delta]) -> None:
        self._over = True
        out.append(Fault(error))

    def _odd(self, data: bytes, error: msgspec.ValidationError, out: list[Delta]) -> None:
        """A chunk of another shape: an error that is no object, or a field of a wrong type."""
        value = msgspec.json.decode(data)
        if isinstance(value, dict) and is_error(value):
            self._fault(upstream_error(None, (), value), out)
            return
        try:
            chunk = msgspec.convert(value, Chunk, strict=False)  # numbers as text and the like
        except msgspec.ValidationError:
            self._fault(malformed(f"an event of the stream has a wrong shape ({error})"), out)
        else:
            self._chunk(chunk, data, out)

    # Chunks

    def _chunk(self, chunk: Chunk, data: bytes, out: list[Delta]) -> None:
        if chunk.error or chunk.object == "error":
            self._fault(upstream_error(None, (), msgspec.json.decode(data)), out)
            return
        usage = usage_of(chunk)
        if not chunk.choices and usage is None and chunk.choices is None:
            value = msgspec.json.decode(data)
            if is_error(value):
                self._fault(upstream_error(None, (), value), out)
                return
        if not self._begun and (chunk.id or chunk.choices or usage is not None):
            self._begin(chunk, data, out)
        elif not self._begun:
            self._early = rest(msgspec.json.decode(data), _TOP)  # Azure: what its filters say of the prompt
            return
        if usage is not None:
            self._usage = read_usage(usage) or self._usage
        for choice in chunk.choices or ():
            if choice.index:
                continue  # of several answers (`n`) the first counts
            if choice.error or choice.finish_reason in BROKEN:
                said = choice.error or {
                    "message": f"the upstream broke off ({choice.finish_reason})",
                    "code": "server_error",
                }
                self._fault(upstream_error(None, (), {"error": said}), out)
                return
            self._choice(choice, out)

    def _begin(self, chunk: Chunk, data: bytes, out: list[Delta]) -> None:
        self._begun = True
        value = msgspec.json.decode(data)
        self._id = chunk.id or ""
        created = int(chunk.created) if isinstance(chunk.created, int | float) else None
        out.append(Begin(self._id, chunk.model or "", created, None, {**self._early, **rest(value, _TOP)}, FORMAT))

    def _choice(self, choice: ChoiceDelta, out: list[Delta]) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            self._message(delta, out)
        if choice.logprobs is not None:
            self._add_logprobs(choice.logprobs)
        if choice.finish_reason:
            if self._finish is None:
                self._finish = choice.finish_reason
            if choice.stop_reason is not None:
                self._word = choice.stop_reason

    def _message(self, delta: MessageDelta, out: list[Delta]) -> None:
        if delta.reasoning_content is not None or delta.reasoning is not None or delta.reasoning_details is not None:
            self._reason(delta, out)
        content = delta.content
        if content:
            self._content(content, out)
        if delta.refusal:
            self._grow(Refusal, delta.refusal, out)
        if delta.annotations:
            self._citations += read_annotations(delta.annotations)
        if delta.tool_calls:
            for fragment in delta.tool_calls:
                self._calls.add(fragment)
            self._flush_calls(out)
        if delta.function_call is not None:
            self._calls.add(CallDelta(index=0, function=delta.function_call))
            self._flush_calls(out)

    def _content(self, content: Any, out: list[Delta]) -> None:
        if isinstance(content, str):
            self._text(content, out)
            return
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if isinstance(block.get("text"), str):
                self._text(block["text"], out)
            elif block.get("type") == "thinking":
                inner = block.get("thinking")
                texts = (
                    [p.get("text", "") for p in inner if isinstance(p, dict)] if isinstance(inner, list) else [inner]
                )
                self._grow(Reasoning, "".join(t for t in texts if isinstance(t, str)), out)

    def _text(self, text: str, out: list[Delta]) -> None:
        if self._calls:
            self._late.append(text)
        else:
            self._grow(Text, text, out)

    def _reason(self, delta: MessageDelta, out: list[Delta]) -> None:
        content, plain = delta.reasoning_content, delta.reasoning
        plain = plain if isinstance(plain, str) else None
        details = delta.reasoning_details
        text = content or plain or ""
        if not text and details and (self._kind is not Reasoning or self._field == "details"):
            text = details_text(details)
        if not text and not details:
            return
        if self._kind is not Reasoning:
            self._open(Reasoning, Reasoning(origin=FORMAT), out)
            self._field = (
                "both" if content and plain else "reasoning_content" if content else "reasoning" if plain else "details"
            )
        elif self._field == "details" and text and (content or plain):
            self._field = "reasoning_content" if content else "reasoning"
        if text:
            self._pieces.append(text)
            out.append(TextDelta(self._index, text))
        if details:
            self._details = merged(self._details or [], details)

    # Parts

    def _grow(self, kind: Any, text: str, out: list[Delta]) -> None:
        if not text:
            return
        if self._kind is not kind:
            self._open(kind, Reasoning(origin=FORMAT) if kind is Reasoning else kind(""), out)
        self._pieces.append(text)
        out.append(TextDelta(self._index, text))

    def _open(self, kind: Any, part: Part, out: list[Delta]) -> None:
        self._close_part(out)
        self._kind = kind
        self._index += 1
        out.append(PartBegin(self._index, part))

    def _close_part(self, out: list[Delta]) -> None:
        kind = self._kind
        if kind is None:
            return
        final: Part | None = None
        if kind is Text and self._citations:
            final = Text("".join(self._pieces), self._citations)
            self._citations = ()
        elif kind is Reasoning and (self._details is not None or self._field != "reasoning_content"):
            extra = {} if self._field == "reasoning_content" else {"field": self._field}
            final = Reasoning("".join(self._pieces), origin=FORMAT, details=self._details, extra=extra)
            self._details = None
        elif kind is ToolCall and self._open_call is not None and self._open_call.extra:
            final = self._finished(self._open_call)
        self._kind = None
        self._open_call = None
        self._pieces.clear()
        self._field = "reasoning_content"
        out.append(PartEnd(self._index, final))

    # Calls

    def _flush_calls(self, out: list[Delta], last: bool = False) -> None:
        """Pass on what may go: the open call's arguments, then the next calls once it is complete."""
        while True:
            call = self._open_call
            if call is None:
                if self._next_call == len(self._calls):
                    return
                call = self._calls[self._next_call]
                more = self._next_call + 1 < len(self._calls)
                if not (call.arguments or last or (more and call.whole())):
                    return
                self._announce(call, out)
            self._pass_on(call, out, last)
            if last or (self._next_call < len(self._calls) and call.whole()):
                self._finish_call(call, out)
            else:
                return

    def _announce(self, call: Call, out: list[Delta]) -> None:
        if not call.id:
            call.id = call_id(self._id, self._next_call)
        if self._restore is None:
            self._restore = restorer(self._asked)
        self._next_call += 1
        part = self._restore(ToolCall(call.id, call.name, style=call.style))  # type: ignore[arg-type]  # two styles
        self._open(ToolCall, part, out)
        self._open_call = call
        if part.style == "custom" and call.style == "function":
            call.sent = -1  # the raw input is known only once the arguments are whole

    def _pass_on(self, call: Call, out: list[Delta], last: bool) -> None:
        if call.sent < 0:
            return
        for text in call.arguments[call.sent :]:
            out.append(ArgumentsDelta(self._index, text))
        call.sent = len(call.arguments)

    def _finish_call(self, call: Call, out: list[Delta]) -> None:
        if call.sent < 0:
            text = self._finished(call).arguments
            if text:
                out.append(ArgumentsDelta(self._index, text))
        self._close_part(out)

    def _finished(self, call: Call) -> ToolCall:
        whole = ToolCall(call.id, call.name, "".join(call.arguments), call.style, extra=call.extra)  # type: ignore[arg-type]
        restored: ToolCall = self._restore(whole)
        return restored

    def _add_logprobs(self, value: Any) -> None:
        if not isinstance(value, dict):
            return
        if self._logprobs is None:
            self._logprobs = {}
        for key, entries in value.items():
            if isinstance(entries, list):
                self._logprobs.setdefault(key, []).extend(entries)
