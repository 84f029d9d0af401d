"""Token usage of Responses <-> neutral usage."""

from typing import Any

from turnout.conversation import Usage
from turnout.wire.responses.content import rest

_USAGE = frozenset({"input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"})
_WRITES = ("cache_write_tokens", "cache_creation_tokens")


def read_usage(value: Any) -> Usage | None:
    """Usage as counted by a Responses server, whose input includes what was read from and written to the cache."""
    if not isinstance(value, dict):
        return None
    total, output = _count(value.get("input_tokens")), _count(value.get("output_tokens"))
    inside, outside = value.get("input_tokens_details"), value.get("output_tokens_details")
    inside = inside if isinstance(inside, dict) else {}
    outside = outside if isinstance(outside, dict) else {}
    read = _count(inside.get("cached_tokens"))
    written = next((n for k in _WRITES if (n := _count(inside.get(k))) is not None), None)
    if total is not None:
        total = max(0, total - (read or 0) - (written or 0))
    extra = rest(value, _USAGE)
    for name, details, known in (
        ("input_tokens_details", inside, ("cached_tokens", *_WRITES)),
        ("output_tokens_details", outside, ("reasoning_tokens",)),
    ):
        more = {k: v for k, v in details.items() if k not in known and v is not None}
        if more:
            extra[name] = more
    return Usage(total, output, read, written, None, _count(outside.get("reasoning_tokens")), extra)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def write_usage(usage: Usage | None, native: bool) -> dict[str, Any] | None:
    """The usage object, always with both details; None when the source did not count."""
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    total, output = usage.prompt_tokens or 0, usage.output_tokens or 0
    extra = usage.extra if native else {}
    inside = {"cached_tokens": usage.cache_read_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    outside = {"reasoning_tokens": usage.reasoning_tokens or 0}
    return {
        "input_tokens": total,
        "input_tokens_details": {**inside, **extra.get("input_tokens_details", {})},
        "output_tokens": output,
        "output_tokens_details": {**outside, **extra.get("output_tokens_details", {})},
        "total_tokens": total + output,
        **{k: v for k, v in extra.items() if k not in _USAGE},
    }
