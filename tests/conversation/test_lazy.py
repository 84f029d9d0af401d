"""A lazy sequence: decodes once, only what is looked at, and otherwise behaves as a tuple."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Conversation, Lazy, Message, Text


@given(st.lists(st.integers(), max_size=8), st.data())
def test_it_behaves_as_the_tuple_of_its_elements(raw, data):
    lazy = Lazy(raw, lambda value, _: value * 2)
    whole = tuple(value * 2 for value in raw)
    assert len(lazy) == len(whole)
    if raw:
        at = data.draw(st.integers(-len(raw), len(raw) - 1))
        assert lazy[at] == whole[at]
    cut = data.draw(st.slices(len(raw)))
    assert lazy[cut] == whole[cut]
    assert tuple(lazy) == whole
    assert lazy == whole
    assert whole == lazy
    assert lazy == list(whole)
    assert list(reversed(lazy)) == list(reversed(whole))
    assert lazy != (*whole, 0)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=20))
def test_each_element_is_decoded_once_and_under_its_position(order):
    decoded = []

    def decode(value, index):
        decoded.append(index)
        return value

    lazy = Lazy("abcdefgh", decode)
    for at in order:
        assert lazy[at] == "abcdefgh"[at]
        assert lazy[at - 8] == "abcdefgh"[at]
    assert sorted(decoded) == sorted(set(order))


def test_looking_at_the_tail_leaves_the_rest_unread():
    decoded = []
    lazy = Lazy(range(100), lambda value, index: decoded.append(index) or value)
    _ = lazy[-1], lazy[98:]
    assert sorted(decoded) == [98, 99]


def test_a_failed_element_fails_again():
    def decode(value, index):
        raise ValueError(f"element {index}")

    lazy = Lazy([1, 2], decode)
    for _ in range(2):
        with pytest.raises(ValueError, match="element 1"):
            lazy[-1]
    with pytest.raises(IndexError):
        lazy[2]
    with pytest.raises(IndexError):
        lazy[-3]


def test_text_is_no_sequence_of_elements():
    assert Lazy("ab", lambda value, _: value) != "ab"
    with pytest.raises(TypeError):
        hash(Lazy([], lambda value, _: value))


def test_a_conversation_with_known_roles_decodes_no_message():
    decoded = []
    messages = Lazy([1, 2], lambda value, index: decoded.append(index) or Message("user", (Text("x"),)))
    conversation = Conversation(messages, roles=("user", "user"))
    assert decoded == []
    assert Conversation(messages).roles == ("user", "user") == conversation.roles
    assert decoded == [0, 1]


def test_a_passing_look_keeps_nothing_and_sees_the_same():
    order = []

    def decode(raw, index):
        order.append(index)
        return raw * 2

    lazy = Lazy([1, 2, 3], decode)
    assert list(lazy.passing()) == [2, 4, 6]
    assert list(lazy.passing()) == [2, 4, 6]
    assert order == [0, 1, 2] * 2
    assert lazy[1] == 4
    assert list(lazy.passing()) == [2, 4, 6]
    assert order == [*([0, 1, 2] * 2), 1, 0, 2]
