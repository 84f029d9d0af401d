"""What is written is read back the same."""

import tomllib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.policies.toml import written

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_PLAIN = (
    _TEXT
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.datetimes(timezones=st.just(UTC))
)
_VALUES = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3), max_leaves=8
)


@settings(max_examples=150)
@given(st.dictionaries(_TEXT, _VALUES, max_size=4))
def test_reading_undoes_writing(document: dict[str, Any]) -> None:
    assert tomllib.loads(written(document)) == document


def test_what_is_none_is_left_out_and_what_is_no_value_is_refused() -> None:
    assert tomllib.loads(written({"a": None, "b": {"c": None}, "d": [{"e": None}]})) == {"b": {}, "d": [{}]}
    with pytest.raises(TypeError):
        written({"a": object()})


def test_a_plain_key_follows_no_table_of_another() -> None:
    text = written({"inner": {"a": 1}, "plain": 2, "at": datetime(2026, 12, 1, tzinfo=UTC)})
    assert text == "plain = 2\nat = 2026-12-01T00:00:00Z\n\n[inner]\na = 1\n"
