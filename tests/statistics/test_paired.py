"""Paired tests: worked by hand, symmetric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.statistics.paired import mcnemar, sign_flip

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)


def test_mcnemar_is_the_binomial_of_the_pairs_that_differ() -> None:
    # 1 against 5: 2 (C(6,0) + C(6,1)) / 2^6 = 14/64.
    pairs = [(True, False)] + [(False, True)] * 5 + [(True, True)] * 9 + [(False, False)] * 4
    found = mcnemar(pairs)
    assert found.p == pytest.approx(14 / 64)
    assert (found.pairs, found.only_first, found.only_second) == (19, 1, 5)


@given(PAIRS)
def test_mcnemar_is_symmetric(pairs: list[tuple[bool, bool]]) -> None:
    assert mcnemar(pairs).p == mcnemar([(b, a) for a, b in pairs]).p


def test_pairs_that_never_differ_show_nothing() -> None:
    assert mcnemar([(True, True)]).p == 1.0
    assert mcnemar([]).p is None


def test_the_sign_flip_test_nears_its_exact_value() -> None:
    # Five tasks that all differ by as much in one direction: 2 of 32 sign patterns are as extreme.
    assert sign_flip([0.2] * 5, 20_000) == pytest.approx(2 / 32, abs=0.006)
    assert sign_flip([0.0, 0.0]) == 1.0
    assert sign_flip([]) is None


@given(st.lists(st.integers(-4, 4), max_size=15))
def test_the_sign_flip_test_is_symmetric(differences: list[int]) -> None:
    values = [d / 4 for d in differences]
    assert sign_flip(values, 500) == sign_flip([-d for d in values], 500)
