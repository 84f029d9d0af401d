"""The snapshot says what genai-prices says: same models, same money."""

import warnings
from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.data import providers
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.conversation import Usage
from turnout.pricing import cost, snapshot
from turnout.pricing.prices import Prices
from turnout.pricing.table import Table, models_of

PRICES = Prices.load()
SOURCES = {(p.id, m.id): (p, m) for p in providers for m in p.models}
PAIRS = sorted((p.id, m.id) for p in PRICES.table.providers for m in models_of(p))
tokens = st.integers(0, 300_000)


def test_the_committed_file_is_what_the_installed_package_gives() -> None:
    assert snapshot.PATH.read_bytes() == snapshot.build(), "run `python -m turnout.pricing.snapshot`"


def test_every_text_model_is_there() -> None:
    missing = [key for key in SOURCES if key not in set(PAIRS)]
    for provider, model in missing:
        prices = SOURCES[provider, model][1].prices
        for price in [p.prices for p in prices] if isinstance(prices, list) else [prices]:
            assert price.input_mtok is None, f"{provider}/{model} has token prices"
    assert len(PAIRS) > 2000


def test_the_terms_of_the_source_travel_with_it() -> None:
    assert "Permission is hereby granted" in PRICES.table.license
    assert isinstance(PRICES.table, Table)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(PAIRS),
    tokens,
    tokens,
    tokens,
    tokens,
    st.floats(0, 1),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),
)
def test_same_money(
    pair: tuple[str, str], plain: int, output: int, read: int, write: int, share: float, when: datetime
) -> None:
    provider, model = SOURCES[pair]
    entry = next(m for p in PRICES.table.providers if p.id == pair[0] for m in models_of(p) if m.id == pair[1])
    rates = entry.rates(when.replace(tzinfo=UTC).timestamp())
    # The source charges what it has no rate for as plain input; we call it unpriced. Compare where both have a rate.
    read, write = read * (rates.cache_read is not None), write * (rates.cache_write_5m is not None)
    long = int(write * share) if rates.cache_write_1h is not None else 0
    output *= rates.output is not None
    theirs = genai_prices.Usage(
        input_tokens=plain + read + write,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=long,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.calc_price(theirs, provider, genai_request_timestamp=when.replace(tzinfo=UTC)).total_price
    ours = cost(Usage(plain, output, read, write, long), rates)
    assert ours.usd is not None
    assert Decimal(ours.usd) == pytest.approx(expected, rel=Decimal("1e-9"), abs=Decimal("1e-12"))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PAIRS))
def test_found_under_its_own_id(pair: tuple[str, str]) -> None:
    provider = SOURCES[pair][0]
    theirs = provider.find_model(pair[1], all_providers=providers)
    ours = next(p for p in PRICES.table.providers if p.id == pair[0])
    found = PRICES.table.model(ours, pair[1].lower())
    if theirs is not None and (provider.id, theirs.id) in set(PAIRS):
        assert found is not None
        assert found.id == theirs.id
