"""The breaker: what opens it, for how long, and what a probe does."""

import pytest

from turnout.errors import UpstreamError
from turnout.upstream.health import FIRST_COOLING_S, LONGEST_COOLING_S, OF_JUDGES, TRIP_AFTER, Health


def fail(health: Health, now: float, times: int = 1, **kwargs) -> None:
    for _ in range(times):
        health.begin()
        health.failed(UpstreamError("unavailable", "x", **kwargs), now)


def test_it_takes_several_failures_in_a_row():
    health = Health()
    fail(health, 0, TRIP_AFTER - 1)
    assert health.wait_s(0) == 0
    health.succeeded()
    fail(health, 0, TRIP_AFTER - 1)
    assert health.wait_s(0) == 0
    fail(health, 0)
    assert health.wait_s(0) == FIRST_COOLING_S


def test_after_cooling_one_probe_passes_and_closes_it():
    health = Health()
    fail(health, 0, TRIP_AFTER)
    later = FIRST_COOLING_S + 0.1
    assert health.wait_s(later) == 0
    health.begin()
    assert health.wait_s(later) > 0
    health.succeeded()
    assert health.wait_s(later) == 0


def test_a_failed_probe_cools_twice_as_long_up_to_a_limit():
    health, now = Health(), 0.0
    fail(health, now, TRIP_AFTER)
    waits = []
    for _ in range(8):
        waits.append(health.wait_s(now))
        now += waits[-1] + 0.01
        fail(health, now)
    assert waits == sorted(waits)
    assert waits[1] == pytest.approx(2 * waits[0])
    assert max(waits) == LONGEST_COOLING_S


def test_an_abandoned_probe_lets_the_next_one_pass():
    health = Health()
    fail(health, 0, TRIP_AFTER)
    health.begin()
    health.abandoned()
    assert health.wait_s(FIRST_COOLING_S + 1) == 0


def test_the_later_of_two_retry_afters_wins():
    health = Health()
    health.failed(UpstreamError("rate_limit", "x", retry_after_s=30), 0)
    health.failed(UpstreamError("rate_limit", "x", retry_after_s=5), 1)
    assert health.wait_s(1) == 29
    assert health.rate_limited


@pytest.mark.parametrize("kind", ["overflow", "refused", "auth", "request", "cancelled"])
def test_faults_of_the_request_say_nothing_about_health(kind):
    health = Health()
    for _ in range(3 * TRIP_AFTER):
        health.failed(UpstreamError(kind, "x"), 0)
    assert health.wait_s(0) == 0


def test_a_judge_is_given_up_after_rate_limits_that_state_no_wait_and_refusals_too():
    for kind in ("rate_limit", "auth", "request"):
        judge, target = Health(OF_JUDGES), Health()
        for health in (judge, target):
            for _ in range(TRIP_AFTER):
                health.begin()
                health.failed(UpstreamError(kind, "x"), 0)
        assert judge.wait_s(0) == FIRST_COOLING_S
        assert target.wait_s(0) == 0
