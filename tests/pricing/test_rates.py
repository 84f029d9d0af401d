"""Costs: every token once, at the rate of its kind; what is not known is None and says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Usage
from turnout.pricing import Prices, Rates, cost

PRICES = Prices.load()
CAPABLE = Rates(input=5.0, output=25.0, cache_read=0.5, cache_write_5m=6.25, cache_write_1h=10.0)
tokens = st.integers(0, 400_000)


def test_a_vendor_bill() -> None:
    sonnet = PRICES.rates("claude-3-7-sonnet-20250219")
    bill = cost(
        Usage(
            input_tokens=3, output_tokens=550, cache_read_tokens=0, cache_write_tokens=12_304, cache_write_1h_tokens=0
        ),
        sonnet,
    )
    assert bill.usd == pytest.approx(0.0544, abs=5e-5)
    assert bill.note == ""


def test_reads_and_writes_once_each() -> None:
    p, w, r = 5.0, 6.25, 0.5
    usage = Usage(
        input_tokens=100, output_tokens=0, cache_read_tokens=200, cache_write_tokens=700, cache_write_1h_tokens=0
    )
    assert cost(usage, CAPABLE).usd == pytest.approx((100 * p + 700 * w + 200 * r) / 1e6)


def test_steady_turn_of_a_long_session() -> None:
    usage = Usage(
        input_tokens=0, output_tokens=600, cache_read_tokens=98_000, cache_write_tokens=2_000, cache_write_1h_tokens=0
    )
    assert cost(usage, CAPABLE).usd == pytest.approx(0.0765)


@given(tokens, tokens, tokens, tokens, st.data())
def test_one_hour_writes_are_apart(plain: int, output: int, read: int, write: int, data: st.DataObject) -> None:
    long = data.draw(st.integers(0, write))
    usage = Usage(plain, output, read, write, long)
    expected = plain * 5 + output * 25 + read * 0.5 + (write - long) * 6.25 + long * 10
    assert cost(usage, CAPABLE).usd == pytest.approx(expected / 1e6)


def test_an_unknown_split_is_flagged_where_it_matters() -> None:
    usage = Usage(1, 1, 0, 10)
    assert "5-minute" in cost(usage, CAPABLE).note
    one_lifetime = Rates(input=1, output=1, cache_read=1, cache_write_5m=1)
    assert cost(usage, one_lifetime).note == ""


@pytest.mark.parametrize(
    ("usage", "what"),
    [
        (Usage(1, 0), "input"),
        (Usage(0, 1), "output"),
        (Usage(0, 0, 1), "cache read"),
        (Usage(0, 0, 0, 1), "cache write"),
        (Usage(0, 0, 0, 1, 1), "1-hour cache write"),
    ],
)
def test_a_missing_rate_is_unpriced_only_when_such_tokens_occurred(usage: Usage, what: str) -> None:
    answer = cost(usage, Rates())
    assert answer.usd is None
    assert answer.note.startswith("unpriced")
    assert f"for {what} tokens" in answer.note
    assert cost(Usage(0, 0, 0, 0, 0), Rates()).usd == 0


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input_tokens=1), Usage(output_tokens=1)])
def test_missing_usage_is_unknown(usage: Usage | None) -> None:
    answer = cost(usage, CAPABLE)
    assert answer.usd is None
    assert answer.note.startswith("unknown")


@pytest.mark.parametrize("usage", [Usage(-1, 5), Usage(1, -5), Usage(1, 1, -2), Usage(1, 1, 0, 1, 2)])
def test_usage_that_contradicts_itself_is_unknown(usage: Usage) -> None:
    assert cost(usage, CAPABLE).usd is None
    assert cost(usage, CAPABLE).note.startswith("unknown")


def test_no_rates_is_unpriced() -> None:
    answer = cost(Usage(1, 1), None)
    assert answer.usd is None
    assert answer.note.startswith("unpriced")


@given(st.integers(0, 300_000), st.integers(0, 300_000), st.integers(0, 300_000), st.integers(0, 100_000))
def test_a_tier_reprices_the_whole_request(plain: int, read: int, write: int, output: int) -> None:
    high = Rates(input=10, output=50, cache_read=1, cache_write_5m=12.5, cache_write_1h=20, above_tokens=200_000)
    tiered = Rates(input=5, output=25, cache_read=0.5, cache_write_5m=6.25, cache_write_1h=10, tiers=(high,))
    usage = Usage(plain, output, read, write, 0)
    used = high if plain + read + write > 200_000 else CAPABLE
    assert cost(usage, tiered) == cost(usage, used)


def test_reasoning_at_its_own_rate() -> None:
    rates = Rates(input=1.0, output=8.0, reasoning=3.0)
    assert cost(Usage(0, 100, reasoning_tokens=40), rates).usd == pytest.approx((60 * 8 + 40 * 3) / 1e6)
    assert cost(Usage(0, 100, reasoning_tokens=None), rates).usd == pytest.approx(800 / 1e6)
