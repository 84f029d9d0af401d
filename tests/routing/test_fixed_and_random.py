"""Passthrough and random."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.conversation import Conversation, Settings
from turnout.routing import Lane, Passthrough, Random, RouterConfig, TargetName, Turn
from turnout.signals import Signals

A, B, C = TargetName("a"), TargetName("b"), TargetName("c")


def turn(number: int = 0, session: str = "s") -> Turn:
    return Turn(f"t{number}", Lane("", session, "", "header"), Conversation(()), Settings(), Signals(), {})


def test_passthrough_always_uses_its_target() -> None:
    decision = Passthrough(A, (B,)).route(turn())
    assert (decision.target, decision.fallbacks, decision.why.source, decision.propensity) == (A, (B,), "fixed", 1.0)
    assert Passthrough(A).otherwise == A


@settings(deadline=None)
@given(st.lists(st.floats(0, 10), min_size=3, max_size=3).filter(lambda w: sum(w) > 0), st.integers(0, 50))
def test_random_records_its_propensity_and_never_uses_weight_zero(weights: list[float], number: int) -> None:
    router = Random((A, B, C), tuple(weights))
    decision = router.route(turn(number))
    at = router.targets.index(decision.target)
    assert weights[at] > 0
    assert decision.propensity == pytest.approx(weights[at] / sum(weights))
    assert router.route(turn(number)) == decision
    assert weights[router.targets.index(router.otherwise)] == max(weights)


def test_random_follows_its_weights() -> None:
    router = Random((A, B), (3.0, 1.0))
    share = sum(router.route(turn(i)).target == A for i in range(4000)) / 4000
    assert 0.71 < share < 0.79


def test_random_per_lane_stays_and_seeds_differ() -> None:
    lane = Random((A, B), per="lane")
    assert len({lane.route(turn(i, "one")).target for i in range(50)}) == 1
    assert len({lane.route(turn(0, f"s{i}")).target for i in range(50)}) == 2
    first, second = Random((A, B), seed=1), Random((A, B), seed=2)
    assert any(first.route(turn(i)).target != second.route(turn(i)).target for i in range(50))


@pytest.mark.parametrize(
    "fields",
    [
        {"targets": []},
        {"targets": ["a", "b"], "weights": [1.0]},
        {"targets": ["a", "b"], "weights": [0.0, 0.0]},
        {"targets": ["a", "b"], "weights": [-1.0, 2.0]},
        {"targets": ["a"], "per": "day"},
        {"targets": ["a"], "unknown": 1},
    ],
)
def test_random_refuses_nonsense(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError)):
        msgspec.convert({"type": "random", **fields}, RouterConfig)


def test_routers_are_read_by_their_type() -> None:
    assert msgspec.convert({"type": "passthrough", "target": "a"}, RouterConfig) == Passthrough(A)
    assert isinstance(msgspec.convert({"type": "stage", "efficient": "a", "capable": "b"}, RouterConfig).otherwise, str)
