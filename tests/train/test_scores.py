"""Scores of answers and evidence against values worked by hand, and what must hold of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.train.scores import (
    best_f1,
    coverage,
    exact_match,
    path_score,
    token_f1,
    tokens,
    unsupported_answer_ratio,
)

TEXTS = st.text(alphabet="ab c.", max_size=20)


def test_tokens_are_compared_without_case_punctuation_and_articles() -> None:
    assert tokens("The Eiffel-Tower, in a  PARIS.") == ["eiffeltower", "in", "paris"]
    assert exact_match("the Beatles!", ["Stones", "Beatles"])
    assert not exact_match("Beatles and Stones", ["Beatles"])


def test_f1_counts_repeated_tokens_or_not() -> None:
    # said 4 tokens, gold 2, shared 2 (b once, c once): P 2/4, R 2/2.
    assert token_f1("b b c d", "b c") == pytest.approx(2 * (2 / 4) * 1 / (2 / 4 + 1))
    # as sets: said {b c d}, gold {b c}: P 2/3, R 1.
    assert token_f1("b b c d", "b c", multiset=False) == pytest.approx(0.8)
    assert token_f1("", "") == 1.0
    assert token_f1("", "b") == token_f1("b", "the") == 0.0
    assert best_f1("b c", ["d", "b"]) == pytest.approx(2 / 3)
    assert best_f1("b", []) == 0.0


def test_path_score_takes_all_that_was_retrieved_as_one_text() -> None:
    # union: b c d e (4); gold one: b c -> 2*2/(4+2); gold two: e f g h -> 2*1/(4+4)
    score = path_score(["b c", "d e"], ["b c", "e f g h"])
    assert score == pytest.approx((2 / 3 + 0.25) / 2)
    assert path_score([], ["b"]) == 0.0
    assert coverage(["b c", "d e"], ["b c", "e f g h"]) == pytest.approx((1 + 0.25) / 2)
    with pytest.raises(ValueError, match="gold passage"):
        path_score(["b"], [])
    with pytest.raises(ValueError, match="gold passage"):
        coverage(["b"], [])


def test_unsupported_tokens_are_those_found_nowhere() -> None:
    assert unsupported_answer_ratio("b x the c", ["b", "c d"]) == pytest.approx(1 / 3)
    assert unsupported_answer_ratio("", ["b"]) == 0.0
    assert unsupported_answer_ratio("b", []) == 1.0


@given(TEXTS, TEXTS)
def test_f1_is_symmetric_in_range_and_one_for_the_same(one: str, other: str) -> None:
    assert token_f1(one, other) == token_f1(other, one)
    assert 0.0 <= token_f1(one, other) <= 1.0
    assert token_f1(one, one) == 1.0
    assert exact_match(one, [other]) == (tokens(one) == tokens(other))


@given(st.lists(TEXTS, max_size=4), TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_more_evidence_never_covers_less(retrieved: list[str], more: str, golds: list[str]) -> None:
    assert coverage([*retrieved, more], golds) >= coverage(retrieved, golds)
    assert 0.0 <= path_score(retrieved, golds) <= 1.0
