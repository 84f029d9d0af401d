"""What a router is told of prompt caches: the fold of the events, and the price of a switch that follows from it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Conversation, Settings
from turnout.pricing.cache import WHOLE, Candidate, switch_price
from turnout.pricing.caching import Caching
from turnout.pricing.rates import Rates
from turnout.pricing.remaining import CODING
from turnout.routing.core import AgentInfo, Lane, TargetFacts, TargetName, Turn
from turnout.routing.warmth import (
    BIAS_FROM,
    KEY,
    TARGETS_AT_MOST,
    Digests,
    Prefix,
    Warm,
    Warmed,
    Warmth,
    price_of_switch,
    warmth,
)
from turnout.signals import Signals

DEAR = Rates(input=5.0, output=25.0, cache_read=0.5, cache_write_5m=6.25)
CHEAP = Rates(input=1.0, output=5.0, cache_read=0.1, cache_write_5m=1.25)
LARGE, SMALL = TargetName("large"), TargetName("small")
NOW = 1_000_000.0
RULES = Caching(1024, 1, "5m", marked=True)
FACTS = {
    LARGE: TargetFacts(LARGE, "l", "anthropic_messages", rates=DEAR, caching=RULES),
    SMALL: TargetFacts(SMALL, "s", "anthropic_messages", rates=CHEAP, caching=RULES),
}


def warmed(target: str, turn: int, **more: object) -> Warmed:
    """Turn `turn` of a session that grows by 2,000 tokens and 8,000 bytes every 20 seconds."""
    tokens = 10_000 + 2_000 * turn
    fields: dict[str, object] = {"held_tokens": tokens, "output_tokens": 600, "share": 1.0}
    return Warmed(
        target=target,
        at=NOW + 20.0 * turn,
        count=2 * turn + 1,
        size=4 * tokens,
        prompt_tokens=tokens,
        **{**fields, **more},  # type: ignore[arg-type]
    )


def after(*events: Warmed) -> Warmth:
    state = Warmth()
    for event in events:
        state = state.after(event)
    return state


def turn(state: Warmth | None, now: float, **more: object) -> Turn:
    fields: dict[str, object] = {"signals": Signals(), "memory": {} if state is None else {KEY: state}}
    return Turn(
        id="t",
        lane=Lane(session="s", rung="header"),
        conversation=Conversation(()),
        settings=Settings(),
        targets=FACTS,
        now=now,
        **{**fields, **more},  # type: ignore[arg-type]
    )


def test_a_lane_grows() -> None:
    state = after(*(warmed("large", i) for i in range(8)))
    assert (state.turns, state.target, state.prompt_tokens) == (8, "large", 24_000)
    assert state.growth_tokens == pytest.approx(2_000)
    assert state.pace_s == pytest.approx(20)
    assert [one.target for one in state.warm] == ["large"]


def test_a_target_left_behind_keeps_what_it_saw() -> None:
    state = after(warmed("small", 0), *(warmed("large", i) for i in range(1, 5)))
    small = state.of("small")
    assert small is not None
    assert (small.tokens, small.count) == (10_000, 1)


@given(st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 50)), max_size=40))
def test_what_is_kept_of_a_lane_is_bounded_and_newest_last(said: list[tuple[str, int]]) -> None:
    state = after(*(warmed(name, i) for name, i in said))
    names = [one.target for one in state.warm]
    assert len(names) == len(set(names)) <= TARGETS_AT_MOST
    newest = list(dict.fromkeys(name for name, _ in reversed(said)))[:TARGETS_AT_MOST]
    assert names == newest[::-1]
    assert state.turns == len(said)


@given(st.integers(1, 40), st.integers(0, 40))
def test_a_broken_conversation_cuts_all_other_targets_alike(turns: int, kept: int) -> None:
    state = after(*(warmed("small", i) for i in range(turns)))
    before = state.of("small")
    size = 4 * (10_000 + 1_000 * kept)
    broken = state.after(warmed("large", turns, kept=(kept, size)))
    left = broken.of("small")
    assert before is not None
    assert left is not None
    assert left.count == min(before.count, kept if before.count > kept else before.count)
    assert left.tokens <= before.tokens
    if before.count <= kept:
        assert left == before
    assert broken.of("large") is not None


def test_states_survive_the_way_through_json() -> None:
    """As a store in another process keeps them."""
    state = after(*(warmed("large", i, lifetime="1h", predicted=1.0, reported=2.0) for i in range(4)))
    assert msgspec.json.decode(msgspec.json.encode(state), type=Warmth) == state
    prefix = Prefix(Digests(1, 2, 3, 1, b"abcd", b"\xff\x00efgh", 7, 8))
    assert msgspec.json.decode(msgspec.json.encode(prefix), type=Prefix) == prefix
    built = turn(None, NOW, memory={KEY: msgspec.to_builtins(state)})
    assert warmth(built) == state


def test_the_bias_is_the_relative_error_of_the_newest_turns() -> None:
    events = [warmed("large", i, predicted=1.1, reported=1.0) for i in range(BIAS_FROM)]
    assert after(*events[:-1]).of("large").bias is None  # type: ignore[union-attr]
    assert after(*events).of("large").bias == pytest.approx(0.1)  # type: ignore[union-attr]
    exact = [warmed("large", 9 + i, predicted=1.0, reported=1.0) for i in range(60)]
    assert after(*events, *exact).of("large").bias == pytest.approx(0.0, abs=1e-3)  # type: ignore[union-attr]


def test_what_a_provider_does_not_keep_is_trusted_less_each_time() -> None:
    state = after(*(warmed("large", i, trust=0.0) for i in range(12)))
    found = state.candidate(FACTS[LARGE], NOW + 20 * 12)
    assert found is not None
    assert found.held_tokens < 0.03 * state.prompt_tokens


def test_a_candidate_holds_what_has_not_expired() -> None:
    state = after(*(warmed("large", i) for i in range(5)))
    last = NOW + 20 * 4
    held = [state.candidate(FACTS[LARGE], last + idle_s).held_tokens for idle_s in (0, 300, 301)]  # type: ignore[union-attr]
    assert held == [18_000, 18_000, 0]
    hour = after(*(warmed("large", i, lifetime="1h") for i in range(5)))
    found = hour.candidate(FACTS[LARGE], last + 3_000)
    assert found is not None
    assert (found.held_tokens, found.lifetime) == (18_000, "1h")
    cold = state.candidate(FACTS[SMALL], last)
    assert cold is not None
    assert (cold.held_tokens, cold.output_tokens) == (0.0, 600)


def test_tokens_of_another_vocabulary_are_converted() -> None:
    state = after(warmed("small", 0), *(warmed("large", i) for i in range(1, 4)))
    more = msgspec.structs.replace(state.warm[0], prompt_tokens=13_000)
    found = msgspec.structs.replace(state, warm=(more, state.warm[1])).candidate(FACTS[SMALL], NOW)
    assert found is not None
    assert found.token_ratio == pytest.approx(1.3)


def test_the_price_of_a_switch_is_that_of_the_formula() -> None:
    state = after(*(warmed("large", i) for i in range(45)))
    now = NOW + 20 * 45
    price = price_of_switch(turn(state, now), LARGE, SMALL)
    expected = switch_price(
        Candidate(DEAR, WHOLE, 600, state.warm[0].share),
        Candidate(CHEAP, 0.0, 600),
        prefix_tokens=state.prompt_tokens,
        growth_tokens=state.growth_tokens,
        turns=CODING.stays(46),
    )
    assert price is not None
    assert expected is not None
    assert price.usd == pytest.approx(expected.usd)
    assert price.refill_usd > 0 > price.running_usd


def test_late_in_a_session_up_costs_more_than_early() -> None:
    prices = []
    for turns in (2, 10, 40):
        state = after(*(warmed("small", i) for i in range(turns)))
        price = price_of_switch(turn(state, NOW + 20 * turns), SMALL, LARGE)
        assert price is not None
        prices.append(price.refill_usd)
    assert prices == sorted(prices)
    assert prices[0] > 0


def test_staying_where_the_cache_has_expired_is_no_cheaper_than_leaving() -> None:
    state = after(*(warmed("large", i) for i in range(20)))
    soon = price_of_switch(turn(state, NOW + 20 * 20), LARGE, SMALL)
    late = price_of_switch(turn(state, NOW + 20 * 20 + 3600), LARGE, SMALL)
    assert soon is not None
    assert late is not None
    assert soon.refill_usd > 0 > late.refill_usd
    assert late.usd < soon.usd


def test_where_nothing_is_warm_a_switch_costs_only_what_is_spent_on_it() -> None:
    state = after(*(warmed("large", i) for i in range(20)))
    for built in (turn(None, NOW), turn(state, NOW, signals=Signals(compacted=True))):
        price = price_of_switch(built, LARGE, SMALL, extra_usd=0.25)
        assert price is not None
        assert price.usd == 0.25


def test_what_is_unpriced_or_unknown_has_no_switch_price() -> None:
    state = after(*(warmed("large", i) for i in range(3)))
    bare = {**FACTS, SMALL: TargetFacts(SMALL, "s", "openai_chat")}
    built = msgspec.structs.replace(turn(state, NOW), targets=bare)
    assert price_of_switch(built, LARGE, SMALL) is None
    assert price_of_switch(turn(state, NOW), LARGE, TargetName("unheard-of")) is None


def test_a_call_that_nothing_follows_is_priced_for_one_turn() -> None:
    state = after(*(warmed("large", i) for i in range(20)))
    built = turn(state, NOW + 400, agent=AgentInfo(kind="background"))
    price = price_of_switch(built, LARGE, SMALL)
    whole = price_of_switch(turn(state, NOW + 400), LARGE, SMALL)
    assert price is not None
    assert whole is not None
    assert abs(price.running_usd) < abs(whole.running_usd) / 3


def test_a_retried_turn_counts_once_in_what_the_next_one_reads() -> None:
    """A fold from the same earlier state, as the session store does it, is the same state."""
    state = after(*(warmed("large", i) for i in range(3)))
    assert state.after(warmed("large", 3)) == state.after(warmed("large", 3))
    assert isinstance(state.of("large"), Warm)
