"""Request bodies: cut into parts and joined again without a changed byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import captures, needs_recordings

from turnout.ledger.bodies import LARGE, digest, join, lane_key, pack, split, unpack

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
message = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": json_values})
body = st.fixed_dictionaries(
    {"model": st.text()},
    optional={
        "messages": st.lists(message, max_size=6) | json_values,
        "input": st.lists(message, max_size=6) | st.text(),
        "tools": st.lists(json_values),
        "system": st.text(min_size=LARGE, max_size=LARGE + 5),
    },
)


@given(body, st.sampled_from([None, 2]), st.sampled_from([(",", ":"), (" ,\n ", " : ")]), st.booleans())
def test_join_undoes_split(value: dict[str, object], indent: int | None, marks: tuple[str, str], ascii_: bool) -> None:
    raw = json.dumps(value, indent=indent, separators=marks, ensure_ascii=ascii_).encode(errors="replace")
    assert join(*split(raw)) == raw


@given(st.binary(max_size=200))
def test_any_bytes_survive(raw: bytes) -> None:
    assert join(*split(raw)) == raw
    assert unpack(pack(raw * 20)) == raw * 20


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"messages":[[]]}',
        b'{"messages":[]}',
        b'{"a":"' + b"x" * LARGE + b"\0" + b'"}',
        b"not json \0\0",
    ],
)
def test_odd_bodies_survive(raw: bytes) -> None:
    assert join(*split(raw)) == raw


def test_the_same_message_is_the_same_part() -> None:
    long = "x" * 100
    first = json.dumps({"model": "a", "messages": [{"role": "user", "content": long}]}).encode()
    more = [
        {"role": "user", "content": long},
        {"role": "assistant", "content": "y" * 100},
        {"role": "user", "content": "z" * 100},
    ]
    second = json.dumps({"model": "a", "messages": more}).encode()
    assert split(first)[1] == split(second)[1][:1]
    assert len(split(second)[1]) == 3


def test_equal_content_of_two_lanes_has_two_names() -> None:
    assert digest(b"x", lane_key("", "s1", "")) != digest(b"x", lane_key("", "s2", ""))
    assert digest(b"x", lane_key("", "s1", "")) == digest(b"x", lane_key("", "s1", ""))


def test_a_prompt_of_token_numbers_is_one_part() -> None:
    raw = json.dumps({"input": list(range(2000))}).encode()
    assert len(split(raw)[1]) == 1
    assert join(*split(raw)) == raw


@needs_recordings
def test_recorded_requests_survive() -> None:
    seen = 0
    for capture in captures():
        request = capture.get("request")
        text = request if isinstance(request, str) else json.dumps(request)
        seen += 1
        assert join(*split(text.encode())) == text.encode()
    assert seen > 100
