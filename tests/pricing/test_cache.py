"""The price of a turn and of a switch, against figures worked out by hand, and what must hold whatever the figures are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.pricing.cache import (
    WHOLE,
    Candidate,
    break_even,
    hour_marks_pay_above,
    keep_alive_pays_above,
    pays_from,
    switch_price,
    token_prices,
    turn_cost,
)
from turnout.pricing.rates import Rates

# USD per million: one dear model and one at a fifth of its price, both with the usual ratios of cache rates.
DEAR = Rates(input=5.0, output=25.0, cache_read=0.5, cache_write_5m=6.25, cache_write_1h=10.0)
CHEAP = Rates(input=1.0, output=5.0, cache_read=0.1, cache_write_5m=1.25, cache_write_1h=2.0)
WHOLE_PROMPT, GROWTH, OUTPUT = 100_000, 2_000, 600
PREFIX = WHOLE_PROMPT - GROWTH


def candidate(rates: Rates, held: float = 0.0) -> Candidate:
    return Candidate(rates, held, OUTPUT, cached_share=1.0)


def usd(rates: Rates, prompt: float, held: float) -> float:
    cost = turn_cost(candidate(rates, held), prompt)
    assert cost is not None
    return cost.usd


def test_a_steady_turn() -> None:
    assert usd(DEAR, WHOLE_PROMPT, PREFIX) == pytest.approx(0.0765)
    assert usd(CHEAP, WHOLE_PROMPT, PREFIX) == pytest.approx(0.0153)


def test_the_same_turn_without_a_cache() -> None:
    for rates, expected in ((DEAR, 0.515), (CHEAP, 0.103)):
        plain = Candidate(Rates(input=rates.input, output=rates.output), output_tokens=OUTPUT)
        cost = turn_cost(plain, WHOLE_PROMPT)
        assert cost is not None
        assert cost.usd == pytest.approx(expected)


@pytest.mark.parametrize(
    ("turns", "warm", "expired"),
    [(1, 0.063, 0.627), (2, 0.013, 0.576), (3, -0.039, 0.525), (5, -0.144, 0.420), (10, -0.420, 0.143)],
)
def test_down_for_some_turns_and_back(turns: int, warm: float, expired: float) -> None:
    for survival, expected in ((1.0, warm), (0.0, expired)):
        price = switch_price(
            candidate(DEAR, WHOLE),
            candidate(CHEAP),
            prefix_tokens=PREFIX,
            growth_tokens=GROWTH,
            turns=turns,
            returns=1.0,
            survival=survival,
        )
        assert price is not None
        assert price.usd == pytest.approx(expected, abs=0.00051)
        assert price.usd == pytest.approx(price.refill_usd + price.running_usd + price.return_usd)


def test_down_with_an_expired_return_pays_from_13_turns_and_from_14_by_the_short_formula() -> None:
    stay, go = candidate(DEAR, WHOLE), candidate(CHEAP)
    place = {"prefix_tokens": PREFIX, "growth_tokens": GROWTH, "returns": 1.0}
    assert pays_from(stay, go, survival=0.0, **place) == 13
    short = break_even(stay, go, expired=True, **place)
    assert short is not None
    assert math.ceil(short) == 14
    assert pays_from(stay, go, **place) == 3


@pytest.mark.parametrize(("turns", "expected"), [(1, 0.63), (2, 0.69), (3, 0.76), (5, 0.89)])
def test_up_from_cold_for_some_turns_and_back(turns: int, expected: float) -> None:
    price = switch_price(
        candidate(CHEAP, WHOLE),
        candidate(DEAR),
        prefix_tokens=PREFIX,
        growth_tokens=GROWTH,
        turns=turns,
        returns=1.0,
    )
    assert price is not None
    assert price.usd == pytest.approx(expected, abs=0.0051)


def session(who: list[str], cold: frozenset[str] = frozenset()) -> float:
    """A session of one turn per name, each model reading what it has seen, but those in `cold` nothing, ever."""
    held = {"dear": 0.0, "cheap": 0.0}
    total = 0.0
    last = ""
    for turn, name in enumerate(who):
        prompt = WHOLE_PROMPT + turn * GROWTH
        if name in cold and last != name:
            held[name] = 0.0
        total += usd(DEAR if name == "dear" else CHEAP, prompt, held[name])
        held[name], last = prompt, name
    return total


def test_twenty_turns_from_cold() -> None:
    assert session(["dear"] * 20) == pytest.approx(2.28, abs=0.005)
    assert session(["cheap"] * 20) == pytest.approx(0.46, abs=0.005)
    assert session(["cheap"] * 10 + ["dear"] * 10) == pytest.approx(1.86, abs=0.005)


def test_twenty_turns_alternating() -> None:
    alternating = ["dear", "cheap"] * 10
    assert session(alternating) == pytest.approx(1.83, abs=0.005)
    expiring = session(alternating, cold=frozenset({"dear"}))
    assert expiring == pytest.approx(7.83, abs=0.005)
    assert expiring / session(["dear"] * 20) == pytest.approx(3.4, abs=0.05)


@pytest.mark.parametrize(
    ("prefix", "gone", "warm", "expired"),
    [
        (5_000, 0.24, 0.46, 2.8),
        (20_000, 0.77, 1.24, 7.5),
        (50_000, 1.4, 1.9, 11),
        (100_000, 1.9, 2.3, 14),
        (150_000, 2.1, 2.5, 15),
    ],
)
def test_turns_a_switch_down_must_last(prefix: int, gone: float, warm: float, expired: float) -> None:
    stay, go = candidate(DEAR, WHOLE), candidate(CHEAP)

    def turns(returns: float, lost: bool) -> float | None:
        return break_even(stay, go, prefix_tokens=prefix, growth_tokens=GROWTH, returns=returns, expired=lost)

    assert turns(0.0, False) == pytest.approx(gone, abs=0.005 if gone < 1 else 0.05)
    # The last of these figures, 2.447, was rounded twice.
    assert turns(1.0, False) == pytest.approx(warm, abs=0.005 if warm < 1.3 else 0.054)
    assert turns(1.0, True) == pytest.approx(expired, abs=0.05 if expired < 10 else 0.5)


def test_what_keeping_a_cache_is_worth() -> None:
    assert keep_alive_pays_above(DEAR, "5m") == pytest.approx(0.087, abs=0.0005)
    assert keep_alive_pays_above(DEAR, "1h") == pytest.approx(0.053, abs=0.0005)
    assert hour_marks_pay_above(DEAR, 100_000, 2_000) == pytest.approx(0.65 * 2_000 / 100_000, rel=0.01)


def test_a_long_prompt_is_priced_whole_by_its_tier() -> None:
    tier = Rates(input=10.0, output=37.5, cache_read=1.0, cache_write_5m=12.5, above_tokens=200_000)
    tiered = Rates(input=5.0, output=25.0, cache_read=0.5, cache_write_5m=6.25, tiers=(tier,))
    below, above = usd(tiered, 200_000, 190_000), usd(tiered, 200_001, 190_000)
    assert below == pytest.approx(usd(DEAR, 200_000, 190_000))
    assert above > 1.4 * below
    grows = switch_price(
        candidate(CHEAP, WHOLE), candidate(tiered), prefix_tokens=197_000, growth_tokens=2_000, turns=2
    )
    one = switch_price(candidate(CHEAP, WHOLE), candidate(tiered), prefix_tokens=197_000, growth_tokens=2_000, turns=1)
    assert grows is not None
    assert one is not None
    # The second turn's prompt has 201,000 tokens: all of it costs double.
    assert grows.usd - one.usd > 1.9 * one.running_usd


def test_what_has_no_price_has_no_switch_price() -> None:
    unpriced = candidate(Rates(output=1.0))
    assert token_prices(unpriced.rates, 10) is None
    assert turn_cost(unpriced, 10) is None
    for a, b in ((unpriced, candidate(DEAR)), (candidate(DEAR), unpriced)):
        assert switch_price(a, b, prefix_tokens=10, growth_tokens=1, turns=1) is None
        assert break_even(a, b, prefix_tokens=10, growth_tokens=1) is None
        assert pays_from(a, b, prefix_tokens=10, growth_tokens=1) is None


def test_without_a_read_rate_nothing_is_discounted_and_without_a_write_rate_writing_is_free() -> None:
    plain = token_prices(Rates(input=2.0, output=8.0), 1_000)
    assert plain is not None
    assert plain.read == plain.new == 2e-6
    free = token_prices(Rates(input=2.0, output=8.0, cache_read=0.5), 1_000)
    assert free is not None
    assert (free.read, free.new) == (0.5e-6, 2e-6)


def test_an_hour_long_write_has_its_own_rate_and_is_charged_by_the_share_that_is_written() -> None:
    long = token_prices(DEAR, 1_000, cached_share=1.0, lifetime="1h")
    half = token_prices(DEAR, 1_000, cached_share=0.5)
    assert long is not None
    assert half is not None
    assert long.new == pytest.approx(10e-6)
    assert half.new == pytest.approx((0.5 * 6.25 + 0.5 * 5.0) * 1e-6)


amounts = st.floats(0.01, 100.0)
tokens = st.integers(1, 500_000)


@st.composite
def rates(draw: st.DrawFn) -> Rates:
    plain = draw(amounts)
    return Rates(
        input=plain,
        output=draw(amounts),
        cache_read=plain * draw(st.floats(0.05, 1.0)),
        cache_write_5m=plain * draw(st.floats(1.0, 2.0)),
    )


@given(rates(), rates(), tokens, st.integers(0, 20_000), st.integers(0, 12), st.floats(0, 1), tokens, tokens)
def test_the_price_of_a_switch_is_what_the_turns_add_up_to(
    a: Rates, b: Rates, n: int, d: int, turns: int, kappa: float, held_a: int, held_b: int
) -> None:
    """One by one: the turns on the other model minus the turns that staying would have taken."""
    stay = Candidate(a, min(held_a, n), 500, kappa)
    go = Candidate(b, min(held_b, n), 300, kappa)
    price = switch_price(stay, go, prefix_tokens=n, growth_tokens=d, turns=max(turns, 1))
    total = 0.0
    for i in range(max(turns, 1)):
        prompt = n + (i + 1) * d
        for sign, one in ((1.0, go), (-1.0, stay)):
            seen = one.held_tokens if i == 0 else n + i * d
            cost = turn_cost(Candidate(one.rates, seen, one.output_tokens, kappa), prompt)
            assert cost is not None
            total += sign * cost.usd
    assert price is not None
    assert price.usd == pytest.approx(total, rel=1e-6, abs=1e-9)


@given(rates(), rates(), tokens, st.integers(1, 20_000), st.lists(st.floats(0, 1), max_size=8))
def test_uncertain_turns_weigh_by_their_chance(a: Rates, b: Rates, n: int, d: int, chances: list[float]) -> None:
    """The price over a distribution of turns is the mean of the prices of each number of turns."""
    stays = sorted(chances, reverse=True)
    stay, go = Candidate(a, WHOLE, 500), Candidate(b, 0.0, 300)

    def price(turns: int | list[float]) -> float:
        found = switch_price(stay, go, prefix_tokens=n, growth_tokens=d, turns=turns, returns=0.4, survival=0.3)
        assert found is not None
        return found.usd

    weights = [x - y for x, y in zip([1.0, *stays], [*stays, 0.0], strict=True)]
    mean = sum(weight * price(turns) for turns, weight in enumerate(weights))
    assert price(stays) == pytest.approx(mean, rel=1e-6, abs=1e-9)


@given(rates(), rates(), tokens, st.integers(1, 20_000))
def test_paying_from_a_turn_means_not_paying_one_turn_earlier(a: Rates, b: Rates, n: int, d: int) -> None:
    stay, go = Candidate(a, WHOLE, 500), Candidate(b, 0.0, 500)
    first = pays_from(stay, go, prefix_tokens=n, growth_tokens=d, at_most=40)

    def price(turns: int) -> float:
        found = switch_price(stay, go, prefix_tokens=n, growth_tokens=d, turns=turns)
        assert found is not None
        return found.usd

    if first is None:
        assert price(40) > -1e-12
    else:
        assert price(first) <= 1e-12
        assert first == 1 or price(first - 1) > -1e-12


@given(rates(), st.integers(0, 300_000), st.integers(0, 300_000), tokens)
def test_holding_more_never_costs_more(a: Rates, held: int, more: int, prompt: int) -> None:
    first = turn_cost(Candidate(a, held), prompt)
    second = turn_cost(Candidate(a, held + more), prompt)
    assert first is not None
    assert second is not None
    assert second.usd <= first.usd + 1e-12
    assert second.read_tokens + second.new_tokens == pytest.approx(prompt)
