"""A change of tier has to be worth its price; a rule never asks for it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.stage.test_choice import LANE, LARGE, SMALL, result

from turnout.conversation import Conversation, Settings
from turnout.pricing.caching import Caching
from turnout.pricing.rates import Rates
from turnout.routing import Forward, Lane, Stage, TargetFacts, Turn
from turnout.routing.stage.router import StageMemory, SwitchCosts
from turnout.routing.warmth import KEY, Warmed, Warmth
from turnout.signals import Signals

RULES = Caching(1024, 1, "5m", marked=True)
FACTS = {
    LARGE: TargetFacts(LARGE, "l", "anthropic_messages", rates=Rates(5.0, 25.0, 0.5, 6.25), caching=RULES),
    SMALL: TargetFacts(SMALL, "s", "anthropic_messages", rates=Rates(1.0, 5.0, 0.1, 1.25), caching=RULES),
}
NOW = 1_000_000.0


def lane(tokens: int, target: str, turns: int = 20) -> Warmth:
    """A lane whose newest prompt had so many tokens, served by `target` alone, 2,000 tokens more a turn."""
    found = Warmth()
    for i in range(turns):
        prompt = max(tokens - 2000 * (turns - 1 - i), 1)
        at = NOW - 20.0 * (turns - i)
        found = found.after(Warmed(target, at, 2 * i, 4 * prompt, prompt, 600, prompt, turns=i + 1))
    return found


def asked(
    kinds: list[str], tokens: int, before: str = "efficient", facts: Any = FACTS, turns: int = 20, **fields: Any
) -> Forward:
    served = LARGE if before == "capable" else SMALL
    memory = {"/StageMemory": StageMemory(before), KEY: lane(tokens, served, turns)}  # type: ignore[arg-type]
    signals = Signals(tuple(result(kind, i) for i, kind in enumerate(kinds)), depth=len(kinds))
    turn = Turn("t", LANE, Conversation(()), Settings(), signals, facts, memory, NOW)
    return Stage(SMALL, LARGE, **fields).route(turn)


def test_early_one_failure_is_worth_going_up_and_late_it_is_not() -> None:
    early, late = asked(["bad"], 5_000), asked(["bad"], 150_000)
    assert (early.target, early.why.source) == (LARGE, "signals")
    assert (late.target, late.why.source) == (SMALL, "price")
    assert 0 < early.why.price["cost_usd"] < 0.05 < late.why.price["cost_usd"]
    assert "reading 150000 tokens anew costs $0." in late.why.sentence
    assert late.remember == ()


def test_more_evidence_is_worth_more() -> None:
    assert asked(["bad", "bad", "bad"], 150_000).target == LARGE


def test_late_in_a_session_rules_still_go_up() -> None:
    for kinds in (["critical"], ["read", "critical"]):
        decision = asked(kinds, 400_000)
        assert (decision.target, decision.why.source, decision.why.price) == (LARGE, "override", {})


def test_going_down_has_to_save_money_over_the_turns_that_are_left() -> None:
    good = ["edit", "edit", "green"]
    assert asked(good, 100_000, "capable", switch_price=SwitchCosts(turns=10)).target == SMALL
    kept = asked(good, 100_000, "capable", switch_price=SwitchCosts(turns=1))
    assert (kept.target, kept.why.source) == (LARGE, "price")
    assert "going down would cost $0." in kept.why.sentence
    assert asked(good, 3_000, "capable", switch_price=SwitchCosts(turns=1)).target == SMALL


def test_an_expired_cache_is_no_reason_to_stay() -> None:
    """Both would read the prefix anew: going down saves from the first turn."""
    facts = {name: msgspec.structs.replace(one, caching=None) for name, one in FACTS.items()}
    assert asked(["edit", "green"], 100_000, "capable", facts, switch_price=SwitchCosts(turns=1)).target == SMALL


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"on": False}, LARGE),
        ({"margin": 100.0}, LARGE),
        ({"margin": 0.0}, SMALL),
        ({"evidence_usd": 5.0}, LARGE),
        ({"evidence_usd": 0.01}, SMALL),
    ],
)
def test_what_evidence_is_worth_is_the_operators(fields: dict[str, Any], target: str) -> None:
    assert asked(["bad"], 150_000, switch_price=SwitchCosts(**fields)).target == target


def test_without_prices_it_is_the_operators_choice_too() -> None:
    facts = {name: msgspec.structs.replace(one, rates=None) for name, one in FACTS.items()}
    assert asked(["bad"], 5_000, facts=facts).target == LARGE
    kept = asked(["bad"], 5_000, facts=facts, switch_price=SwitchCosts(unpriced="stay"))
    assert (kept.target, kept.why.source) == (SMALL, "price")
    assert "no known price" in kept.why.sentence


def test_a_first_turn_has_nothing_to_lose() -> None:
    signals = Signals((result("bad", 0),), depth=1)
    turn = Turn("t", LANE, Conversation(()), Settings(), signals, FACTS, now=NOW)
    decision = Stage(SMALL, LARGE, switch_price=SwitchCosts(margin=0.0)).route(turn)
    assert (decision.target, decision.why.price) == (LARGE, {})
    nobody = msgspec.structs.replace(turn, lane=Lane(), memory={KEY: lane(150_000, SMALL)})
    assert Stage(SMALL, LARGE).route(nobody).target == LARGE


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["bad", "read", "edit", "green", "critical"]), min_size=1, max_size=6),
    st.integers(1_000, 900_000),
    st.sampled_from(["efficient", "capable"]),
    st.floats(0, 10),
    st.sampled_from([None, 0.0, 0.5]),
)
def test_the_price_only_ever_keeps_and_never_against_a_rule(
    kinds: list[str], tokens: int, before: str, margin: float, usd: float | None
) -> None:
    free = asked(kinds, tokens, before, switch_price=SwitchCosts(on=False))
    paid = asked(kinds, tokens, before, switch_price=SwitchCosts(margin=margin, evidence_usd=usd))
    if paid.target != free.target:
        assert paid.why.source == "price"
        assert (paid.target == LARGE) == (before == "capable")
    if free.why.source == "override":
        assert (paid.target, paid.why.source) == (LARGE, "override")


@pytest.mark.parametrize("fields", [{"margin": -1.0}, {"evidence_usd": -0.1}, {"returns": 1.5}, {"turns": 0}])
def test_nonsense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError)):
        msgspec.convert(fields, SwitchCosts)
