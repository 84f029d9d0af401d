"""Costs with and without prompt caches, from the tokens of each call."""

import pytest
from tests.outcomes import BIG, run
from tests.recorded import needs_recordings, shared

from turnout.evaluate.cache_effects import cache_effect
from turnout.evaluate.outcomes import Call, read
from turnout.pricing import Prices, Rates

RATES = Rates(input=10.0, output=100.0, cache_read=1.0)
CALLS = (Call(1000, 0, 10), Call(1500, 800, 10))


def test_each_case_is_priced_as_worked_by_hand() -> None:
    found = cache_effect([run(BIG, True, calls=CALLS)], lambda model: RATES)
    output = 20 * 100 / 1e6
    assert found.recorded == pytest.approx(output + (1000 * 10 + 700 * 10 + 800 * 1) / 1e6)
    assert found.warm == pytest.approx(output + (1000 * 10 + 500 * 10 + 1000 * 1) / 1e6)
    assert found.cold == pytest.approx(output + (1000 * 10 + 1500 * 10) / 1e6)


def test_writes_are_charged_where_they_have_a_rate() -> None:
    rates = Rates(input=10.0, output=100.0, cache_read=1.0, cache_write_5m=12.5)
    found = cache_effect([run(BIG, True, calls=CALLS)], lambda model: rates)
    assert found.warm == pytest.approx((20 * 100 + 1000 * 12.5 + 500 * 12.5 + 1000 * 1) / 1e6)


def test_runs_without_calls_or_prices_are_said_to_lack_them() -> None:
    some = [run(BIG, True, calls=CALLS), run(BIG, True)]
    assert "1 of 2 runs" in cache_effect(some, lambda model: RATES).reason
    assert "no price" in cache_effect(some[:1], lambda model: None).reason
    assert "no price" in cache_effect(some[:1], lambda model: Rates(input=1.0, output=1.0)).reason
    assert cache_effect([], lambda model: RATES).recorded is None


@needs_recordings
def test_recorded_calls_price_to_what_their_harness_recorded() -> None:
    folder = shared()
    assert folder is not None
    runs = read(folder / "data" / "traces" / "traj_miniswe_gemini3pro_swebench_verified.jsonl.gz").outcomes
    found = cache_effect(runs, Prices.load().rates)
    recorded = sum(one.cost_usd or 0.0 for one in runs)
    assert found.recorded == pytest.approx(recorded, rel=0.02)
    assert found.warm is not None
    assert found.cold is not None
    assert found.recorded is not None
    assert found.warm < found.recorded < found.cold
