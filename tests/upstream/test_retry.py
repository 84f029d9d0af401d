"""What is tried again on the same target, and after how long."""

import pytest

from turnout.errors import UpstreamError
from turnout.upstream.retry import LONGEST_DELAY_S, LONGEST_WAIT_S, delay_s


@pytest.mark.parametrize("kind", ["overflow", "refused", "auth", "request", "timeout", "malformed", "cancelled"])
def test_what_will_fail_again_is_not_retried(kind):
    assert delay_s(UpstreamError(kind, "x"), 0) is None


def test_delays_grow_with_jitter_and_stay_bounded():
    for attempt in range(10):
        delays = {delay_s(UpstreamError("unavailable", "x", status=503), attempt) for _ in range(50)}
        assert len(delays) > 10
        assert all(d is not None and 0 < d <= LONGEST_DELAY_S for d in delays)


def test_a_stated_wait_is_kept_to_or_left_to_another():
    delays = [delay_s(UpstreamError("rate_limit", "x", retry_after_s=2), 0) for _ in range(50)]
    assert all(d is not None and 2 <= d <= 3 for d in delays)
    assert delay_s(UpstreamError("rate_limit", "x", retry_after_s=LONGEST_WAIT_S + 1), 0) is None


def test_no_wait_beyond_the_deadline():
    assert delay_s(UpstreamError("rate_limit", "x", retry_after_s=2), 0, left_s=1.5) is None
