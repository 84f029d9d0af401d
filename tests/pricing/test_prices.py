"""Look-ups: the same model under every name the field gives it, and None rather than a guess."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from turnout.pricing import Prices
from turnout.pricing.prices import MEMO_AT_MOST
from turnout.upstream.target import Price

PRICES = Prices.load()
SONNET = PRICES.rates("claude-sonnet-4-5")


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4.5",
        "Claude-Sonnet-4-5",
        "claude-sonnet-4-5-latest",
        "claude-sonnet-4-5[1m]",
        "claude-sonnet-4-5@20250929",
        "anthropic/claude-sonnet-4-5",
        "anthropic/claude-sonnet-4.5",
        "vertex_ai/claude-sonnet-4-5@20250929",
        " claude-sonnet-4-5 ",
    ],
)
def test_one_model_many_names(name: str) -> None:
    assert SONNET is not None
    assert PRICES.rates(name) == SONNET


@pytest.mark.parametrize(
    "name",
    [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-east-1:000000000000:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_bedrock_has_prices_of_its_own(name: str) -> None:
    regional = PRICES.rates("us.anthropic.claude-sonnet-4-5-20250929-v1:0", provider="aws")
    assert regional is not None
    assert PRICES.rates(name) == regional


def test_openrouter_by_prefix_and_by_address() -> None:
    by_address = PRICES.rates("anthropic/claude-sonnet-4.5", base_url="https://openrouter.ai/api/v1")
    assert by_address is not None
    assert PRICES.rates("openrouter/anthropic/claude-sonnet-4.5") == by_address
    assert PRICES.rates("anthropic/claude-sonnet-4.5", provider="openrouter") == by_address


def test_free_is_a_price() -> None:
    free = PRICES.rates("deepseek/deepseek-r1:free", base_url="https://openrouter.ai/api/v1")
    assert free is not None
    assert free.input == free.output == 0


@pytest.mark.parametrize(
    "name",
    ["llama3:8b", "deepseek-r1:14b", "gpt-oss:20b", "vendor-small", "", "claude-of-the-future", "acme/gpt-5", "/"],
)
def test_unknown_is_none(name: str) -> None:
    assert PRICES.rates(name) is None


def test_an_address_nobody_knows_leaves_the_model_name() -> None:
    assert PRICES.rates("claude-sonnet-4-5", base_url="http://127.0.0.1:9000/v1") == SONNET


def test_the_provider_wins_over_the_name() -> None:
    assert PRICES.rates("claude-sonnet-4-5", base_url="https://api.openai.com/v1") is None
    assert PRICES.rates("gpt-5", provider="openai") == PRICES.rates("gpt-5")


def test_an_override_wins_and_leaves_the_unstated_unknown() -> None:
    rates = PRICES.rates("claude-sonnet-4-5", override=Price(input=1.0, output=2.0, cache_read=0.1))
    assert rates is not None
    assert (rates.input, rates.output, rates.cache_read) == (1.0, 2.0, 0.1)
    assert rates.cache_write_5m is None
    assert rates.cache_write_1h is None
    assert rates.tiers == ()


def test_prices_have_a_history() -> None:
    before = datetime(2025, 6, 9, tzinfo=UTC).timestamp()
    after = datetime(2025, 6, 11, tzinfo=UTC).timestamp()
    old, new = PRICES.rates("o3", at=before), PRICES.rates("o3", at=after)
    assert old is not None
    assert new is not None
    assert old.input == 10.0
    assert new.input == 2.0


def test_names_from_clients_cannot_grow_the_memory() -> None:
    prices = Prices.load()
    for i in range(MEMO_AT_MOST + 10):
        prices.rates(f"made-up-{i}:x")
    assert len(prices._memo) <= MEMO_AT_MOST


def test_serving_does_not_import_the_source_package() -> None:
    code = (
        "import sys; from turnout.pricing import Prices; Prices.load().rates('gpt-5'); "
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
