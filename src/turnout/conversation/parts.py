"""What a message is made of: a closed union of parts, the same for every provider.

`extra` holds fields of the source that no other format knows, decoded, in order. A writer of the same format emits them
again; a writer of another format lists them as dropped. `cache` is a prompt-cache breakpoint as Anthropic spells it
(`{"type": "ephemeral", "ttl": "1h"}`), kept verbatim.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Format: TypeAlias = Literal["openai_chat", "openai_responses", "anthropic_messages"]
"""The wire formats, as named in configuration."""

FORMATS: tuple[Format, ...] = ("openai_chat", "openai_responses", "anthropic_messages")

Extra: TypeAlias = dict[str, Any]


class Media(Struct, frozen=True, gc=False):
    """Where bytes are: `base64` (data holds them), `url`, `file_id` (data is a vendor's id), `text` (data is plain text).

    `media_type` is a MIME type where known. `origin`: the format whose vendor issued a `file_id`.
    """

    kind: Literal["base64", "url", "file_id", "text"]
    data: str
    media_type: str | None = None
    origin: Format | None = None


class Text(Struct, frozen=True, gc=False, tag="text", tag_field="kind"):
    """Text. `annotations`: citations in neutral form (`Citation`) or other annotations in the source's form."""

    text: str
    annotations: tuple["Citation", ...] = ()
    cache: dict[str, Any] | None = None
    extra: Extra = {}


class Citation(Struct, frozen=True, gc=False):
    """A URL citation. `start`, `end`: offsets in characters of the text part they belong to. `extra`: native remainder."""

    url: str
    title: str | None = None
    start: int | None = None
    end: int | None = None
    extra: Extra = {}


class Reasoning(Struct, frozen=True, gc=False, tag="reasoning", tag_field="kind"):
    """A model's reasoning.

    `text`: readable reasoning or its summary parts joined by blank lines (`summary` keeps the parts apart where the source
    does). `signature` and `encrypted` are opaque and valid only for the model that made them; `origin` names the format
    they came in. `redacted`: the whole part is opaque (`encrypted` holds it). `id`: the provider's item id. `details`:
    `reasoning_details` of Chat-compatible servers, verbatim.
    """

    text: str = ""
    summary: tuple[str, ...] = ()
    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False
    id: str | None = None
    origin: Format | None = None
    details: list[Any] | None = None
    extra: Extra = {}


class Image(Struct, frozen=True, gc=False, tag="image", tag_field="kind"):
    source: Media
    detail: str | None = None
    cache: dict[str, Any] | None = None
    extra: Extra = {}


class Audio(Struct, frozen=True, gc=False, tag="audio", tag_field="kind"):
    """Audio. `source.media_type` is `audio/wav`, `audio/mp3`, ..."""

    source: Media
    cache: dict[str, Any] | None = None
    extra: Extra = {}


class Document(Struct, frozen=True, gc=False, tag="document", tag_field="kind"):
    """A file given to the model. `name`: file name or title. `context`, `citations`: Anthropic's document options."""

    source: Media
    name: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None
    cache: dict[str, Any] | None = None
    extra: Extra = {}


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", tag_field="kind"):
    """A model's call of a client's tool.

    `arguments`: for style `function` the JSON text exactly as the model wrote it ("" means no arguments were given and is
    written as `{}`); for style `custom` the raw input text. `name` never includes the `namespace`. `item_id`: the id of
    the item in Responses, distinct from the call's `id`.
    """

    id: str
    name: str
    arguments: str = ""
    style: Literal["function", "custom"] = "function"
    namespace: str | None = None
    item_id: str | None = None
    cache: dict[str, Any] | None = None
    extra: Extra = {}


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", tag_field="kind"):
    """What a tool returned. `is_error` is None where the format has no such flag. `text_only`: the source gave one string
    rather than a list of parts. `name`: the tool's name where the source repeats it."""

    call_id: str
    parts: tuple["Part", ...] = ()
    is_error: bool | None = None
    style: Literal["function", "custom"] = "function"
    name: str | None = None
    text_only: bool = True
    item_id: str | None = None
    cache: dict[str, Any] | None = None
    extra: Extra = {}

    @property
    def text(self) -> str:
        """The readable text of the result: its text parts joined by newlines."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Text):
            return self.parts[0].text
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))


class Refusal(Struct, frozen=True, gc=False, tag="refusal", tag_field="kind"):
    """The model declined, in its own words."""

    text: str
    extra: Extra = {}


class Opaque(Struct, frozen=True, gc=False, tag="opaque", tag_field="kind"):
    """A block or item that only its own format knows (server tools, built-in calls, compaction items, future types).

    `value`: the decoded JSON, key order kept. `type`: its type field. `visible`: text a person could read in its place.
    """

    format: Format
    type: str
    value: Any
    visible: str = ""


Part: TypeAlias = Text | Reasoning | Image | Audio | Document | ToolCall | ToolResult | Refusal | Opaque

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]


class Message(Struct, frozen=True, gc=False):
    """One source unit: a Chat message, a Messages message, or a Responses item.

    Writers merge or split as their format asks: consecutive assistant units of Responses become one Chat message; tool
    results that a Messages user turn carries beside text stay in that user message here. `flat`: the source gave a bare
    string as content. `id`, `status`: item id and status of Responses. `name`: participant name of Chat.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    status: str | None = None
    flat: bool = False
    extra: Extra = {}

    @property
    def text(self) -> str:
        """The text parts joined by newlines; reasoning, calls and results are left out."""
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))


class Tool(Struct, frozen=True, gc=False):
    """A tool the client offers.

    `style`: `function` (JSON schema in `parameters`), `custom` (free text input, grammar in `grammar`), or `server` (run by
    the provider; `raw` is its native definition and `format` the format that knows it). `extra`: native remainder.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    style: Literal["function", "custom", "server"] = "function"
    namespace: str | None = None
    namespace_description: str | None = None
    grammar: Any = None
    raw: Any = None
    format: Format | None = None
    cache: dict[str, Any] | None = None
    extra: Extra = {}
