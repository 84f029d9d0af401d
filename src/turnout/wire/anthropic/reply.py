"""Buffered replies of Messages <-> the neutral form."""

import re
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct

from turnout.conversation import (
    Audio,
    Document,
    Extra,
    Format,
    Image,
    Opaque,
    Part,
    Reasoning,
    Reply,
    Stop,
    Text,
    ToolCall,
)
from turnout.errors import ClientError, UpstreamError
from turnout.wire.anthropic.read_content import read_content
from turnout.wire.anthropic.shapes import ABSENT
from turnout.wire.anthropic.usage import read_usage, write_usage
from turnout.wire.anthropic.write_content import Block, BlockWriter
from turnout.wire.codec import Counted, Request, Written
from turnout.wire.drops import Drops
from turnout.wire.faults import upstream_error
from turnout.wire.items import UNTRANSLATABLE
from turnout.wire.names import Names

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "length",
}
_REASONS: dict[Stop, str] = {
    "end": "end_turn",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "pause": "pause_turn",
}
WINDOW = "model_context_window_exceeded"
_ILLEGAL_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")


class _ReplyShape(Struct):
    type: str | None = None
    content: Raw = ABSENT
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    id: str = ""
    model: str = ""
    usage: dict[str, Any] | None = None
    role: str | None = None


_REPLY = msgspec.json.Decoder(_ReplyShape)
_RAW_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ANY = msgspec.json.Decoder()
_KNOWN = frozenset(_ReplyShape.__struct_fields__) - {"stop_details"}


def read_reply(body: bytes, asked: Request | None) -> Reply:
    """The reply in `body`. Raises UpstreamError: malformed, or the failure a 200 carries."""
    try:
        shape = _REPLY.decode(body)
        raws = _RAW_FIELDS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _not_a_reply(body) from None
    if shape.type == "error" or shape.content is ABSENT:
        raise _not_a_reply(body)
    try:
        parts, flat = read_content(shape.content, "content")
    except (ClientError, msgspec.DecodeError) as error:
        raise UpstreamError("malformed", f"the reply is not valid: {error}") from None
    if flat:
        raise UpstreamError("malformed", "the reply is not valid: content is not a list of blocks")
    if shape.stop_reason is None:
        raise UpstreamError("malformed", "the reply gives no stop_reason: it is not finished")
    extra = stated_extra({k: _ANY.decode(raw) for k, raw in raws.items() if k not in _KNOWN})
    return Reply(
        parts=restored(parts, asked),
        stop=STOPS.get(shape.stop_reason, "end"),
        usage=read_usage(shape.usage),
        id=shape.id,
        model=shape.model,
        stop_sequence=shape.stop_sequence,
        stop_detail=stop_detail(shape.stop_reason, shape.stop_details),
        format="anthropic_messages",
        frames=body,
        extra=extra,
    )


class _CountedShape(Struct):
    type: Any = None
    content: Raw = ABSENT
    stop_reason: Any = None
    id: Any = None
    usage: Any = None


_COUNTED = msgspec.json.Decoder(_CountedShape)


def count_reply(body: bytes) -> Counted:
    """Id, usage and stop of a reply that is relayed as it is; its content is not looked into."""
    try:
        shape = _COUNTED.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _not_a_reply(body) from None
    if shape.type == "error" or not bytes(shape.content).startswith(b"["):
        raise _not_a_reply(body)
    if not isinstance(shape.stop_reason, str):
        raise UpstreamError("malformed", "the reply gives no stop_reason: it is not finished")
    name = shape.id if isinstance(shape.id, str) else ""
    return Counted(name, read_usage(shape.usage), STOPS.get(shape.stop_reason, "end"))


def _not_a_reply(body: bytes) -> UpstreamError:
    try:
        value = _ANY.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UpstreamError("malformed", "the reply is not valid JSON")
    if isinstance(value, dict) and (value.get("type") == "error" or "error" in value):
        return upstream_error(None, (), value)
    return UpstreamError("malformed", "the reply is not a Messages reply: it has no content")


def stop_detail(reason: str, details: Any) -> str | None:
    """The provider's own word for why it stopped, where the neutral one says less."""
    if isinstance(details, dict) and isinstance(details.get("category"), str):
        category: str = details["category"]
        return category
    return reason if reason == WINDOW or reason not in STOPS else None


def stated_extra(native: Extra) -> Extra:
    """The native fields of a reply that say something no neutral field says."""
    details = native.get("stop_details")
    plain = isinstance(details, dict) and details == refusal_details(str(details.get("category")))
    return {k: v for k, v in native.items() if v is not None and not (plain and k == "stop_details")}


def restored(parts: tuple[Part, ...], asked: Request | None) -> tuple[Part, ...]:
    """`parts` with the client's own tool names and styles, where it asked in another format."""
    if asked is None or asked.format == "anthropic_messages":
        return parts
    if not any(type(part) is ToolCall for part in parts):
        return parts
    names = Names(asked.conversation.tools)
    return tuple(names.restore(part) if isinstance(part, ToolCall) else part for part in parts)


def stop_reason(stop: Stop, detail: str | None, calls: bool) -> str:
    """Messages' word for why a reply ended. It never contradicts whether there are calls to run."""
    if stop == "length" and detail == WINDOW:
        return WINDOW
    if stop in ("end", "tool_calls"):
        return "tool_use" if calls else "end_turn"
    return _REASONS[stop]


def message_id(reply_id: str) -> str:
    """The id of a reply as this format spells it, made from another format's where there is one."""
    if reply_id.startswith("msg_"):
        return reply_id
    return f"msg_{_ILLEGAL_IN_ID.sub('_', reply_id)}" if reply_id else f"msg_{uuid4().hex}"


def write_reply(reply: Reply, model: str) -> Written:
    """`reply` as a Messages body that states `model` as the served one."""
    drops = Drops()
    own = reply.format == "anthropic_messages"
    content = reply_blocks(reply.parts, own, drops)
    value: dict[str, Any] = {
        "id": reply.id if own and reply.id else message_id(reply.id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason(reply.stop, reply.stop_detail, bool(reply.calls)),
        "stop_sequence": reply.stop_sequence,
        "usage": write_usage(reply.usage, own),
        **reply_extra(reply.extra, own, drops),
    }
    if reply.stop == "refusal" and reply.stop_detail is not None:
        value.setdefault("stop_details", refusal_details(reply.stop_detail))
    if reply.usage is not None and not own and reply.usage.extra:
        drops.extras("usage", reply.usage.extra, "Messages")
    return Written(msgspec.json.encode(value), tuple(drops.found))


def refusal_details(category: str) -> dict[str, Any]:
    """The details object of a refusal for which only its category is known."""
    return {"type": "refusal", "category": category, "explanation": None}


def reply_extra(extra: Extra, own: bool, drops: Drops) -> Extra:
    """Native fields of a reply; those of another format are reported."""
    if own:
        return extra
    if extra:
        drops.extras("", extra, "Messages")
    return {}


def reply_blocks(parts: tuple[Part, ...], own: bool, drops: Drops) -> list[Block]:
    """The content of a reply."""
    writer = BlockWriter(drops, own)
    blocks: list[Block] = []
    for i, part in enumerate(parts):
        block = reply_block(part, f"content[{i}]", writer)
        if block is not None:
            blocks.append(block)
    return blocks


def reply_block(part: Part, path: str, writer: BlockWriter) -> Block | None:
    """One block of a reply. Unlike in a request, reasoning of any model may be shown (with no signature), and empty text
    stays. Raises ClientError for an action of a tool that the client's format cannot express."""
    if isinstance(part, Reasoning) and part.origin != "anthropic_messages":
        return _shown(part, path, writer.drops)
    if isinstance(part, Opaque) and part.format != "anthropic_messages":
        check_native(part.format, part.type)
        writer.drops.drop(path, f"Messages does not know {part.type}")  # a record of work done: not the model's words
        return None
    if isinstance(part, Image | Audio | Document):
        writer.drops.drop(path, "a Messages reply holds no media")
        return None
    if type(part) is Text and not part.text.strip():
        return {"type": "text", "text": part.text, **(part.extra if writer.own else {})}
    return writer.block(part, path)


def check_native(source: Format, kind: str) -> None:
    """Raises ClientError when an output of this type cannot be left out or put into words."""
    if kind in UNTRANSLATABLE:
        raise ClientError(
            f"the model answered with a {kind} item of {source}, which Messages cannot express",
            code="unsupported_capability",
        )


def _shown(part: Reasoning, path: str, drops: Drops) -> Block | None:
    text = part.text or "\n\n".join(part.summary)
    if part.encrypted is not None or part.details is not None or part.signature is not None:
        drops.drop(f"{path}.encrypted_content", "encrypted reasoning means nothing to a Messages client")
    if not text:
        return None
    return {"type": "thinking", "thinking": text, "signature": ""}
