"""Decisions taken apart: from the record alone they come out the same, and every stated change really changes them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.stage.test_choice import LARGE, SMALL, played, stages, steps
from tests.routing.stage.test_price import FACTS, NOW, asked, lane
from tests.routing.stage.test_router import Session

from turnout.routing import Why
from turnout.routing.stage.choice import choose, priced
from turnout.routing.stage.explain import Explained, again, explain
from turnout.routing.stage.price import Quote
from turnout.routing.stage.router import SwitchCosts
from turnout.routing.stage.score import Case, Weights
from turnout.routing.warmth import KEY


def kept(why: Why) -> Why:
    """As a ledger gives it back."""
    return msgspec.json.decode(msgspec.json.encode(why), type=Why)


@settings(deadline=None)
@given(stages, steps)
def test_a_recorded_decision_comes_out_the_same(router: Any, kinds: list[str]) -> None:
    for decision, _ in played(router, kinds):
        choice = again(kept(decision.why))
        assert (SMALL if choice.tier == "efficient" else LARGE) == decision.target
        assert (choice.source, choice.rule, choice.score) == (
            decision.why.source, decision.why.rule, decision.why.score,
        )  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from(["bad", "read", "edit", "green", "critical"]), min_size=1, max_size=6),
    st.sampled_from([2_000, 50_000, 150_000, 500_000]),
    st.sampled_from(["efficient", "capable"]),
    st.sampled_from([0.2, 0.5, 0.9]),
)
def test_stated_changes_change_it_and_nothing_smaller_does(
    kinds: list[str], tokens: int, before: str, threshold: float
) -> None:
    why = kept(asked(kinds, tokens, before, threshold=threshold).why)
    found = explain(why)
    assert found is not None
    assert found.same
    assert found.evidence == pytest.approx(sum(term.product for term in found.terms))
    assert [change.size for change in found.changes] == sorted(change.size for change in found.changes)
    for change in found.changes:
        assert change.tier != found.tier
        assert changed(why, change.input, change.then) == change.tier
        if abs(change.then - change.now) > 1e-3 and change.input not in ("tests_passed", *COUNTS):
            nearer = change.now + (change.then - change.now) * 0.99
            assert changed(why, change.input, nearer) == found.tier


COUNTS = ("repeated_calls", "repeated", "hold", "cool")


def changed(why: Why, name: str, value: float) -> str:
    """The tier with one input changed, decided afresh."""
    case = msgspec.convert({field: why.values[field] for field in Case.__struct_fields__}, Case)
    quote = msgspec.convert(why.price, Quote) if why.price else None
    threshold = why.threshold or 0.0
    if name == "threshold":
        threshold = value
    elif name == "cost_usd":
        assert quote is not None
        quote = msgspec.structs.replace(quote, cost_usd=value)
    elif name == "severity":
        case = msgspec.structs.replace(case, severity=value, newest=min(case.newest, value))
    elif name == "newest":
        case = msgspec.structs.replace(case, newest=value, severity=max(case.severity, value))
    else:
        kind = type(getattr(case, name))
        case = msgspec.structs.replace(case, **{name: kind(value)})
    weights = msgspec.convert(why.basis["weights"], Weights)
    return priced(choose(case, weights, threshold, why.basis["picker"]), case, quote).tier


def test_signals_are_told_with_the_calls_they_come_from() -> None:
    session = Session().edit().fail()
    decision = session.turn()
    from turnout.signals import observe

    found = explain(kept(decision.why), observe(session.story.conversation))
    assert found is not None
    by_name = {term.signal: term for term in found.terms}
    (worst,) = by_name["severity"].seen
    assert (worst.message, worst.tool, worst.status) == (4, "bash", "failed")
    assert "ValueError" in worst.text
    assert by_name["newest"].seen == by_name["severity"].seen
    assert by_name["production"].seen[0].tool == "Edit"
    assert by_name["production"].product == 0.0, "a failure that stands newest takes it away"
    assert (by_name["severity"].product, by_name["newest"].product) == (1.0, 0.25)
    assert found.changes[0].tier == "efficient"


def test_a_single_hard_failure_would_have_stayed_at_a_higher_threshold() -> None:
    found = explain(Session().fail().turn().why)
    assert found is not None
    changes = {change.input: change for change in found.changes}
    assert changes["threshold"].then == pytest.approx(found.score, abs=1e-5)
    assert changes["newest"].then == pytest.approx((found.needs["capable"] - 1) / 0.25 * 0.7, abs=1e-4)  # type: ignore[operator]
    assert {"severity", "production"} & set(changes)


def test_the_options_are_priced_by_what_is_warm() -> None:
    why = asked(["read"], 100_000).why
    found = explain(why, memory={KEY: lane(100_000, SMALL)}, targets=FACTS, now=NOW)
    assert found is not None
    small, large = found.options
    assert (small.tier, small.target, large.tier) == ("efficient", SMALL, "capable")
    assert (small.warm_tokens or 0) > 90_000 > 10_000 > (small.cold_tokens or 0)
    assert (large.warm_tokens, (large.cold_tokens or 0) > 100_000) == (0, True)
    assert (large.usd or 0) > 10 * (small.usd or 0) > 0
    assert explain(why).options == ()  # type: ignore[union-attr]


def test_what_the_price_kept_is_told_with_the_price_that_would_have_done() -> None:
    why = kept(asked(["bad"], 150_000).why)
    found = explain(why)
    assert found is not None
    assert found.price is not None
    change = next(change for change in found.changes if change.input == "cost_usd")
    assert change.then == pytest.approx(found.evidence * found.price.unit_usd, rel=1e-4)
    assert why.source == "price"


def test_other_decisions_are_not_explained() -> None:
    assert explain(Why("fixed", "It is the only one.")) is None
    why = Session().fail().turn().why
    assert explain(msgspec.structs.replace(why, basis={**why.basis, "formula": "stage 1"})) is None


def test_an_explanation_is_plain_json() -> None:
    found = explain(kept(asked(["bad"], 150_000, switch_price=SwitchCosts(margin=2.0)).why))
    assert msgspec.json.decode(json.dumps(msgspec.to_builtins(found)).encode(), type=Explained) == found
