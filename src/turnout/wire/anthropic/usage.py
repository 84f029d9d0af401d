"""Token counts of Messages <-> the neutral ones. Messages counts cached tokens beside the input, as the neutral form does."""

from typing import Any

from turnout.conversation import Usage

_KNOWN = frozenset(
    (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "output_tokens_details",
    )
)


_UNKNOWN = {
    "input_tokens": 0,
    "cache_creation_input_tokens": None,
    "cache_read_input_tokens": None,
    "output_tokens": 0,
}


def read_usage(value: Any) -> Usage | None:
    """The usage object of a reply; None when there is none."""
    if not isinstance(value, dict):
        return None
    written, hour = _count(value.get("cache_creation_input_tokens")), None
    split = value.get("cache_creation")
    if isinstance(split, dict):
        hour = _count(split.get("ephemeral_1h_input_tokens"))
        if written is None:
            written = (hour or 0) + (_count(split.get("ephemeral_5m_input_tokens")) or 0)
    details = value.get("output_tokens_details")
    extra = {k: v for k, v in value.items() if k not in _KNOWN and v is not None} if not value.keys() <= _KNOWN else {}
    return Usage(
        _count(value.get("input_tokens")),
        _count(value.get("output_tokens")),
        _count(value.get("cache_read_input_tokens")),
        written,
        hour,
        _count(details.get("thinking_tokens")) if isinstance(details, dict) else None,
        extra,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def merged(early: dict[str, Any] | None, late: Any) -> dict[str, Any] | None:
    """Native usage so far, with what a later event states: its counts are cumulative, and null says nothing."""
    if not isinstance(late, dict):
        return early
    return {**(early or {}), **{k: v for k, v in late.items() if v is not None}}


def write_usage(usage: Usage | None, own: bool) -> dict[str, Any]:
    """The full usage object. Clients do sums with the two main counts, so an unknown one has to read 0 here; the counts of
    cached tokens may be null.

    `own`: the usage came from Messages, so its extra fields are native.
    """
    if usage is None:
        return dict(_UNKNOWN)
    value: dict[str, Any] = {
        "input_tokens": usage.input_tokens or 0,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens or 0,
    }
    hour = usage.cache_write_1h_tokens
    if hour is not None:
        rest = max(0, (usage.cache_write_tokens or 0) - hour)
        value["cache_creation"] = {"ephemeral_5m_input_tokens": rest, "ephemeral_1h_input_tokens": hour}
    if usage.reasoning_tokens is not None:
        value["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    if own:
        value.update(usage.extra)
    return value
