"""Small checks shared by the readers of this format: what a value must be, and where it is when it is not."""

import re
from typing import Any

import msgspec

from turnout.errors import ClientError

_AT = re.compile(r" - at `\$\.?(.*?)`$")
_MISSING = re.compile(r"missing required field `([^`]+)`")


def wrong(path: str, expected: str, value: Any) -> ClientError:
    """The error for a `value` at `path` that is not what is `expected`."""
    return ClientError(f"{path}: expected {expected}, got {_kind(value)}", param=path)


def from_validation(error: msgspec.ValidationError) -> ClientError:
    """A decoder's complaint, with the path as clients know it (`messages[0].role`)."""
    text = str(error)
    at = _AT.search(text)
    path = at.group(1) if at else ""
    text = text[: at.start()] if at else text
    missing = _MISSING.search(text)
    if missing:
        path = f"{path}.{missing.group(1)}" if path else missing.group(1)
        return ClientError(f"{path}: this field is required", param=path, code="missing_required_parameter")
    message = text[:1].lower() + text[1:].replace("`", "")
    return ClientError(f"{path}: {message}" if path else message, param=path or None)


def text_or_none(value: Any, path: str) -> str | None:
    """A string, or None for null or absent."""
    if value is None or isinstance(value, str):
        return value
    raise wrong(path, "a string", value)


def object_at(value: Any, path: str) -> dict[str, Any]:
    """A JSON object."""
    if isinstance(value, dict):
        return value
    raise wrong(path, "an object", value)


def rest(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The members of `value` that are neither `known` nor null, in order."""
    return {k: v for k, v in value.items() if k not in known and v is not None}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"
