"""Reading a Chat request: one typed pass that indexes the body, and settings by name."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from turnout.conversation import Conversation, Effort, Lazy, OutputFormat, Role, Settings, Tool
from turnout.errors import ClientError
from turnout.wire.body import fields
from turnout.wire.chat.content import FORMAT
from turnout.wire.chat.fields import from_validation, object_at, rest, text_or_none, wrong
from turnout.wire.chat.messages import ROLES, message_reader, read_role
from turnout.wire.chat.tools import function_reader, read_choice, read_legacy_choice, tool_reader
from turnout.wire.codec import Request

_Count = Annotated[int, Meta(ge=0)]

# Nearly every client writes the role first: then no message has to be decoded to index it.
_ROLE_FIRST = re.compile(rb'\{\s*"role"\s*:\s*"(\w+)"')
_BY_BYTES: dict[bytes, Role] = {name.encode(): role for name, role in ROLES.items()}


class _Named(Struct):
    """The fields that have a place of their own in the neutral form."""

    messages: list[Raw]
    model: str | None = None
    stream: bool | None = None
    tools: list[Raw] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    stream_options: dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    prompt_cache_key: str | None = None
    functions: list[Raw] | None = None
    function_call: Any = None


class _Common(_Named, forbid_unknown_fields=True):
    """As `_Named`, and the fields seen often that go to `extra`. A body with any other field is read more slowly."""

    seed: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    presence_penalty: Any = None
    frequency_penalty: Any = None
    prediction: Any = None
    modalities: Any = None
    audio: Any = None
    web_search_options: Any = None
    prompt_cache_retention: Any = None
    reasoning: Any = None
    thinking: Any = None
    provider: Any = None
    models: Any = None
    transforms: Any = None
    min_p: Any = None
    repetition_penalty: Any = None
    chat_template_kwargs: Any = None


class _RoleOnly(Struct):
    role: Any = None


_NAMES = frozenset(_Named.__struct_fields__)
_OFTEN = tuple(f for f in _Common.__struct_fields__ if f not in _NAMES)
_QUICK = msgspec.json.Decoder(_Common)
_SLOW = msgspec.json.Decoder(_Named)
_ROLE = msgspec.json.Decoder(_RoleOnly)


def read_request(body: bytes) -> Request:
    """A Chat request, indexed: messages and tools decode when they are looked at."""
    named, extra = _decoded(body)
    raws = named.messages
    roles = _roles(raws)
    conversation = Conversation(
        messages=Lazy(raws, message_reader(roles)), tools=_tools(named), roles=roles, format=FORMAT
    )
    return Request(FORMAT, conversation, _settings(named, extra), body)


def _decoded(body: bytes) -> tuple[_Named, dict[str, Any]]:
    try:
        common = _QUICK.decode(body)
        return common, {f: v for f in _OFTEN if (v := getattr(common, f)) is not None}
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ClientError("the body is nested too deeply", code="invalid_json") from None
    members = fields(body)
    try:
        named = _SLOW.decode(body)
        extra = {k: msgspec.json.decode(v) for k, v in members.items() if k not in _NAMES}
    except msgspec.ValidationError as error:
        raise from_validation(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the body is not valid JSON: {error}", code="invalid_json") from None
    return named, {k: v for k, v in extra.items() if v is not None}


def _roles(raws: list[Raw]) -> tuple[Role, ...]:
    match, known = _ROLE_FIRST.match, _BY_BYTES
    roles: list[Role] = []
    for raw in raws:
        found = match(raw)
        role = known.get(found[1]) if found is not None else None
        roles.append(role if role is not None else _role(raw, len(roles)))
    return tuple(roles)


def _role(raw: Raw, index: int) -> Role:
    path = f"messages[{index}]"
    try:
        value = _ROLE.decode(raw).role
    except msgspec.ValidationError:
        raise wrong(path, "an object", msgspec.json.decode(raw)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"{path}: not valid JSON: {error}", param=path, code="invalid_json") from None
    return read_role(value, f"{path}.role")


def _tools(named: _Named) -> Sequence[Tool]:
    tools, functions = named.tools, named.functions
    if functions is None:
        return () if tools is None else Lazy(tools, tool_reader)
    legacy = [function_reader(raw, i) for i, raw in enumerate(functions)]
    return (*[tool_reader(raw, i) for i, raw in enumerate(tools or ())], *legacy)


def _settings(named: _Named, extra: dict[str, Any]) -> Settings:
    limit = named.max_completion_tokens
    if limit is None:
        limit = named.max_tokens
    elif named.max_tokens not in (None, limit):
        extra["max_tokens"] = named.max_tokens
    stop = named.stop
    user, user_field = named.user, "user"
    if named.safety_identifier is not None:
        if user is not None:
            extra["user"] = user
        user, user_field = named.safety_identifier, "safety_identifier"
    choice = read_choice(named.tool_choice)
    if named.function_call is not None:
        choice = choice or read_legacy_choice(named.function_call)
    return Settings(
        model=named.model or "",
        stream=named.stream or False,
        max_tokens=limit,
        temperature=named.temperature,
        top_p=named.top_p,
        top_k=named.top_k,
        stop=() if stop is None else (stop,) if isinstance(stop, str) else tuple(stop),
        tool_choice=choice,
        parallel=named.parallel_tool_calls,
        output=None if named.response_format is None else read_output(named.response_format),
        effort=_effort(named.reasoning_effort, extra),
        verbosity=named.verbosity,
        metadata=named.metadata,
        user=user,
        user_field=None if user is None else user_field,
        service_tier=named.service_tier,
        store=named.store,
        prompt_cache_key=named.prompt_cache_key,
        stream_usage=named.stream_options is not None and _stream_usage(named.stream_options, extra),
        n=named.n,
        extra=extra,
    )


def _stream_usage(options: dict[str, Any], extra: dict[str, Any]) -> bool:
    if len(options) > 1 or "include_usage" not in options:
        more = rest(options, frozenset(("include_usage",)))
        if more:
            extra["stream_options"] = more
    return options.get("include_usage") is True


def _effort(level: str | None, extra: dict[str, Any]) -> Effort | None:
    """The effort asked for, in OpenAI's field or in the `reasoning` object of OpenRouter, which stays in `extra`."""
    router = extra.get("reasoning")
    if not isinstance(router, dict):
        return None if level is None else Effort(level)
    named, budget = router.get("effort"), router.get("max_tokens")
    if not isinstance(named, str):
        named = None
    elif level is not None:
        extra["reasoning"] = {**router, "effort": level}
    if not isinstance(budget, int) or isinstance(budget, bool):
        budget = None
    if level is None and named is None and budget is None:
        return None
    return Effort(level or named, budget_tokens=budget)


def read_output(value: dict[str, Any]) -> OutputFormat | None:
    """`response_format`; a kind nobody knows raises ClientError, an empty wrapper means nothing."""
    kind = value.get("type")
    if not value:
        return None
    if kind in ("text", "json_object"):
        return OutputFormat(kind, extra=rest(value, frozenset(("type",))))
    if kind != "json_schema":
        raise ClientError(
            f"response_format.type: expected text, json_object or json_schema, got {str(kind)[:40]!r}",
            param="response_format.type",
        )
    path = "response_format.json_schema"
    inner = object_at(value.get("json_schema"), path)
    schema, strict = inner.get("schema"), inner.get("strict")
    if schema is not None and not isinstance(schema, dict):
        raise wrong(f"{path}.schema", "an object", schema)
    if strict is not None and not isinstance(strict, bool):
        raise wrong(f"{path}.strict", "a boolean", strict)
    extra = rest(value, frozenset(("type", "json_schema")))
    more = rest(inner, frozenset(("name", "description", "schema", "strict")))
    if more:
        extra["json_schema"] = more
    name, description = (text_or_none(inner.get(k), f"{path}.{k}") for k in ("name", "description"))
    return OutputFormat("json_schema", name, description, schema, strict, extra)
