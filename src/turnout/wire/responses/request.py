"""Reading a Responses request: one typed pass that indexes, messages decoded on access."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from turnout.conversation import (
    Conversation,
    Effort,
    Extra,
    Lazy,
    Message,
    OutputFormat,
    Role,
    Settings,
    Text,
    ToolChoice,
)
from turnout.errors import ClientError
from turnout.wire.body import fields
from turnout.wire.codec import Request
from turnout.wire.responses.content import FORMAT, decoded, fault, rest, text_or_none
from turnout.wire.responses.reading import ROLES, kind_of, read_item, role_of
from turnout.wire.responses.tools import CARRIERS, Tools, read_choice


class _Body(Struct):
    model: str = ""
    instructions: str | None = None
    input: str | list[Raw] | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tool_choice: Raw | UnsetType = UNSET
    parallel_tool_calls: bool | None = None
    reasoning: dict[str, Any] | None = None
    store: bool | None = None
    stream: bool | None = None
    include: Any = UNSET
    prompt_cache_key: str | None = None
    text: dict[str, Any] | None = None
    client_metadata: Any = UNSET
    max_output_tokens: Annotated[int, Meta(ge=0)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    background: bool | None = None
    truncation: Any = UNSET
    top_logprobs: Any = UNSET
    max_tool_calls: Any = UNSET
    prompt: Any = UNSET
    prompt_cache_retention: Any = UNSET
    prompt_cache_options: Any = UNSET
    stream_options: Any = UNSET
    context_management: Any = UNSET
    moderation: Any = UNSET


class _Known(_Body, forbid_unknown_fields=True):
    pass


class _Shape(Struct):
    type: str | None = None
    role: str | None = None
    id: Any = UNSET


_FAST = msgspec.json.Decoder(_Known)
_FULL = msgspec.json.Decoder(_Body)
_SHAPE = msgspec.json.Decoder(_Shape)
_EXTRAS = tuple(f.name for f in msgspec.structs.fields(_Body) if f.type is Any)
_NAMES = frozenset(f.name for f in msgspec.structs.fields(_Body))
_AT = re.compile(r" - at `\$\.?(.*)`$")
_STRING = msgspec.json.Decoder(str)


def read_request(body: bytes) -> Request:
    """See `Codec.read_request`."""
    unknown: Extra = {}
    try:
        read: _Body = _FAST.decode(body)
    except msgspec.ValidationError:
        read = _decode(body)
        unknown = {k: decoded(v, k) for k, v in fields(body).items() if k not in _NAMES}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = _decode(body)
    return Request(FORMAT, _conversation(read), _settings(read, unknown), body)


def _decode(body: bytes) -> _Body:
    try:
        return _FULL.decode(body)
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ClientError("the body is nested too deeply", code="invalid_json") from None


def invalid(error: msgspec.ValidationError, prefix: str = "") -> ClientError:
    """The client's error for a value of the wrong type, with its path in the body."""
    said = str(error)
    found = _AT.search(said)
    path = ".".join(p for p in (prefix, found.group(1) if found else "") if p)
    message = said[: found.start()] if found else said
    if not path:
        return ClientError("the body must be a JSON object", code="invalid_json")
    return fault(path, message[:1].lower() + message[1:])


def _conversation(read: _Body) -> Conversation:
    messages: Lazy[Message] | tuple[Message, ...]
    carriers: list[tuple[int, Raw]] = []
    roles: list[Role] = []
    if isinstance(read.input, str):
        messages = Lazy((read.input,), _whole)
        roles.append("user")
    elif read.input is UNSET:
        if read.previous_response_id is None and read.conversation is None and read.prompt is UNSET:
            raise ClientError("input is missing", code="missing_required_parameter", param="input")
        messages = ()
    else:
        for index, raw in enumerate(read.input):
            roles.append(_index(raw, index, carriers))
        messages = Lazy(read.input, read_item)
    raw_tools = read.tools if read.tools is not UNSET and bytes(read.tools) != b"null" else None
    return Conversation(
        messages,
        (Text(read.instructions),) if read.instructions is not None else (),
        Tools(raw_tools, carriers) if raw_tools is not None or carriers else (),
        roles,
        FORMAT,
    )


def _whole(text: str, index: int) -> Message:
    """The one message of an input that is a text."""
    return Message("user", (Text(text),), flat=True)


_COMMON: dict[tuple[str | None, str | None], Role] = {
    **{(kind, role): role for kind in ("message", None) for role in ROLES.values()},
    ("reasoning", None): "assistant",
    ("function_call", None): "assistant",
    ("custom_tool_call", None): "assistant",
    ("function_call_output", None): "tool",
    ("custom_tool_call_output", None): "tool",
}
"""Roles of the items that requests are made of, known without a closer look."""


def _index(raw: Raw, index: int, carriers: list[tuple[int, Raw]]) -> Role:
    try:
        shape = _SHAPE.decode(raw)
    except msgspec.ValidationError as error:
        raise invalid(error, f"input[{index}]") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise fault(f"input[{index}]", f"not valid JSON: {error}") from None
    known = _COMMON.get((shape.type, shape.role))
    if known is not None:
        return known
    path = f"input[{index}]"
    kind = kind_of(shape.type, shape.role, shape.id is not UNSET, path)
    if kind in CARRIERS:
        carriers.append((index, raw))
    return role_of(kind, shape.role, path)


def _settings(read: _Body, unknown: Extra) -> Settings:
    extra: Extra = {}
    for name in _EXTRAS:
        value = getattr(read, name)
        if value is not UNSET:
            extra[name] = value
    output, verbosity = (None, None) if read.text is None else _text(read.text, extra)
    user, user_field = read.user, "user" if read.user is not None else None
    if read.safety_identifier is not None:
        if user is not None:
            extra["user"] = user
        user, user_field = read.safety_identifier, "safety_identifier"
    extra.update(unknown)
    return Settings(
        model=read.model,
        stream=read.stream is True,
        max_tokens=read.max_output_tokens,
        temperature=read.temperature,
        top_p=read.top_p,
        tool_choice=_choice(read.tool_choice),
        parallel=read.parallel_tool_calls,
        output=output,
        effort=None if read.reasoning is None else _effort(read.reasoning),
        verbosity=verbosity,
        metadata=read.metadata,
        user=user,
        user_field=user_field,
        service_tier=read.service_tier,
        store=read.store,
        prompt_cache_key=read.prompt_cache_key,
        previous_response_id=read.previous_response_id,
        conversation_id=_conversation_id(read.conversation, extra),
        background=read.background,
        stream_usage=True,
        extra=extra,
    )


_AUTO = ToolChoice("auto")


def _choice(raw: Raw | UnsetType) -> ToolChoice | None:
    if raw is UNSET:
        return None
    text = bytes(raw)
    return _AUTO if text == b'"auto"' else read_choice(text)


_CONVERSATION = frozenset({"id"})


def _conversation_id(value: str | dict[str, Any] | None, extra: Extra) -> str | None:
    if not isinstance(value, dict):
        return value
    found = value.get("id")
    if not isinstance(found, str):
        raise fault("conversation.id", "expected a string")
    extra["conversation"] = rest(value, _CONVERSATION)
    return found


_EFFORT = frozenset({"effort", "summary"})


def _effort(value: dict[str, Any]) -> Effort:
    level, summary = value.get("effort"), value.get("summary")
    for name, found in (("effort", level), ("summary", summary)):
        if found is not None and not isinstance(found, str):
            raise fault(f"reasoning.{name}", "expected a string")
    # An explicit null is kept beside what other formats do not know: it need not mean the same as absence.
    return Effort(level=level, summary=summary, extra=_beside(value, _EFFORT))


def _beside(value: dict[str, Any], known: frozenset[str]) -> Extra:
    return {k: v for k, v in value.items() if v is None or k not in known}


_TEXT = frozenset({"format", "verbosity"})
_KINDS: dict[str, Literal["text", "json_object", "json_schema"]] = {
    "text": "text",
    "json_object": "json_object",
    "json_schema": "json_schema",
}
_OUTPUT = frozenset({"type", "name", "description", "schema", "strict"})


def _text(value: dict[str, Any], extra: Extra) -> tuple[OutputFormat | None, str | None]:
    more = _beside(value, _TEXT)
    if more or not value:
        extra["text"] = more
    verbosity = value.get("verbosity")
    if verbosity is not None and not isinstance(verbosity, str):
        raise fault("text.verbosity", "expected a string")
    stated = value.get("format")
    if stated is None:
        return None, verbosity
    if not isinstance(stated, dict):
        raise fault("text.format", "expected an object")
    kind = _KINDS.get(str(stated.get("type")))
    if kind is None:
        raise fault("text.format.type", f"expected text, json_object or json_schema, got {stated.get('type')!r}")
    if kind == "json_schema" and not isinstance(stated.get("schema"), dict):
        raise fault("text.format.schema", "expected an object")
    return (
        OutputFormat(
            kind,
            text_or_none(stated.get("name")),
            text_or_none(stated.get("description")),
            stated.get("schema") if isinstance(stated.get("schema"), dict) else None,
            stated.get("strict") if isinstance(stated.get("strict"), bool) else None,
            _beside(stated, _OUTPUT),
        ),
        verbosity,
    )
