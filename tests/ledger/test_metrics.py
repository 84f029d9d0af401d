"""Metrics: what a scrape reads is what was observed."""

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.ledger.records import turn

from turnout.conversation import Usage
from turnout.ledger.metrics import Metrics
from turnout.ledger.trace import Call
from turnout.ledger.writer import Health


def _scrape(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = metrics.render().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _value(metrics: Metrics, name: str, **labels: str) -> float:
    return _scrape(metrics)[name, frozenset(labels.items())]


def test_a_turn_is_counted_where_it_belongs() -> None:
    metrics = Metrics()
    for i in range(3):
        metrics.observe(turn(i))
    metrics.observe(turn(9, ended="cut"))
    assert _value(metrics, "turnout_turns_total", route="coder", target="small", source="signals", ended="ok") == 3
    assert _value(metrics, "turnout_turns_total", route="coder", target="small", source="signals", ended="cut") == 1
    assert _value(metrics, "turnout_tokens_total", route="coder", target="small", kind="cache_read") == 1200
    assert _value(metrics, "turnout_tokens_total", route="coder", target="small", kind="output") == 80
    assert _value(metrics, "turnout_cost_usd_total", route="coder", target="small", purpose="answer") == pytest.approx(
        0.004
    )
    assert _value(metrics, "turnout_turn_seconds_count", route="coder", target="small") == 4
    assert _value(metrics, "turnout_turn_seconds_sum", route="coder", target="small") == 4.0


def test_histogram_buckets_are_cumulative_and_bounds_belong_to_them() -> None:
    metrics = Metrics()
    for seconds in (0.01, 1.0, 1.0001, 1e9):
        metrics.observe(turn(total_s=seconds))

    def bucket(le: str) -> float:
        return _value(metrics, "turnout_turn_seconds_bucket", route="coder", target="small", le=le)

    assert bucket("0.05") == 1
    assert bucket("1.0") == 2
    assert bucket("2.5") == 3
    assert bucket("320.0") == 3
    assert bucket("+Inf") == 4


def test_judges_failures_retries_and_recoveries() -> None:
    metrics = Metrics()
    calls = (
        Call("small", "s", "draft", usage=Usage(10, 5, reasoning_tokens=4), cost_usd=0.1),
        Call("judge", "j", "judge", error="rate_limit", retries=2),
        Call("large", "l", served=True, usage=Usage(10, 5), cost_usd=0.5, retries=1),
    )
    metrics.observe(turn(calls=calls, target="large"))
    assert _value(metrics, "turnout_upstream_calls_total", target="judge", purpose="judge", outcome="rate_limit") == 1
    assert _value(metrics, "turnout_upstream_calls_total", target="small", purpose="draft", outcome="ok") == 1
    assert _value(metrics, "turnout_upstream_retries_total", target="judge") == 2
    assert _value(metrics, "turnout_recovered_total", target="large", by="retry") == 1
    assert _value(metrics, "turnout_recovered_total", target="large", by="fallback") == 1
    assert _value(metrics, "turnout_cost_usd_total", route="coder", target="small", purpose="draft") == pytest.approx(
        0.1
    )
    assert _value(metrics, "turnout_reasoning_tokens_total", route="coder", target="small") == 4


def test_missing_costs_are_counted_by_reason() -> None:
    metrics = Metrics()
    metrics.observe(turn(cost_usd=None, cost_note="unpriced: no price is known for this model"))
    metrics.observe(turn(cost_usd=None, cost_note="unknown: the provider reported no usage"))
    metrics.observe(turn(cost_usd=0.0))
    assert _value(metrics, "turnout_cost_missing_turns_total", route="coder", target="small", why="unpriced") == 1
    assert _value(metrics, "turnout_cost_missing_turns_total", route="coder", target="small", why="unknown") == 1


def test_a_refused_request_has_no_latency() -> None:
    metrics = Metrics()
    metrics.observe(turn(ended="rejected", calls=(), target="", why=None))
    assert _value(metrics, "turnout_turns_total", route="coder", target="", source="", ended="rejected") == 1
    assert not any(name.startswith("turnout_turn_seconds") for name, _ in _scrape(metrics))


def test_requests_in_flight_drops_and_the_ledger() -> None:
    metrics = Metrics(lambda: Health(ok=False, queued=7, written=40, spilled=3, dropped=1, error="database is locked"))
    metrics.request("/v1/messages", 200)
    metrics.in_flight += 2
    metrics.observe(turn(drops=3, format="openai_chat", upstream_format="anthropic_messages"))
    assert _value(metrics, "turnout_requests_total", endpoint="/v1/messages", status="200") == 1
    assert _value(metrics, "turnout_requests_in_flight") == 2
    formats = {"format": "openai_chat", "upstream_format": "anthropic_messages"}
    assert _value(metrics, "turnout_dropped_fields_total", route="coder", **formats) == 3
    assert _value(metrics, "turnout_ledger_healthy") == 0
    assert _value(metrics, "turnout_ledger_queue") == 7
    assert _value(metrics, "turnout_ledger_dropped_total") == 1
    assert _value(metrics, "turnout_ledger_written_total") == 40


def test_a_scrape_may_run_beside_the_loop() -> None:
    metrics, stop, faults = Metrics(), threading.Event(), []

    def scrape() -> None:
        while not stop.is_set():
            try:
                metrics.render()
            except Exception as error:
                faults.append(error)

    thread = threading.Thread(target=scrape)
    thread.start()
    for i in range(3000):
        metrics.observe(turn(i, target=f"t{i % 50}"))
    stop.set()
    thread.join()
    assert faults == []


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    metrics.observe(turn(route='a "quoted"\nroute\\'))
    assert _value(metrics, "turnout_decision_seconds_count", route='a "quoted"\nroute\\') == 1
