"""A Messages request -> the neutral form. One typed pass indexes the body; messages and tools decode when they are looked at."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from turnout.conversation import (
    Conversation,
    Effort,
    Extra,
    Lazy,
    Message,
    OutputFormat,
    Part,
    Settings,
    Text,
    Tool,
    ToolChoice,
)
from turnout.errors import ClientError
from turnout.wire.anthropic.read_content import read_content, refusal
from turnout.wire.anthropic.shapes import (
    ABSENT,
    EXTRA_FIELDS,
    LOOSE_REQUEST,
    REQUEST,
    KnownFields,
    LooseMessage,
    LooseTool,
    MessageShape,
    ToolShape,
)
from turnout.wire.body import fields
from turnout.wire.codec import Request

_ANY = msgspec.json.Decoder()
_TOOL = msgspec.json.Decoder(ToolShape)
_LOOSE_TOOL = msgspec.json.Decoder(LooseTool)
_MESSAGE_FIELDS = msgspec.json.Decoder(list[dict[str, Raw]])
_TOOL_FIELDS = frozenset(LooseTool.__struct_fields__)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_CHOICE_FIELDS = frozenset(("type", "name", "disable_parallel_tool_use"))
_MODES = frozenset(("enabled", "disabled", "adaptive"))


def read_request(body: bytes) -> Request:
    """The request in `body`. Raises ClientError with the path of the field at fault."""
    try:
        top: KnownFields = REQUEST.decode(body)
    except msgspec.ValidationError:
        return _read_carefully(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ClientError("the body is nested too deeply", code="invalid_json") from None
    return _request(body, top, Lazy(top.messages, _message, _CONTENT_OF), {})


def _read_carefully(body: bytes) -> Request:
    """A body with fields the typed pass does not know, or with wrong ones."""
    raws = fields(body)
    try:
        top = LOOSE_REQUEST.decode(body)
    except msgspec.ValidationError as error:
        raise refusal(error) from None
    unknown = {k: _ANY.decode(v) for k, v in raws.items() if k not in KnownFields.__struct_fields__}
    extras = [
        {k: _ANY.decode(v) for k, v in one.items() if k not in ("role", "content")}
        for one in _MESSAGE_FIELDS.decode(raws["messages"])
    ]
    pairs = list(zip(top.messages, extras, strict=True))
    return _request(body, top, Lazy(pairs, _message_with_extra, _content_of_pair), unknown)


def _message(raw: MessageShape | LooseMessage, index: int) -> Message:
    parts, flat = read_content(raw.content, "messages[%d].content", index)
    return Message(raw.role, parts, flat=flat)


_CONTENT_OF = attrgetter("content")


def _content_of_pair(raw: tuple[LooseMessage, Extra]) -> Raw:
    return raw[0].content


def _message_with_extra(raw: tuple[LooseMessage, Extra], index: int) -> Message:
    message = _message(raw[0], index)
    return msgspec.structs.replace(message, extra=raw[1]) if raw[1] else message


def _request(body: bytes, top: KnownFields, messages: Sequence[Message], unknown: Extra) -> Request:
    system, system_flat = _system(top.system)
    conversation = Conversation(
        messages,
        system,
        Lazy(top.tools, _tool) if top.tools else (),
        tuple([message.role for message in top.messages]),
        "anthropic_messages",
        system_flat,
    )
    return Request("anthropic_messages", conversation, _settings(top, unknown), body)


def _system(raw: Raw) -> tuple[tuple[Part, ...], bool]:
    if raw is ABSENT or raw == _NULL:
        return (), True
    parts, flat = read_content(raw, "system")
    if flat and isinstance(parts[0], Text) and not parts[0].text:
        return (), True
    return parts, flat


_NULL = Raw(b"null")


def _tool(raw: Raw, index: int) -> Tool:
    tool: LooseTool
    extra: Extra = {}
    try:
        tool = _TOOL.decode(raw)
    except msgspec.ValidationError:
        try:
            tool = _LOOSE_TOOL.decode(raw)
        except msgspec.ValidationError as error:
            raise refusal(error, f"tools[{index}]") from None
        extra = {k: v for k, v in _ANY.decode(raw).items() if k not in _TOOL_FIELDS}
    if tool.type is not None and tool.type != "custom":
        return Tool(tool.name, style="server", raw=_ANY.decode(raw), format="anthropic_messages")
    return Tool(tool.name, tool.description, tool.input_schema, tool.strict, cache=tool.cache_control, extra=extra)


def _settings(top: KnownFields, unknown: Extra) -> Settings:
    extra = {k: value for k in EXTRA_FIELDS if (value := getattr(top, k)) is not UNSET}
    choice, parallel = _choice(top.tool_choice) if top.tool_choice is not None else (None, None)
    user, user_field, metadata = _metadata(top.metadata) if top.metadata is not None else (None, None, None)
    output, effort = None, None
    if top.output_config is not None or top.thinking is not None or top.output_format is not None:
        output, effort = _output(top, extra)
    if top.stop_sequences == []:
        extra["stop_sequences"] = []  # an empty list has no neutral form
    if unknown:
        extra.update(unknown)
    return Settings(
        model=top.model,
        stream=bool(top.stream),
        max_tokens=top.max_tokens,
        temperature=top.temperature,
        top_p=top.top_p,
        top_k=top.top_k,
        stop=tuple(top.stop_sequences) if top.stop_sequences else (),
        tool_choice=choice,
        parallel=parallel,
        output=output,
        effort=effort,
        metadata=metadata,
        user=user,
        user_field=user_field,
        service_tier=top.service_tier,
        stream_usage=True,
        extra=extra,
    )


def _choice(value: dict[str, Any]) -> tuple[ToolChoice | None, bool | None]:
    kind, name, single = value.get("type"), value.get("name"), value.get("disable_parallel_tool_use")
    parallel = None if single is None else not single
    if not isinstance(kind, str):
        raise ClientError("tool_choice.type: this field is required", param="tool_choice.type")
    if kind == "tool" and isinstance(name, str):
        choice = ToolChoice("named", name)
    elif kind in _CHOICES:
        choice = ToolChoice(_CHOICES[kind])  # type: ignore[arg-type]  # the table holds modes only
    else:
        return ToolChoice("raw", raw=value), None
    if not value.keys() <= _CHOICE_FIELDS:
        return ToolChoice("raw", raw=value), None
    return choice, parallel


def _metadata(value: dict[str, Any]) -> tuple[str | None, str | None, dict[str, Any] | None]:
    rest = dict(value)
    user = rest.pop("user_id", None)
    if isinstance(user, str):
        return user, "metadata.user_id", rest or None
    return None, None, rest


def _output(top: KnownFields, extra: Extra) -> tuple[OutputFormat | None, Effort | None]:
    """Structured output and reasoning; what has no neutral name stays in `extra` under the native key."""
    config = dict(top.output_config or {})
    level = config.pop("effort", None)
    if level is not None and not isinstance(level, str):
        raise ClientError("output_config.effort: expected a string", param="output_config.effort")
    native = config.pop("format", None)
    field = "output_config.format"
    if native is None and top.output_format is not None:
        native, field = top.output_format, "output_format"
    output = _format(native, field) if native is not None else None
    if config:
        extra["output_config"] = config
    thinking = dict(top.thinking or {})
    mode = thinking.pop("type", None)
    budget = thinking.pop("budget_tokens", None)
    if top.thinking is not None and not (isinstance(mode, str) and mode in _MODES):
        extra["thinking"] = top.thinking
        return output, Effort(level) if level else None
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise ClientError("thinking.budget_tokens: expected an integer", param="thinking.budget_tokens")
    if level is None and top.thinking is None:
        return output, None
    return output, Effort(level, mode, budget, extra=thinking)


def _format(value: Any, field: str) -> OutputFormat:
    schema = value.get("schema") if isinstance(value, dict) else None
    if not isinstance(value, dict) or value.get("type") != "json_schema" or not isinstance(schema, dict):
        raise ClientError(f"{field}: expected {{'type': 'json_schema', 'schema': {{...}}}}", param=field)
    rest = {k: v for k, v in value.items() if k not in ("type", "schema")}
    return OutputFormat("json_schema", schema=schema, extra=rest)
