"""Usage and stop reasons, in the many spellings of Chat-compatible servers."""

from typing import Any

from turnout.conversation import Stop, Usage
from turnout.wire.chat.fields import rest

_PROMPT = "prompt_tokens_details"
_COMPLETION = "completion_tokens_details"
_KNOWN = frozenset(("prompt_tokens", "completion_tokens", "total_tokens", _PROMPT, _COMPLETION))

_CACHED = frozenset(("cached_tokens",))
_REASONING = frozenset(("reasoning_tokens",))
_NOTHING: dict[str, Any] = {}

# Tried in order; the first that is there counts.
_READ = (
    (_PROMPT, "cached_tokens"),
    ("", "prompt_cache_hit_tokens"),  # DeepSeek
    ("", "cache_read_input_tokens"),  # gateways before Anthropic
    ("", "cached_tokens"),  # Kimi
    ("", "cache_read_tokens"),
)
_WRITTEN = (
    (_PROMPT, "cache_write_tokens"),  # OpenRouter
    (_PROMPT, "cache_creation_tokens"),
    (_PROMPT, "cache_creation_input_tokens"),
    ("", "cache_creation_input_tokens"),
    ("", "cache_write_tokens"),
)
_REASONED = ((_COMPLETION, "reasoning_tokens"), ("", "reasoning_tokens"))

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "eos": "end",
    "eos_token": "end",
    "end_turn": "end",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_REASONS: dict[Stop, str] = {
    "end": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",
}

BROKEN = frozenset(("error", "abort", "aborted", "cancelled", "insufficient_system_resource"))
"""Finish reasons that say the server broke off: an error, not an end."""


def read_usage(value: Any) -> Usage | None:
    """Usage as a server reports it; None when it says nothing."""
    if not isinstance(value, dict):
        return None
    prompt, output = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if prompt is None and output is None:
        return None
    if value.keys() <= _KNOWN:
        prompt_details, output_details = value.get(_PROMPT), value.get(_COMPLETION)
        prompt_details = prompt_details if isinstance(prompt_details, dict) else _NOTHING
        output_details = output_details if isinstance(output_details, dict) else _NOTHING
        if prompt_details.keys() <= _CACHED and output_details.keys() <= _REASONING:
            # What most servers send.
            read = _count(prompt_details.get("cached_tokens"))
            return Usage(
                input_tokens=None if prompt is None else max(0, prompt - (read or 0)),
                output_tokens=output,
                cache_read_tokens=read,
                reasoning_tokens=_count(output_details.get("reasoning_tokens")),
            )
    used: set[tuple[str, str]] = set()
    read, written = _first(value, _READ, used), _first(value, _WRITTEN, used)
    reasoned = _first(value, _REASONED, used)
    return Usage(
        input_tokens=None if prompt is None else max(0, prompt - (read or 0) - (written or 0)),
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoned,
        extra=_extra(value, used),
    )


def _first(value: dict[str, Any], places: tuple[tuple[str, str], ...], used: set[tuple[str, str]]) -> int | None:
    found: int | None = None
    for outer, name in places:
        holder = value.get(outer) if outer else value
        count = _count(holder.get(name)) if isinstance(holder, dict) else None
        if count is None:
            continue
        # A spelling that says the same again is no news; one that differs stays in `extra`.
        if found is None or found == count:
            used.add((outer, name))
            found = count
    return found


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _extra(value: dict[str, Any], used: set[tuple[str, str]]) -> dict[str, Any]:
    extra = {k: v for k, v in value.items() if v is not None and k not in _KNOWN and ("", k) not in used}
    for outer in (_PROMPT, _COMPLETION):
        details = value.get(outer)
        if isinstance(details, dict):
            more = rest(details, frozenset(name for holder, name in used if holder == outer))
            if more:
                extra[outer] = more
    return extra


def write_usage(usage: Usage, own: bool = True) -> dict[str, Any]:
    """Usage in OpenAI's spelling; unknown counts are null. `own`: it came from a Chat server, so its extras fit."""
    prompt, output = usage.prompt_tokens, usage.output_tokens
    total = prompt + output if prompt is not None and output is not None else None
    value: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": total}
    details: dict[str, Any] = {}
    if usage.cache_read_tokens is not None:
        details["cached_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens is not None:
        details["cache_write_tokens"] = usage.cache_write_tokens
    completion = {} if usage.reasoning_tokens is None else {"reasoning_tokens": usage.reasoning_tokens}
    if own:
        for key, more in usage.extra.items():
            if key == _PROMPT:
                details.update(more)
            elif key == _COMPLETION:
                completion.update(more)
            else:
                value[key] = more
    if details:
        value[_PROMPT] = details
    if completion:
        value[_COMPLETION] = completion
    return value


def read_stop(reason: str, called: bool) -> tuple[Stop, str | None]:
    """The stop for a finish reason, and the reason itself where Chat does not define it.

    `called`: the reply holds tool calls. A reason never contradicts the content: some servers say `stop` after calls.
    """
    stop = _STOPS.get(reason)
    detail = None if reason in ("stop", "length", "tool_calls", "function_call", "content_filter") else reason
    if stop is None or stop == "end":
        return ("tool_calls" if called else "end"), detail
    if stop == "tool_calls" and not called:
        return "end", detail
    return stop, detail


def write_stop(stop: Stop) -> str:
    """The finish reason for a stop."""
    return _REASONS[stop]
