"""Whether a JSON value fits a client's JSON schema.

Schemas come with requests, so nothing is compiled or executed from them, and nothing outside them is looked up. Keywords this
does not know say nothing, as the standard has it; `pattern` is not looked at, since a client's expression may run for ever.
"""

import operator
from collections.abc import Mapping
from typing import Any

_DEEPEST = 64
_STEPS = 50_000
"""The most that is looked at: forms within forms that lead back to the whole would double it at each level."""
_BOUNDS = (
    ("minimum", operator.ge), ("maximum", operator.le), ("exclusiveMinimum", operator.gt), ("exclusiveMaximum", operator.lt),
)  # fmt: skip


def misfit(value: Any, schema: Any) -> str:
    """Where and why `value` does not fit, "" when it does or when that takes too long to tell. The value itself is not
    repeated."""
    root = _Root(schema)
    found = _misfit(value, schema, root, "", 0)
    return found if root.left > 0 else ""


class _Root:
    """The whole schema, and how many more steps are taken in it."""

    __slots__ = ("left", "schema")

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.left = _STEPS


def _misfit(value: Any, schema: Any, root: _Root, at: str, depth: int) -> str:
    root.left -= 1
    if root.left <= 0:
        return ""
    if isinstance(schema, bool) or not isinstance(schema, Mapping) or depth > _DEEPEST:
        return f"{at or '/'}: nothing may stand here" if schema is False else ""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _misfit(value, _referred(root.schema, reference), root, at, depth + 1)
    kinds = schema.get("type")
    if kinds is not None:
        named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        if named and not any(_is(value, kind) for kind in named):
            return f"{at or '/'}: expected {' or '.join(map(str, named))}"
    if "enum" in schema and isinstance(schema["enum"], list) and not any(_same(value, one) for one in schema["enum"]):
        return f"{at or '/'}: none of the values that may stand here"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{at or '/'}: not the value that must stand here"
    return _combined(value, schema, root, at, depth) or _within(value, schema, root, at, depth)


def _combined(value: Any, schema: Mapping[str, Any], root: _Root, at: str, depth: int) -> str:
    for one in _list(schema.get("allOf")):
        if found := _misfit(value, one, root, at, depth + 1):
            return found
    for key in ("anyOf", "oneOf"):
        choices = _list(schema.get(key))
        fitting = sum(not _misfit(value, one, root, at, depth + 1) for one in choices)
        if choices and (not fitting or (key == "oneOf" and fitting > 1)):
            return f"{at or '/'}: fits {'none' if not fitting else 'more than one'} of the forms it may have"
    if "not" in schema and not _misfit(value, schema["not"], root, at, depth + 1):
        return f"{at or '/'}: has the form it may not have"
    return ""


def _within(value: Any, schema: Mapping[str, Any], root: _Root, at: str, depth: int) -> str:
    if isinstance(value, dict):
        return _object(value, schema, root, at, depth)
    if isinstance(value, list):
        if found := _sized(len(value), schema, "minItems", "maxItems", at, "entries"):
            return found
        first = _list(schema.get("prefixItems"))
        rest = schema.get("items")
        for index, item in enumerate(value):
            inner = first[index] if index < len(first) else rest
            if inner is not None and (found := _misfit(item, inner, root, f"{at}/{index}", depth + 1)):
                return found
    elif isinstance(value, str):
        return _sized(len(value), schema, "minLength", "maxLength", at, "characters")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return _bounded(value, schema, at)
    return ""


def _object(value: dict[str, Any], schema: Mapping[str, Any], root: _Root, at: str, depth: int) -> str:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    for name in _list(schema.get("required")):
        if name not in value:
            return f"{at or '/'}: `{str(name)[:80]}` is missing"
    others = schema.get("additionalProperties")
    open_ended = "patternProperties" in schema
    for name, item in value.items():
        inner = properties.get(name, None if open_ended else others)
        if inner is False and name not in properties:
            return f"{at or '/'}: has a property that may not stand there"
        if inner is not None and (found := _misfit(item, inner, root, f"{at}/{name[:80]}", depth + 1)):
            return found
    return _sized(len(value), schema, "minProperties", "maxProperties", at, "properties")


def _sized(size: int, schema: Mapping[str, Any], least: str, most: str, at: str, what: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if isinstance(low, int) and size < low:
        return f"{at or '/'}: fewer than {low} {what}"
    if isinstance(high, int) and size > high:
        return f"{at or '/'}: more than {high} {what}"
    return ""


def _bounded(value: float, schema: Mapping[str, Any], at: str) -> str:
    for key, holds in _BOUNDS:
        limit = schema.get(key)
        if isinstance(limit, int | float) and not isinstance(limit, bool) and not holds(value, limit):
            return f"{at or '/'}: breaks {key} {limit}"
    return ""


def _is(value: Any, kind: Any) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _referred(root: Any, reference: str) -> Any:
    """What a reference within the schema names; anything goes where it names nothing."""
    found = root
    if not reference.startswith("#"):
        return True
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            return True
        found = found[key]
    return found
