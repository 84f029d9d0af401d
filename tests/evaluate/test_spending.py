"""Who spent what: every known dollar once, cold caches by hand, and one model alone."""

import pytest
from tests.spent import LARGE, answer, call, rates_of, turn, turns

from turnout.conversation import Usage
from turnout.evaluate.spending import KINDS, alone_usd, kind_of, spending, spent
from turnout.pricing.rates import Rates
from turnout.routing.warmth import CacheUse


def test_every_known_dollar_is_in_one_part() -> None:
    found = spending(turns(), rates_of)
    known = sum(one.cost_usd or 0.0 for record in turns() for one in record.calls)
    assert found.known_usd == pytest.approx(known)
    assert sum(part.usd for part in found.parts) == pytest.approx(known)
    assert found.unknown == 1
    assert {part.kind for part in found.parts} == set(KINDS)
    assert found.alone is None


def test_a_switch_costs_what_was_sent_anew_less_the_price_of_a_read() -> None:
    # 9,000 tokens written to the large model's cache at 6.25 instead of read from it at 0.5 USD per million.
    record = next(one for one in turns() if one.id == "t2")
    found = spent(record, rates_of)
    assert found.by["cold after a switch"] == pytest.approx(9_000 * 5.75 / 1e6)
    assert found.by["discarded"] == 0.004
    assert found.by["judges"] == 0.003
    # Alone it would have read them.
    assert alone_usd(record, LARGE) == pytest.approx((100 * 5 + 50 * 25 + 9_000 * 0.5 + 1_000 * 6.25) / 1e6)


def test_what_expired_is_cold_for_one_model_alone_too() -> None:
    record = next(one for one in turns() if one.id == "t3")
    assert spent(record, rates_of).by["cold otherwise"] == pytest.approx(8_000 * 1.15 / 1e6)
    assert alone_usd(record, LARGE) == pytest.approx((100 * 5 + 50 * 25 + 10_000 * 6.25) / 1e6)


def test_tokens_that_were_not_written_were_sent_at_the_price_of_input() -> None:
    record = turn(
        0,
        "large",
        answer("large", Usage(4_000, 0, 0, 1_000)),
        cache=CacheUse("large", 5_000, lost_tokens=3_000, cause="switch"),
    )
    assert spent(record, rates_of).by["cold after a switch"] == pytest.approx((1_000 * 5.75 + 2_000 * 4.5) / 1e6)


def test_lost_tokens_of_unknown_price_are_said_to_be_unknown() -> None:
    record = turn(
        0,
        "large",
        answer("large", Usage(10, 0, 0, 9_000)),
        cache=CacheUse("large", 9_010, lost_tokens=9_000, cause="switch"),
    )
    for rates in (None, Rates(input=5.0, output=25.0, cache_write_5m=6.25)):
        found = spending([record], lambda target, model, rates=rates: rates)  # type: ignore[misc]
        assert found.cold_unknown == 1
        assert [part.kind for part in found.parts] == ["answers"]


def test_a_price_of_today_takes_no_more_out_of_a_call_than_it_cost() -> None:
    cheap = call("large", 0.001, served=True, usage=Usage(0, 0, 0, 9_000))
    record = turn(0, "large", cheap, cache=CacheUse("large", 9_000, lost_tokens=9_000, cause="switch"))
    found = spent(record, rates_of)
    assert found.by == {"cold after a switch": 0.001, "answers": 0.0}


def test_the_account_of_another_targets_cache_says_nothing_of_this_call() -> None:
    record = turn(
        0,
        "large",
        answer("large", Usage(10, 0, 0, 9_000)),
        cache=CacheUse("small", 9_010, lost_tokens=9_000, cause="switch"),
    )
    assert set(spent(record, rates_of).by) == {"answers"}


@pytest.mark.parametrize(
    ("one", "ended", "kind"),
    [
        (call("small", 1.0, served=True), "ok", "answers"),
        (call("small", 1.0, served=True), "client_gone", "hung up"),
        (call("small", 1.0), "ok", "discarded"),
        (call("small", 1.0, "draft"), "ok", "discarded"),
        (call("small", 1.0, error="timeout"), "ok", "failed"),
        (call("small", 1.0, "judge", error="timeout"), "ok", "judges"),
        (call("small", 1.0, "review"), "ok", "judges"),
    ],
)
def test_what_a_call_was_for(one: object, ended: str, kind: str) -> None:
    assert kind_of(one, turn(0, "small", one, ended=ended)) == kind  # type: ignore[arg-type]
