"""Writes TOML, which the standard library only reads. Pure."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_PLAIN_ROW = 100
"""Columns up to which an array of plain values stays on one line."""


def written(document: Mapping[str, Any]) -> str:
    """`document` as TOML: strings, numbers, booleans, dates, arrays and tables. What is None is left out: TOML has no such value.

    Raises TypeError for anything else.
    """
    return "\n".join(_table(document, ())).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    present = {key: value for key, value in table.items() if value is not None}
    inner = {key: value for key, value in present.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in present.items() if key not in inner}
    if path and (plain or not inner):
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield from _table(value, (*path, key))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
        case datetime() | date() | time():
            return value.isoformat().replace("+00:00", "Z")
        case Mapping():
            pairs = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
            inside = ", ".join(pairs)
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return _array([_value(item) for item in value])
    raise TypeError(f"TOML has no value for {type(value).__name__}")


def _array(items: list[str]) -> str:
    row = f"[{', '.join(items)}]"
    if len(row) <= _PLAIN_ROW and not any(item.startswith("{") for item in items):
        return row
    return "[\n" + "".join(f"  {item},\n" for item in items) + "]" if items else "[]"


def _string(text: str) -> str:
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char
