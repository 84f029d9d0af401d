"""How costs are spread: worked by hand."""

import pytest

from turnout.evaluate.tails import tails


def test_tails_are_percentiles_and_the_dearest() -> None:
    found = tails([float(i) for i in range(101)])
    assert found is not None
    assert (found.p50, found.p90, found.p95, found.max) == (50.0, 90.0, 95.0, 100.0)
    # 1 % of 101 units, rounded up: the two dearest.
    assert found.dearest == 2
    assert found.dearest_share == pytest.approx(199 / 5050)
    assert found.mean_without == pytest.approx(sum(range(99)) / 99)
    assert tails([]) is None
