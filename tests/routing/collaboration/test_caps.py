"""What a request has taken, and when it may take no more."""

import pytest

from turnout.conversation import Reply, Usage
from turnout.pricing.rates import Rates
from turnout.routing.collaboration.caps import Caps, Taken
from turnout.routing.core import Failure

RATES = Rates(input=1.0, output=2.0)


def test_calls_tokens_and_money_add_up_and_a_call_in_flight_counts_as_the_largest() -> None:
    taken = Taken()
    taken.add(Reply((), usage=Usage(100, 10)), RATES)
    taken.add(Reply((), usage=Usage(40, 5)), RATES)
    assert (taken.calls, taken.tokens) == (2, 155)
    assert taken.usd == pytest.approx((140 + 2 * 15) / 1e6)
    assert not taken.refuses(Caps(calls=3, tokens=265, usd=0.000291), 1)
    assert taken.refuses(Caps(calls=3), 2) == "calls"
    assert taken.refuses(Caps(tokens=264), 1) == "tokens"
    assert taken.refuses(Caps(usd=0.000289), 1) == "usd"


@pytest.mark.parametrize(
    ("failure", "calls", "tokens"),
    [
        (Failure("timeout"), 2, 220),
        (Failure("malformed"), 2, 220),
        (Failure("rate_limit", status=429), 2, 110),
        (Failure("unavailable", reason="breaker"), 1, 110),
    ],
)
def test_what_a_failed_call_counts(failure: Failure, calls: int, tokens: int) -> None:
    taken = Taken()
    taken.add(Reply((), usage=Usage(100, 10)), RATES)
    assert taken.add(failure, RATES) == (None, None)
    assert (taken.calls, taken.tokens) == (calls, tokens)
