"""Writing settings: the fields of a Chat request that are not the conversation."""

import re
from typing import Any

from turnout.conversation import Effort, Format, OutputFormat, Settings
from turnout.errors import ClientError
from turnout.wire.chat.content import FORMAT
from turnout.wire.drops import Drops

NAME = "Chat Completions"

_COMPLETION_LIMIT = re.compile(r"(?:.*/)?(?:o[1-9]\b|gpt-(?:[5-9]|\d\d))")
"""OpenAI's reasoning models refuse `max_tokens`; every other server knows it, and some know nothing else."""

_SHARED_WITH_RESPONSES = frozenset(
    ("prompt_cache_retention", "prompt_cache_options", "top_logprobs", "moderation", "seed")
)
_LEVELS = {"max": "high"}
_PATHS: dict[Format | None, dict[str, str]] = {
    "anthropic_messages": {
        "effort.level": "output_config.effort",
        "effort.budget": "thinking.budget_tokens",
        "effort.mode": "thinking.type",
        "output": "output_config.format",
        "user": "metadata.user_id",
    },
    "openai_responses": {
        "effort.level": "reasoning.effort",
        "effort.summary": "reasoning.summary",
        "output": "text.format",
        "user": "user",
    },
}


def write_settings(settings: Settings, source: Format | None, body: bytes, drops: Drops) -> dict[str, Any]:
    """The top-level fields; `body` is the client's own where it spoke Chat (some fields have two spellings)."""
    value: dict[str, Any] = {"model": settings.model}
    own = source == FORMAT
    paths = _PATHS.get(source, {})
    if settings.max_tokens is not None:
        spelled = (own and b'"max_completion_tokens"' in body) or _COMPLETION_LIMIT.match(settings.model)
        value["max_completion_tokens" if spelled else "max_tokens"] = settings.max_tokens
    for field, setting in (
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("parallel_tool_calls", settings.parallel),
        ("verbosity", settings.verbosity),
        ("metadata", settings.metadata),
        ("store", settings.store),
        ("prompt_cache_key", settings.prompt_cache_key),
        ("n", settings.n),
    ):
        if setting is not None:
            value[field] = setting
    if settings.stop:
        value["stop"] = list(settings.stop)
    if settings.top_k is not None:
        if own or source is None:
            value["top_k"] = settings.top_k
        else:
            drops.drop("top_k", f"{NAME} has no such field")
    if settings.output is not None:
        value["response_format"] = write_output(settings.output, own)
        if settings.output.extra and not own:
            drops.extras(paths.get("output", "output"), settings.output.extra, NAME)
    _stream(settings, own, value)
    _user(settings, source, value, drops)
    _tier(settings, source, value, drops)
    if settings.effort is not None:
        _effort(settings.effort, settings, own, paths, value, drops)
    _server_state(settings)
    _extra(settings, source, value, drops)
    return value


def _stream(settings: Settings, own: bool, value: dict[str, Any]) -> None:
    if settings.stream:
        value["stream"] = True
        if settings.stream_usage:
            value["stream_options"] = {"include_usage": True}
    elif settings.stream_usage and own:
        value["stream_options"] = {"include_usage": True}


def _user(settings: Settings, source: Format | None, value: dict[str, Any], drops: Drops) -> None:
    if settings.user is None:
        return
    if source == "anthropic_messages":
        drops.drop("metadata.user_id", "an end user's id stays with the vendor it was made for")
    else:
        value[settings.user_field or "user"] = settings.user


def _tier(settings: Settings, source: Format | None, value: dict[str, Any], drops: Drops) -> None:
    tier = settings.service_tier
    if tier is None:
        return
    if source == "anthropic_messages" and tier != "auto":
        drops.drop("service_tier", f"{NAME} has no tier {tier}")
    else:
        value["service_tier"] = tier


def _effort(
    effort: Effort, settings: Settings, own: bool, paths: dict[str, str], value: dict[str, Any], drops: Drops
) -> None:
    level = effort.level
    if own:
        router = settings.extra.get("reasoning")
        if level is not None and not (isinstance(router, dict) and "effort" in router):
            value["reasoning_effort"] = level
        return
    if level is not None:
        value["reasoning_effort"] = _LEVELS.get(level, level)
        if level in _LEVELS:
            drops.downgrade(paths.get("effort.level", "effort.level"), f"{_LEVELS[level]} is the highest level here")
    if effort.budget_tokens is not None:
        drops.drop(paths.get("effort.budget", "effort.budget_tokens"), f"{NAME} has no token budget for reasoning")
    elif effort.mode is not None:
        drops.drop(paths.get("effort.mode", "effort.mode"), f"{NAME} has no switch for reasoning")
    if effort.summary is not None:
        drops.drop(paths.get("effort.summary", "effort.summary"), f"{NAME} has no summary setting")
    if effort.extra:
        drops.extras(paths.get("effort.mode", "reasoning.effort").rpartition(".")[0], effort.extra, NAME)


def _server_state(settings: Settings) -> None:
    # The gateway expands these where it can; what still stands here would silently lose the conversation so far.
    for field, state in (
        ("previous_response_id", settings.previous_response_id),
        ("conversation", settings.conversation_id),
    ):
        if state is not None:
            raise ClientError(
                f"{field}: state kept by a Responses server is unknown to a {NAME} server; send the whole input",
                code="unsupported_server_state",
                param=field,
            )
    if settings.background:
        raise ClientError(
            f"background: {NAME} has no background mode", code="unsupported_capability", param="background"
        )


def _extra(settings: Settings, source: Format | None, value: dict[str, Any], drops: Drops) -> None:
    extra = settings.extra
    if not extra:
        return
    if source == FORMAT or source is None:
        for key, setting in extra.items():
            if key == "stream_options" and isinstance(setting, dict):
                value[key] = {**value.get(key, {}), **setting}
            elif key == "reasoning" and isinstance(setting, dict) and "effort" in setting and settings.effort:
                value[key] = {**setting, "effort": settings.effort.level}
            else:
                value.setdefault(key, setting)
        return
    if extra.get("mcp_servers"):
        raise ClientError(
            f"mcp_servers: a {NAME} server cannot reach MCP servers; route this request to a target of its own format",
            code="unsupported_capability",
            param="mcp_servers",
        )
    lost = dict(extra)
    if source == "openai_responses":
        for key in _SHARED_WITH_RESPONSES & extra.keys():
            value[key] = lost.pop(key)
        if "top_logprobs" in value:
            value["logprobs"] = True
    drops.extras("", lost, NAME)


def write_output(output: OutputFormat, own: bool) -> dict[str, Any]:
    """`response_format`. A schema without a name gets one, since Chat asks for it."""
    value: dict[str, Any] = {"type": output.kind}
    if output.kind == "json_schema":
        inner: dict[str, Any] = {}
        name = output.name if own else output.name or "response"
        for key, member in (
            ("name", name),
            ("description", output.description),
            ("schema", output.schema),
            ("strict", output.strict),
        ):
            if member is not None:
                inner[key] = member
        value["json_schema"] = inner
    if own:
        for key, member in output.extra.items():
            if key == "json_schema" and isinstance(member, dict):
                value[key].update(member)
            else:
                value.setdefault(key, member)
    return value
