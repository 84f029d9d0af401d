"""Deltas -> the bytes of a streamed response, event by event as the Responses API sends them."""

import time
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
from turnout.errors import ClientError
from turnout.wire.codec import Request
from turnout.wire.responses.content import FORMAT
from turnout.wire.responses.errors import stream_code
from turnout.wire.responses.usage import write_usage
from turnout.wire.responses.write_reply import (
    Ids,
    call_prefix,
    content_part,
    echo,
    echo_instructions,
    echo_tools,
    ending,
    message_item,
    other_item,
    own_call,
    phase_of,
)
from turnout.wire.responses.writing import reasoning_item
from turnout.wire.sse import COMMENT_PING

_encode = msgspec.json.encode
_PENDING = (
    b'"status":"in_progress","completed_at":null,"error":null,"incomplete_details":null,"instructions":null,'
    b'"output":[],"tools":[],"usage":null}'
)


_NO_IDS = Ids("")  # until the reply begins


class ResponsesWriter:
    """See `Writer`. `response_id`: the id that the client was told, once the reply has begun."""

    __slots__ = (
        "_asked",
        "_begun",
        "_content",
        "_created",
        "_ended",
        "_grow_head",
        "_grow_tail",
        "_growing",
        "_head",
        "_ids",
        "_item_id",
        "_items",
        "_model",
        "_open",
        "_own",
        "_phase",
        "_pieces",
        "_refused",
        "_seq",
        "_spoken",
        "refusal",
        "response_id",
    )

    def __init__(self, asked: Request, model: str) -> None:
        self._asked = asked
        self._model = model
        self._seq = 0
        self._begun = self._ended = self._refused = self._spoken = False
        self._items: list[bytes] = []  # finished output items, as JSON
        self._content: list[dict[str, Any]] | None = None  # finished parts of the open message; None when none is open
        self._phase: Any = None
        self._open: Part | None = None  # the part that grows
        self._pieces: list[str] = []
        self._item_id = ""
        self._grow_head = self._grow_tail = self._growing = b""
        self._head = b""
        self._own = False
        self._created = 0
        self._ids = _NO_IDS
        self.refusal: ClientError | None = None
        self.response_id = ""

    def feed(self, delta: Delta) -> bytes:
        if type(delta) is TextDelta or type(delta) is ArgumentsDelta:
            return self._growth(delta.text)
        if self._ended:
            return b""
        match delta:
            case Begin():
                return b"" if self._begun else self._begin(delta)
            case PartBegin():
                return self._ensure() + self._close_part(None) + self._part_begin(self._known(delta.part))
            case PartEnd():
                return self._close_part(self._known(delta.part) if delta.part is not None else None)
            case End():
                return self._ensure() + self._close_part(None) + self._end(delta)
            case Fault():
                return self._ensure() + self._fault(delta)
        return b""

    def ping(self) -> bytes:
        return COMMENT_PING

    def resume(self, begin: Begin, sequence: int) -> None:
        """Go on where another has begun this response and has sent the events before number `sequence`."""
        self._begin(begin)
        if begin.id:
            self._head = self._head.replace(_encode(self.response_id), _encode(begin.id), 1)
            self.response_id = begin.id
        self._seq = sequence

    def _known(self, part: Part) -> Part:
        """The part without what only another format would know of it."""
        if self._own or isinstance(part, Opaque) or not part.extra:
            return part
        return msgspec.structs.replace(part, extra={})

    def _event(self, kind: bytes, rest: bytes) -> bytes:
        n = self._seq
        self._seq = n + 1
        return b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b}\n\n' % (kind, kind, n, rest)

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def _ensure(self) -> bytes:
        return b"" if self._begun else self._begin(Begin())

    def _begin(self, begin: Begin) -> bytes:
        self._begun = True
        self._own = begin.format in ("openai_responses", None)
        self._ids = Ids(begin.id)
        self.response_id = self._ids.response
        self._created = begin.created if begin.created is not None else int(time.time())
        self._head = b'"response":{"id":%b,"object":"response","created_at":%d,"model":%b,%b,' % (
            _encode(self.response_id),
            self._created,
            _encode(self._model or begin.model),
            _encode(echo(self._asked))[1:-1],
        )
        pending = self._head + _PENDING
        return self._event(b"response.created", pending) + self._event(b"response.in_progress", pending)

    def _end(self, end: End) -> bytes:
        status, incomplete = ending(end.stop, None, self._refused)
        closing = self._close_message(status)
        self._ended = True
        return closing + self._event(b"response." + status.encode(), self._whole(status, incomplete, None, end))

    def _fault(self, fault: Fault) -> bytes:
        self._ended = True
        error = {"code": stream_code(fault.error), "message": fault.error.message}
        return self._event(b"response.failed", self._whole("failed", None, error, None))

    def _whole(self, status: str, incomplete: Any, error: Any, end: End | None) -> bytes:
        return self._head + (
            b'"status":"%b","completed_at":%b,"error":%b,"incomplete_details":%b,"instructions":%b,"output":[%b],'
            b'"tools":%b,"usage":%b}'
            % (
                status.encode(),
                b"%d" % max(self._created, int(time.time())) if status == "completed" else b"null",
                _encode(error),
                _encode(incomplete),
                _encode(echo_instructions(self._asked)),
                b",".join(self._items),
                _encode(echo_tools(self._asked)),
                _encode(write_usage(end.usage, False) if end is not None else None),
            )
        )

    # -- items -------------------------------------------------------------------------------------------------------

    def _item_event(self, kind: bytes, item: bytes) -> bytes:
        return self._event(kind, b'"output_index":%d,"item":%b' % (len(self._items), item))

    def _item_done(self, item: dict[str, Any]) -> bytes:
        value = _encode(item)
        done = self._item_event(b"response.output_item.done", value)
        self._items.append(value)
        return done

    def _place(self, **more: int) -> bytes:
        """The members that say where an event belongs."""
        place = b'"item_id":%b,"output_index":%d' % (_encode(self._item_id), len(self._items))
        for name, value in more.items():
            place += b',"%b":%d' % (name.encode(), value)
        return place

    def _part_begin(self, part: Part) -> bytes:
        self._open = part
        self._pieces = []
        self._spoken = False
        match part:
            case Text() | Refusal():
                began = self._content_begin(part)
                return began + self._growth(part.text) if part.text else began
            case ToolCall():
                began = self._close_message() + self._call_begin(part)
                return began + self._growth(part.arguments) if part.arguments else began
            case Reasoning():
                # Nothing is said of it until there is text or a payload: an empty one is left out.
                return self._close_message() + (self._growth(part.text) if part.text else b"")
        return self._close_message()

    def _content_begin(self, part: Text | Refusal) -> bytes:
        out = b""
        phase = phase_of(part)
        if self._content is not None and phase != self._phase:
            out = self._close_message()
        if self._content is None:
            self._content, self._phase = [], phase
            self._item_id = self._ids.item("msg", len(self._items))
            out += self._item_event(
                b"response.output_item.added", _encode(message_item(self._item_id, [], phase, "in_progress"))
            )
        place = self._place(content_index=len(self._content))
        if isinstance(part, Refusal):
            self._refused = True
            empty, self._growing = b'{"type":"refusal","refusal":""}', b"response.refusal.delta"
            self._grow_tail = b',"sequence_number":%d}\n\n'
        else:
            empty = b'{"type":"output_text","annotations":[],"logprobs":[],"text":""}'
            self._growing = b"response.output_text.delta"
            self._grow_tail = b',"logprobs":[],"sequence_number":%d}\n\n'
        self._grow_on(place)
        return out + self._event(b"response.content_part.added", place + b',"part":' + empty)

    def _grow_on(self, place: bytes) -> None:
        self._spoken = True
        self._grow_head = b'event: %b\ndata: {"type":"%b",%b,"delta":' % (self._growing, self._growing, place)

    def _call_begin(self, call: ToolCall) -> bytes:
        self._item_id = self._ids.item(call_prefix(call), len(self._items), call.item_id)
        custom = call.style == "custom"
        begun = msgspec.structs.replace(own_call(call), arguments="", item_id=self._item_id)
        item = other_item(begun, self._ids, len(self._items)) or {}
        item["status"] = "in_progress"
        item["input" if custom else "arguments"] = ""
        added = self._item_event(b"response.output_item.added", _encode(item))
        self._growing = (
            b"response.custom_tool_call_input.delta" if custom else b"response.function_call_arguments.delta"
        )
        self._grow_tail = b',"sequence_number":%d}\n\n'
        self._grow_on(self._place())
        return added

    def _growth(self, text: str) -> bytes:
        if not text or self._ended:
            return b""
        self._pieces.append(text)
        before = b"" if self._spoken else self._speak()
        n = self._seq
        self._seq = n + 1
        return before + self._grow_head + _encode(text) + self._grow_tail % n

    def _speak(self) -> bytes:
        """Announce a reasoning item, whose text begins now."""
        part = self._open
        if not isinstance(part, Reasoning):
            self._grow_head, self._growing = b"", b""
            return b""
        out = self._reasoning_added(part)
        place = self._place(summary_index=0)
        self._growing = b"response.reasoning_summary_text.delta"
        self._grow_tail = b',"sequence_number":%d}\n\n'
        self._grow_on(place)
        return out + self._event(
            b"response.reasoning_summary_part.added", place + b',"part":{"type":"summary_text","text":""}'
        )

    def _reasoning_added(self, part: Reasoning) -> bytes:
        given = part.id if part.origin == FORMAT else None
        self._item_id = self._ids.item("rs", len(self._items), given)
        return self._item_event(
            b"response.output_item.added", b'{"id":%b,"type":"reasoning","summary":[]}' % _encode(self._item_id)
        )

    # -- endings -----------------------------------------------------------------------------------------------------

    def _close_part(self, final: Part | None) -> bytes:
        part = self._open
        if part is None:
            return b""
        out = b""
        if final is None:
            final = part
        missing = b"" if self._pieces else self._growth(_text_in(final))
        text = "".join(self._pieces)
        match final:
            case Text() | Refusal():
                out = self._content_end(msgspec.structs.replace(final, text=text), text)
            case ToolCall():
                out = self._call_end(final, text)
            case Reasoning():
                out = self._reasoning_end(final, text)
            case Opaque():
                item = other_item(final, self._ids, len(self._items))
                if item is not None:
                    out = self._item_event(b"response.output_item.added", _encode(item)) + self._item_done(item)
        self._open = None
        return missing + out

    def _content_end(self, final: Text | Refusal, text: str) -> bytes:
        content = self._content
        if content is None:
            return b""
        place = self._place(content_index=len(content))
        value = content_part(final)
        out = b""
        if isinstance(final, Refusal):
            out = self._event(b"response.refusal.done", place + b',"refusal":' + _encode(text))
        else:
            for i, annotation in enumerate(value["annotations"]):
                out += self._event(
                    b"response.output_text.annotation.added",
                    place + b',"annotation_index":%d,"annotation":%b' % (i, _encode(annotation)),
                )
            out += self._event(
                b"response.output_text.done",
                place + b',"text":%b,"logprobs":%b' % (_encode(text), _encode(value["logprobs"])),
            )
        out += self._event(b"response.content_part.done", place + b',"part":' + _encode(value))
        content.append(value)
        return out

    def _close_message(self, status: str = "completed") -> bytes:
        content, self._content = self._content, None
        if content is None:
            return b""
        item_id = self._ids.item("msg", len(self._items))
        return self._item_done(message_item(item_id, content, self._phase, status))

    def _call_end(self, final: ToolCall, text: str) -> bytes:
        custom = final.style == "custom"
        out = b"" if text or custom else self._growth("{}")
        whole = msgspec.structs.replace(
            own_call(final), arguments=text or ("" if custom else "{}"), item_id=self._item_id
        )
        if custom:
            out += self._event(
                b"response.custom_tool_call_input.done", self._place() + b',"input":' + _encode(whole.arguments)
            )
        else:
            out += self._event(
                b"response.function_call_arguments.done",
                self._place() + b',"name":%b,"arguments":%b' % (_encode(whole.name), _encode(whole.arguments)),
            )
        return out + self._item_done(other_item(whole, self._ids, len(self._items)) or {})

    def _reasoning_end(self, final: Reasoning, text: str) -> bytes:
        out = b""
        if text:
            place = self._place(summary_index=0)
            out = self._event(b"response.reasoning_summary_text.done", place + b',"text":' + _encode(text))
            part = b',"part":{"type":"summary_text","text":%b}' % _encode(text)
            out += self._event(b"response.reasoning_summary_part.done", place + part)
            if not final.text:
                final = msgspec.structs.replace(final, text=text)
        else:
            payload = final.encrypted or final.signature or final.details
            if not payload and not (final.origin == FORMAT and final.id is not None):
                return b""
            out = self._reasoning_added(final)
        item = reasoning_item(final, self._item_id, {})
        return out + self._item_done(item)


def _text_in(part: Part) -> str:
    if isinstance(part, ToolCall):
        return part.arguments
    return part.text if isinstance(part, Text | Refusal | Reasoning) else ""
