"""Limits are checked with the most a call may use, and what is in flight is set aside."""

from hypothesis import given
from hypothesis import strategies as st

from turnout.peers.review.journal import Entry
from turnout.upstream.buying.budget import Budget, Held, Limits, Size


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    st.integers(0, 20),
    st.integers(0, 500),
    st.floats(0, 5),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.floats(0, 1), st.floats(0, 1)), max_size=30),
    st.data(),
)
def test_no_limit_is_exceeded_while_calls_keep_to_their_size(
    calls: int, tokens: int, usd: float, wanted: list[tuple[int, int, float, float]], data: st.DataObject
) -> None:
    budget = Budget(Limits(calls, tokens, usd), Clock())
    held: list[tuple[Held, float]] = []
    for tokens_in, tokens_out, price, share in wanted:
        size = Size(tokens_in, tokens_out, price)
        if not budget.refuses(size):
            held.append((budget.hold(size), share))
        while held and data.draw(st.booleans()):
            call, share = held.pop()
            call.sent = 1
            if data.draw(st.booleans()):
                call.broken = 1
                again = not call.again()
                call.sent += again
                call.settle((1 + again) * call.size.tokens, (1 + again) * (call.size.usd or 0.0))
            else:
                call.settle(int(call.size.tokens * share), (call.size.usd or 0.0) * share)
        assert budget.calls <= calls
        assert budget.tokens <= tokens
        assert budget.usd <= usd + 1e-9


def test_what_a_journal_holds_counts() -> None:
    spent = [Entry("k", "score", "q", "m", tries=3, input_tokens=10, output_tokens=5, usd=0.5)]
    assert Budget(Limits(calls=4), Clock(), spent).refuses(Size(1, 1)) == ""
    assert Budget(Limits(calls=3), Clock(), spent).refuses(Size(1, 1)) == "calls"
    assert Budget(Limits(tokens=16), Clock(), spent).refuses(Size(1, 1)) == "tokens"
    assert Budget(Limits(usd=0.6), Clock(), spent).refuses(Size(1, 1, 0.2)) == "usd"


def test_no_call_begins_that_is_likely_to_end_too_late() -> None:
    clock = Clock()
    budget = Budget(Limits(seconds=10), clock)
    assert budget.refuses(Size(1, 1), expected_s=4) == ""
    clock.now = 7
    assert budget.refuses(Size(1, 1), expected_s=4) == "time"
    assert budget.left_s() == 3
    clock.now = 11
    assert budget.left_s() == 0


def test_a_request_turned_away_is_a_call_and_one_that_broke_off_a_size_more() -> None:
    budget = Budget(Limits(calls=3, tokens=10), Clock())
    call = budget.hold(Size(2, 2))
    assert call.again() == ""
    call.broken = 1
    assert call.again() == ""
    assert call.again() == "calls"
    assert (budget.held_calls, budget.held_tokens) == (3, 8)
    call.sent = 2
    call.settle(6, 0.0)
    assert (budget.calls, budget.tokens, budget.held_calls, budget.held_tokens) == (2, 6, 0, 0)
    assert budget.refuses(Size(2, 2)) == ""
    assert budget.refuses(Size(3, 2)) == "tokens"


def test_an_interrupted_call_gives_back_what_was_set_aside() -> None:
    budget, size = Budget(Limits(usd=0.35), Clock()), Size(1, 1, 0.1)
    calls = []
    while not budget.refuses(size):
        calls.append(budget.hold(size))
    assert len(calls) == 3
    for call in calls:
        call.settle(0, 0.0)
    assert (budget.calls, budget.usd, budget.refuses(Size(1, 1, 0.35))) == (0, 0.0, "")
