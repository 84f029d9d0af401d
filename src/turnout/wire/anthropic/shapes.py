"""The JSON shapes of Messages, as far as Turnout looks into them: everything else stays raw or goes to `extra`.

The structs refuse unknown fields on purpose: the usual body is read in one typed pass, and only one with something new in it
takes the careful path that collects the new fields (see `read_request` and `read_content`).
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct

Count = Annotated[int, Meta(ge=0)]
Cache = dict[str, Any] | None

ABSENT = Raw(b"")
"""Stands for a raw field that is not there: a union of Raw with anything else is not raw to the decoder."""


class MessageShape(Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["user", "assistant", "system"]
    content: Raw


class KnownFields(Struct):
    """The top-level fields of a request. Those after `service_tier` have no neutral name."""

    model: str
    messages: list[MessageShape]
    max_tokens: Count | None = None
    system: Raw = ABSENT
    tools: list[Raw] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    cache_control: Any = UNSET
    container: Any = UNSET
    mcp_servers: Any = UNSET
    context_management: Any = UNSET
    inference_geo: Any = UNSET
    speed: Any = UNSET
    diagnostics: Any = UNSET
    compaction: Any = UNSET
    fallbacks: Any = UNSET
    thread: Any = UNSET


EXTRA_FIELDS = KnownFields.__struct_fields__[KnownFields.__struct_fields__.index("service_tier") + 1 :]


class RequestShape(KnownFields, forbid_unknown_fields=True):
    pass


class LooseMessage(Struct, gc=False):
    role: Literal["user", "assistant", "system"]
    content: Raw


class LooseRequest(KnownFields):
    messages: list[LooseMessage]  # type: ignore[assignment]  # the same fields, unknown ones allowed


class TextBlock(Struct, tag="text", tag_field="type", forbid_unknown_fields=True, gc=False):
    text: str
    cache_control: Cache = None
    citations: list[dict[str, Any]] | None = None


class ImageBlock(Struct, tag="image", tag_field="type", forbid_unknown_fields=True, gc=False):
    source: dict[str, Any]
    cache_control: Cache = None


class DocumentBlock(Struct, tag="document", tag_field="type", forbid_unknown_fields=True, gc=False):
    source: dict[str, Any]
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None
    cache_control: Cache = None


class ThinkingBlock(Struct, tag="thinking", tag_field="type", forbid_unknown_fields=True, gc=False):
    thinking: str
    signature: str | None = None


class RedactedBlock(Struct, tag="redacted_thinking", tag_field="type", forbid_unknown_fields=True, gc=False):
    data: str


class ToolUseBlock(Struct, tag="tool_use", tag_field="type", forbid_unknown_fields=True, gc=False):
    id: str
    name: str
    input: Raw
    cache_control: Cache = None
    caller: Any = UNSET


Nested = TextBlock | ImageBlock | DocumentBlock


class ToolResultBlock(Struct, tag="tool_result", tag_field="type", forbid_unknown_fields=True, gc=False):
    tool_use_id: str
    content: str | list[Nested] | None = None
    is_error: bool | None = None
    cache_control: Cache = None


Block = TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | RedactedBlock | ToolUseBlock | ToolResultBlock

BLOCKS: dict[str, type[Struct]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "document": DocumentBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
}


class LooseTool(Struct, gc=False):
    """A tool the client runs itself (`type` absent or `custom`)."""

    name: str = ""
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None
    cache_control: Cache = None
    type: str | None = None


class ToolShape(LooseTool, forbid_unknown_fields=True, gc=False):
    pass


CONTENT = msgspec.json.Decoder(str | list[Block])
REQUEST = msgspec.json.Decoder(RequestShape)
LOOSE_REQUEST = msgspec.json.Decoder(LooseRequest)
