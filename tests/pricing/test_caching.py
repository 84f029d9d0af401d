"""Rules of providers' caches: sizes, steps, lifetimes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.pricing import Prices
from turnout.pricing.caching import Caching, Lifetime, caching_of, survival
from turnout.pricing.rates import Rates

lifetimes: list[Lifetime] = ["5m", "1h", "memory", "24h"]
PRICED = Rates(input=1.0, output=1.0, cache_read=0.1)


def test_too_short_a_prefix_is_not_cached_and_a_long_one_in_whole_steps() -> None:
    rules = Caching(1024, 128)
    assert [rules.whole(n) for n in (0, 1023, 1024, 1151, 1152, 5000)] == [0, 0, 1024, 1024, 1152, 4992]


@pytest.mark.parametrize(
    ("lifetime", "sure_s", "gone_s"), [("5m", 300, 301), ("1h", 3600, 3601), ("memory", 300, 3600)]
)
def test_a_prefix_lives_as_long_as_promised_and_no_longer_than_it_may(
    lifetime: Lifetime, sure_s: float, gone_s: float
) -> None:
    assert survival(sure_s, lifetime) == 1.0
    assert survival(gone_s, lifetime) == 0.0
    assert Caching(1024, 128).held(2000, sure_s, lifetime) == 1920
    assert Caching(1024, 128).held(2000, gone_s, lifetime) == 0


@given(st.sampled_from(lifetimes), st.floats(0, 1e6), st.floats(0, 1e6))
def test_survival_never_rises_with_time(lifetime: Lifetime, first: float, later: float) -> None:
    assert 0.0 <= survival(first + later, lifetime) <= survival(first, lifetime) <= 1.0


@given(st.integers(0, 10**6), st.integers(1, 5000), st.integers(1, 512))
def test_no_more_is_held_than_there_is(tokens: int, least: int, step: int) -> None:
    whole = Caching(least, step).whole(tokens)
    assert 0 <= whole <= tokens
    assert whole % step == 0
    assert whole == 0 or tokens - whole < step


def test_vendors() -> None:
    assert caching_of("claude-sonnet-4-5", "anthropic_messages", PRICED) == Caching(1024, 1, "5m", True)
    assert caching_of("claude-haiku-4-5", "anthropic_messages", PRICED) == Caching(4096, 1, "5m", True)
    assert caching_of("anthropic/claude-3-5-haiku", "openai_chat", PRICED) == Caching(2048, 1, "5m", True)
    assert caching_of("openai/gpt-5.1-codex", "openai_responses", PRICED) == Caching(1024, 128, "memory")
    assert caching_of("deepseek-chat", "openai_chat", PRICED) == Caching(64, 64, "24h")
    assert caching_of("google/gemini-3-pro-preview", "openai_chat", PRICED) == Caching(2048, 2048, "memory")
    assert caching_of("kimi-k2", "openai_chat", PRICED) == Caching(1024, 1, "memory")


def test_without_a_price_for_reads_nothing_is_known_of_a_cache() -> None:
    assert caching_of("claude-sonnet-4-5", "anthropic_messages", None) is None
    assert caching_of("llama3", "openai_chat", Rates(input=1.0, output=1.0)) is None


def test_the_shipped_prices_know_the_large_vendors_caches() -> None:
    prices = Prices.load()
    for model in ("claude-sonnet-4-5", "gpt-5", "deepseek-chat", "gemini-2.5-pro"):
        assert caching_of(model, "openai_chat", prices.rates(model)) is not None, model
