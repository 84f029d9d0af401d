"""Splicing a JSON body: what is replaced reads back, everything else stays byte for byte."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.errors import ClientError
from turnout.wire.body import fields, members, restamp, spans, splice

white = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n  "])
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
short_keys = st.sampled_from(["model", "messages", "a", "b", 'q"\\', "ключ", "", "mod\\u0065l"])


@st.composite
def strings(draw, value=None):
    """JSON text of a string, its characters escaped at random."""
    value = draw(text) if value is None else value
    pieces = []
    for c in value:
        form = draw(st.sampled_from(["plain", "plain", "plain", "u", "U"]))
        if form == "plain" and c not in '"\\' and ord(c) >= 0x20:
            pieces.append(c)
        elif ord(c) > 0xFFFF:
            pieces.append(json.dumps(c)[1:-1])
        else:
            pieces.append(f"\\u{ord(c):04x}" if form != "U" else f"\\u{ord(c):04X}")
    return '"' + "".join(pieces) + '"'


scalars = st.one_of(
    st.sampled_from(["null", "true", "false", "0", "-1", "1.50", "1e5", "-0.0E-2", "12345678901234567890"]), strings()
)


@st.composite
def objects(draw, values):
    keys = draw(st.lists(st.one_of(short_keys, text), max_size=6))
    body = [draw(white), "{", draw(white)]
    for index, key in enumerate(keys):
        if index:
            body += [",", draw(white)]
        body += [draw(strings(key)), draw(white), ":", draw(white), draw(values), draw(white)]
    return "".join([*body, "}", draw(white)])


@st.composite
def arrays(draw, values):
    items = draw(st.lists(values, max_size=4))
    space = draw(white)
    return "[" + space + (space + "," + space).join(items) + space + "]"


values = st.recursive(scalars, lambda inner: st.one_of(objects(inner).map(str.strip), arrays(inner)), max_leaves=8)
bodies = objects(values).map(str.encode)
changes = st.dictionaries(
    st.one_of(short_keys, text), st.one_of(st.none(), values.map(str.encode)), min_size=0, max_size=4
)


def pairs(body):
    """The reference: all members in order, repeated keys too, values decoded by the standard library."""
    return json.loads(body, object_pairs_hook=lambda members: members)


def plain(body):
    return json.loads(body)


@given(bodies)
def test_spans_measure_every_member(body):
    found = [(key, plain(body[span.start : span.end])) for key, span in members(body)]
    expected = [(key, value) for key, value in json.loads(body, object_pairs_hook=Members)]
    assert found == expected
    for key, span in members(body):
        assert json.JSONDecoder().raw_decode(body[span.key :].decode())[0] == key
        assert body[span.start : span.end] == body[span.start : span.end].strip()


class Members(list):
    """An object's members at the top; below it, plain dictionaries."""

    def __init__(self, items):
        super().__init__((key, dict_of(value)) for key, value in items)


def dict_of(value):
    if isinstance(value, Members):
        return dict(value)
    if isinstance(value, list):
        return [dict_of(item) for item in value]
    return value


@given(bodies)
def test_spans_give_the_last_of_a_repeated_key_as_decoders_do(body):
    assert {key: plain(body[span.start : span.end]) for key, span in spans(body).items()} == plain(body)
    assert {key: msgspec.json.decode(raw) for key, raw in fields(body).items()} == plain(body)


@given(bodies, st.one_of(short_keys, text))
def test_asking_for_one_span_stops_at_its_first(body, only):
    first = next((span for key, span in members(body) if key == only), None)
    assert spans(body, only).get(only) == first


@given(bodies, changes)
def test_a_splice_changes_what_it_says_and_nothing_else(body, changes):
    after = splice(body, changes)
    kept = [
        (key, value) for key, value in json.loads(body, object_pairs_hook=Members) if changes.get(key, b"") is not None
    ]
    there = {key for key, _ in kept}
    expected = [(key, plain(changes[key]) if key in changes else value) for key, value in kept]
    expected += [(key, plain(value)) for key, value in changes.items() if value is not None and key not in there]
    assert json.loads(after, object_pairs_hook=Members) == expected


@given(bodies, changes)
def test_untouched_members_and_the_ends_stay_byte_for_byte(body, changes):
    after = splice(body, changes)
    old = [body[s.key : s.end] for key, s in members(body) if key not in changes]
    new = [after[s.key : s.end] for key, s in members(after) if key not in changes]
    assert new == old
    assert after.startswith(body[: body.index(b"{") + 1])
    assert after.endswith(body[body.rindex(b"}") :])


@given(bodies, changes)
def test_splicing_twice_is_splicing_once(body, changes):
    once = splice(body, changes)
    assert splice(once, changes) == once


@given(bodies)
def test_splicing_nothing_or_what_is_there_changes_no_byte(body):
    assert splice(body, {}) == body
    here = {}
    repeated = [key for key, _ in members(body)]
    for key, span in members(body):
        if repeated.count(key) == 1:
            here[key] = body[span.start : span.end]
    assert splice(body, here) == body


@given(bodies, text)
def test_after_a_restamp_every_decoder_sees_the_new_model(body, model):
    stamped = restamp(body, msgspec.json.encode(model))
    seen = [value for key, value in json.loads(stamped, object_pairs_hook=Members) if key == "model"]
    assert seen
    assert set(seen) == {model}
    others = [body[s.key : s.end] for key, s in members(body) if key != "model"]
    assert [stamped[s.key : s.end] for key, s in members(stamped) if key != "model"] == others
    assert restamp(stamped, msgspec.json.encode(model)) == stamped
    read = plain(body).get("model")
    if isinstance(read, str) and [key for key, _ in members(body)].count("model") == 1:
        assert restamp(body, msgspec.json.encode(model), read) == stamped


def test_a_second_model_spelled_with_escapes_is_restamped_too():
    body = rb'{"model":"a","x":[1],"mod\u0065l":"b"}'
    assert json.loads(restamp(body, b'"c"')) == {"model": "c", "x": [1]}
    assert json.loads(restamp(body, b'"c"', "b")) == {"model": "c", "x": [1]}


def test_neighbouring_members_at_the_end_go_together():
    assert splice(b'{"a":1, "b":[2], "c":3}', {"b": None, "c": None}) == b'{"a":1}'
    assert splice(b'{ "a":1, "b":2 }', {"a": None, "b": None}) == b"{  }"
    assert splice(b'{"a":1}', {"a": None, "b": b"2"}) == b'{"b":2}'


def test_a_megabyte_in_one_string_is_no_trouble():
    body = msgspec.json.encode({"text": 'x"\\' * 400_000, "model": "a"})
    assert plain(restamp(body, b'"b"')) == {"text": 'x"\\' * 400_000, "model": "b"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "must be a JSON object"),
        (b'"x"', "must be a JSON object"),
        (b"1", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"a":1', "not valid JSON"),
        (b'{"a":1}x', "not valid JSON"),
        (b'{"a":01}', "not valid JSON"),
        (b'{"a" 1}', "not valid JSON"),
        (b'{"\xff":1}', "not valid JSON"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_what_is_not_a_json_object_is_refused_in_words(body, message):
    with pytest.raises(ClientError, match=message) as caught:
        fields(body)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")
