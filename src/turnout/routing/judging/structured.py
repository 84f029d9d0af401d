"""Reads the JSON object a model was asked for out of what it wrote."""

import re
from typing import Any

import msgspec

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL)
_DECODE = msgspec.json.Decoder().decode


class NotStructured(ValueError):
    """The text is not one JSON object; the message says what it is instead."""


def read_object(text: str) -> dict[str, Any]:
    """The JSON object that `text` is: bare, or in one code fence, after reasoning between `<think>` tags at most.

    A text that says anything beside it is refused: whoever rambles was not asked to, and what an object amid prose stands for
    is a guess. Raises NotStructured.
    """
    text = (_THOUGHT.sub("", text, count=1) if "<think>" in text else text).strip()
    if not text:
        raise NotStructured("the answer is empty")
    if text.startswith("```"):
        fenced = _FENCED.match(text)
        if fenced is None or "```" in fenced[1]:
            raise NotStructured("there is text around the fenced JSON")
        text = fenced[1].strip()
    try:
        found = _DECODE(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if text.startswith("{"):
            raise NotStructured("the JSON object is broken, or text follows it") from None
        raise NotStructured("the answer is prose, not a JSON object") from None
    if not isinstance(found, dict):
        raise NotStructured(f"the answer is a JSON {_NAMES.get(type(found), 'value')}, not an object")
    return found


_NAMES = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
