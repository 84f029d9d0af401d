"""What of a model's text counts as the JSON object it was asked for."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.routing.judging import NotStructured, read_object

OBJECT = {"reason": "it repeats itself", "escalate": True}
TEXT = json.dumps(OBJECT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"  \n{TEXT}\n\n",
        json.dumps(OBJECT, indent=2),
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n",
        f"```JSON \r\n{TEXT}\r\n```",
        f"<think>Is it stuck? {{maybe}}</think>\n{TEXT}",
        f"<think>\nlong\n</think>\n\n```json\n{TEXT}\n```",
    ],
)
def test_a_bare_or_fenced_object_is_read(text: str) -> None:
    assert read_object(text) == OBJECT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>hm</think>", "empty"),
        ("I think it should be escalated.", "prose"),
        (f"My verdict: {TEXT}", "prose"),
        (f"{TEXT}\nBecause it repeats itself.", "text follows"),
        (f"```json\n{TEXT}\n```\nBecause it repeats itself.", "around the fenced"),
        (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "around the fenced"),
        (f"{TEXT}{TEXT}", "text follows"),
        (TEXT[:-1], "broken"),
        ("```json", "around the fenced"),
        ("[true]", "array"),
        ("true", "boolean"),
        ('"escalate"', "string"),
        ("1", "number"),
        ("null", "null"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "broken"),
    ],
)
def test_anything_else_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(NotStructured, match=reason):
        read_object(text)


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5)))
def test_every_object_is_read_back_bare_and_fenced(value: dict[str, Any]) -> None:
    for indent in (None, 1):
        text = json.dumps(value, indent=indent)
        assert read_object(text) == value
        if "```" not in text:
            assert read_object(f"```json\n{text}\n```") == value


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    with suppress(NotStructured):
        assert isinstance(read_object(text), dict)
