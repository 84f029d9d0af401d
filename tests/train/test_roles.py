"""Roles of tokens, for tokenizers of every kind."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from turnout.routing.retrieval.protocol import Role, spans
from turnout.train.roles import character_ends, token_roles

TEXT = "<think>wo? né</think><query>é🙂</query><answer>x</answer>"


class Pieces:
    """A tokenizer that cuts a text's bytes where it is told to."""

    def __init__(self, text: str, cuts: Sequence[int]) -> None:
        data = text.encode()
        at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        self.pieces = [data[start:end] for start, end in pairwise(at)]

    @property
    def ids(self) -> list[int]:
        return list(range(len(self.pieces)))

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.pieces[id] for id in ids).decode(errors="replace")


def by_character(text: str) -> list[Role]:
    return [role for start, end, role in spans(text) for _ in range(end - start)]


@given(st.lists(st.integers(0, 80), max_size=40))
def test_a_token_has_the_role_of_the_first_character_it_completes(cuts: list[int]) -> None:
    tokenizer = Pieces(TEXT, cuts)
    roles = token_roles(tokenizer.ids, tokenizer.decode)
    expected = by_character(TEXT)
    at = 0
    for piece, role in zip(tokenizer.pieces, roles, strict=True):
        whole = len(TEXT.encode()[:at].decode(errors="ignore"))
        assert role == expected[min(whole, len(expected) - 1)]
        at += len(piece)


@given(st.text(alphabet="aé🙂<>/think", max_size=20), st.lists(st.integers(0, 40), max_size=20))
def test_ends_grow_to_the_whole_text(text: str, cuts: list[int]) -> None:
    tokenizer = Pieces(text, cuts)
    ends = character_ends(tokenizer.ids, tokenizer.decode)
    assert ends == sorted(ends)
    assert (ends[-1] if ends else 0) == len(text)


def test_a_tokenizer_that_drops_a_leading_space() -> None:
    words = ["<think>", " a", "</think>", " <answer>", "b"]

    def decode(ids: Sequence[int]) -> str:
        return "".join(words[id] for id in ids).removeprefix(" ")

    assert token_roles(range(5), decode) == [
        Role.REASONING,
        Role.REASONING,
        Role.REASONING,
        Role.OTHER,
        Role.ANSWER,
    ]


def test_no_tokens_have_no_roles() -> None:
    assert token_roles([], lambda ids: "") == []
