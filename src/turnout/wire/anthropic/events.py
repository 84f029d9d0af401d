"""The events of a Messages stream, as far as Turnout looks into them."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct


class MessageHead(Struct):
    """The `message` of `message_start`."""

    id: str = ""
    model: str = ""
    usage: dict[str, Any] | None = None


class MessageStart(Struct, tag="message_start", tag_field="type"):
    message: Raw


class BlockStart(Struct, tag="content_block_start", tag_field="type"):
    index: int
    content_block: Raw


class DeltaBody(Struct):
    """The `delta` of a block: one of the named growths, or (`raw` types) a future one."""

    type: str
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: Any = UNSET


class BlockDelta(Struct, tag="content_block_delta", tag_field="type"):
    index: int
    delta: DeltaBody


class BlockStop(Struct, tag="content_block_stop", tag_field="type"):
    index: int


class MessageDelta(Struct, tag="message_delta", tag_field="type"):
    delta: dict[str, Any]
    usage: dict[str, Any] | None = None
    context_management: Any = None


class MessageStop(Struct, tag="message_stop", tag_field="type"):
    pass


class Ping(Struct, tag="ping", tag_field="type"):
    pass


class ErrorEvent(Struct, tag="error", tag_field="type"):
    error: Any = None


Event = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping | ErrorEvent

EVENT = msgspec.json.Decoder(Event)
MESSAGE_FIELDS = msgspec.json.Decoder(dict[str, Any])
ANY = msgspec.json.Decoder()
