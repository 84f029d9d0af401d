"""A neutral request -> the body of a Responses request."""

from typing import Any

import msgspec

from turnout.conversation import Effort, Lazy, OutputFormat, Settings, Text
from turnout.errors import ClientError
from turnout.wire.codec import Request, Written
from turnout.wire.drops import Drops
from turnout.wire.items import attribution
from turnout.wire.responses.content import FORMAT
from turnout.wire.responses.tools import Tools, carried, write_choice, write_tools
from turnout.wire.responses.writing import US, write_items

_SHARED_WITH_CHAT = frozenset({"prompt_cache_retention", "prompt_cache_options", "safety_identifier", "user"})
_LEAST_TOKENS = 16  # the API refuses less


def write_request(request: Request) -> Written:
    """See `Codec.write_request`."""
    drops = Drops()
    conversation, settings = request.conversation, request.settings
    native = conversation.format == FORMAT
    body: dict[str, Any] = {"model": settings.model}
    instructions = _instructions(request, native, drops)
    if instructions or (native and len(conversation.system)):
        body["instructions"] = instructions
    items = write_items(conversation, settings, drops)
    if items or settings.previous_response_id is None:
        body["input"] = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    inside, written = _tools(request, native, drops)
    _choice(body, request, written, inside or native, drops)
    _settings(body, settings, native, drops, request.format)
    return Written(msgspec.json.encode(body), tuple(drops.found))


def _tools(request: Request, native: bool, drops: Drops) -> tuple[bool, Any]:
    """Whether input items carry tools, and the `tools` array."""
    conversation = request.conversation
    offered = conversation.tools
    if native and isinstance(offered, Tools) and isinstance(conversation.messages, Lazy):
        return True, offered.raw
    inside = carried(conversation)
    tools = [t for t in offered if t not in inside]
    written = write_tools(tools, native, drops)
    if tools and not written and not inside and any(t.style == "server" for t in tools):
        raise ClientError(
            f"tools[0]: {tools[0].name} runs on another provider's servers, and this request offers no other tool; "
            f"route it to a target of that provider",
            code="unsupported_capability",
            param="tools[0]",
        )
    return bool(inside), written


def _choice(body: dict[str, Any], request: Request, tools: Any, allowed: bool, drops: Drops) -> None:
    """Tools, and what goes only with tools."""
    settings = request.settings
    if tools:
        body["tools"] = tools
    if not tools and not allowed:
        return  # a choice among no tools is refused
    if settings.tool_choice is not None:
        choice = write_choice(settings.tool_choice, request.conversation, drops)
        if choice is not None:
            body["tool_choice"] = choice
    if settings.parallel is not None:
        body["parallel_tool_calls"] = settings.parallel


def _instructions(request: Request, native: bool, drops: Drops) -> str:
    texts = []
    for i, part in enumerate(request.conversation.system):
        if not isinstance(part, Text):
            drops.drop(f"system[{i}]", f"{US} takes only text as instructions")
            continue
        if part.cache is not None:
            drops.drop(f"system[{i}].cache_control", f"{US} caches prompts by itself")
        if part.extra and not native:
            drops.extras(f"system[{i}]", part.extra, US)
        if not native and attribution(part.text):
            drops.drop(f"system[{i}]", "a line that changes with every request would spoil the prefix cache")
        elif part.text:
            texts.append(part.text)
    return "\n\n".join(texts)


def _settings(body: dict[str, Any], settings: Settings, native: bool, drops: Drops, source: str) -> None:
    reasoning = _reasoning(settings.effort, native, drops)
    if reasoning or (native and settings.effort is not None):
        body["reasoning"] = reasoning
    text = _text(settings, native, drops)
    if text or (native and "text" in settings.extra):
        body["text"] = text
    _limits(body, settings, native, drops, source)
    _identity(body, settings, drops, source)
    if settings.service_tier is not None:
        body["service_tier"] = "default" if settings.service_tier == "standard_only" else settings.service_tier
    if settings.store is not None or not native:
        body["store"] = bool(settings.store)  # nothing is stored unless asked for; the API's own default is to store
    for field in ("prompt_cache_key", "previous_response_id", "background"):
        value = getattr(settings, field)
        if value is not None:
            body[field] = value
    if settings.conversation_id is not None:
        more = settings.extra.get("conversation")
        whole = {"id": settings.conversation_id, **more} if isinstance(more, dict) else None
        body["conversation"] = whole if native and whole is not None else settings.conversation_id
    _extra(body, settings, native, drops, source)
    if settings.stream:
        body["stream"] = True


def _limits(body: dict[str, Any], settings: Settings, native: bool, drops: Drops, source: str) -> None:
    limit = settings.max_tokens
    if limit is not None:
        if limit < _LEAST_TOKENS and not native:
            drops.downgrade("max_tokens", f"{US} takes no limit under {_LEAST_TOKENS} tokens")
            limit = _LEAST_TOKENS
        body["max_output_tokens"] = limit
    for field in ("temperature", "top_p"):
        value = getattr(settings, field)
        if value is not None:
            body[field] = value
    if settings.top_k is not None:
        drops.drop("top_k", f"{US} has no such field")
    if settings.stop:
        drops.drop("stop_sequences" if source == "anthropic_messages" else "stop", f"{US} has no stop sequences")
    if settings.n is not None:
        note = drops.drop if settings.n > 1 else drops.emulate
        note("n", f"{US} gives one answer per request")


def _identity(body: dict[str, Any], settings: Settings, drops: Drops, source: str) -> None:
    if settings.metadata is not None:
        if source == FORMAT or all(isinstance(v, str) for v in settings.metadata.values()):
            body["metadata"] = settings.metadata
        else:
            drops.drop("metadata", f"{US} takes only text values")
    if settings.user is not None:
        if source == "anthropic_messages":
            drops.drop("metadata.user_id", "an end user's id stays with the provider it was given to")
        else:
            body[settings.user_field or "user"] = settings.user


_BUDGETS = ((4_096, "low"), (16_384, "medium"))


def _reasoning(effort: Effort | None, native: bool, drops: Drops) -> dict[str, Any]:
    if effort is None:
        return {}
    level = effort.level
    if level is None and effort.budget_tokens is not None:
        level = next((name for most, name in _BUDGETS if effort.budget_tokens < most), "high")
        drops.downgrade("thinking.budget_tokens", f"given as reasoning effort {level}")
    elif effort.budget_tokens is not None:
        drops.drop("thinking.budget_tokens", f"{US} has no thinking budget; the named effort is used")
    if effort.mode == "disabled" or (effort.mode == "adaptive" and level is None):
        drops.drop("thinking.type", f"{US} has no such switch")
    value: dict[str, Any] = {}
    if level is not None:
        value["effort"] = level
    if effort.summary is not None:
        value["summary"] = effort.summary
    if native:
        value.update(effort.extra)
    elif effort.extra:
        drops.extras("thinking", effort.extra, US)
    return value


def _text(settings: Settings, native: bool, drops: Drops) -> dict[str, Any]:
    value: dict[str, Any] = {}
    output = settings.output
    if output is not None:
        value["format"] = _output(output, native, drops)
    if settings.verbosity is not None:
        value["verbosity"] = settings.verbosity
    if native:
        value.update(settings.extra.get("text") or {})
    return value


def _output(output: OutputFormat, native: bool, drops: Drops) -> dict[str, Any]:
    stated: dict[str, Any] = {"type": output.kind}
    if output.kind == "json_schema":
        name = output.name or (None if native else "answer")
        for field, value in (
            ("name", name),
            ("description", output.description),
            ("strict", output.strict),
            ("schema", output.schema),
        ):
            if value is not None:
                stated[field] = value
    if native:
        return {**stated, **output.extra}
    drops.extras("response_format", output.extra, US)
    return stated


def _extra(body: dict[str, Any], settings: Settings, native: bool, drops: Drops, source: str) -> None:
    if native:
        body.update((k, v) for k, v in settings.extra.items() if k not in ("text", "conversation"))
        return
    if settings.extra.get("mcp_servers"):
        raise ClientError(
            "mcp_servers: these servers are called by the provider's side, which this target is not; "
            "route the request to a target of the same format",
            code="unsupported_capability",
            param="mcp_servers",
        )
    lost = {}
    for key, value in settings.extra.items():
        if source == "openai_chat" and key in _SHARED_WITH_CHAT:
            body[key] = value
        else:
            lost[key] = value
    drops.extras("", lost, US)
