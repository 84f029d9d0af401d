"""What a judge wrote, as records keep it: little of it, and nothing that looks like a secret."""

from typing import Any

from turnout.signals.results.fingerprint import without_secrets

CHARS_AT_MOST = 500
_ENTRIES_AT_MOST = 32
_DEEPEST = 4


def kept(value: Any, depth: int = 0) -> Any:
    """`value`, a text or a JSON value, with every text masked and at most 500 characters long, and 32 entries of each table or
    list, four levels deep. A judge may quote what it was shown, keys in a tool's output included, and may write what it likes."""
    if isinstance(value, str):
        return without_secrets(value[: 2 * CHARS_AT_MOST])[:CHARS_AT_MOST]
    if not isinstance(value, (dict, list)):
        return value
    if depth == _DEEPEST:
        return "..."
    if isinstance(value, list):
        return [kept(one, depth + 1) for one in value[:_ENTRIES_AT_MOST]]
    return {kept(key, depth): kept(one, depth + 1) for key, one in list(value.items())[:_ENTRIES_AT_MOST]}
