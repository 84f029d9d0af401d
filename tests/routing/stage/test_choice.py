"""The order of holds, rules, score, picker and cool-off, and the laws of changing back and forth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Conversation, Settings
from turnout.routing import Lane, Stage, TargetName, Turn
from turnout.routing.stage.choice import choose
from turnout.routing.stage.router import StageMemory
from turnout.routing.stage.score import Case, Weights
from turnout.signals import Observation, Signals

W = Weights()
SMALL, LARGE = TargetName("small"), TargetName("large")
LANE = Lane("", "s", "", "header")

BAD: dict[str, Any] = {"severity": 0.7, "newest": 0.7}
GOOD: dict[str, Any] = {"production": 1.0, "tests_passed": True}
IDLE: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("case", "picker", "expected"),
    [
        (IDLE, "efficient_first", ("efficient", "default", "")),
        (IDLE, "capable_first", ("capable", "default", "")),
        (BAD, "efficient_first", ("capable", "signals", "")),
        (GOOD, "capable_first", ("efficient", "signals", "")),
        ({"severity": 0.7}, "efficient_first", ("efficient", "default", "")),
        ({"severity": 1.0, **GOOD}, "efficient_first", ("capable", "override", "critical_error")),
        ({"repeated": 2, **GOOD}, "efficient_first", ("capable", "override", "repeated_failure")),
        ({"compaction": 1.0, **GOOD}, "efficient_first", ("capable", "override", "compaction")),
        ({"compaction": 0.25}, "efficient_first", ("efficient", "default", "")),
        ({"hold": 1, **GOOD}, "efficient_first", ("capable", "hold", "")),
        ({"hold": 1, "severity": 1.0}, "efficient_first", ("capable", "hold", "")),
        ({"hold": 1, **BAD, "severity": 1.0}, "efficient_first", ("capable", "override", "critical_error")),
        ({"hold": 1, "over": True, **GOOD}, "efficient_first", ("efficient", "signals", "")),
        ({"cool": 1, "severity": 0.7, "spinning": 1.0}, "efficient_first", ("efficient", "hold", "cool_off")),
        ({"cool": 1, **BAD}, "efficient_first", ("capable", "override", "relapse")),
        ({"cool": 1, "severity": 0.7, "newest": 0.3}, "capable_first", ("efficient", "hold", "cool_off")),
        ({"cool": 1}, "capable_first", ("efficient", "hold", "cool_off")),
        ({"cool": 1, **BAD, "severity": 1.0}, "efficient_first", ("capable", "override", "critical_error")),
        ({"cool": 1, **BAD, "repeated": 2}, "efficient_first", ("capable", "override", "repeated_failure")),
        ({"complaint": 1.0}, "efficient_first", ("capable", "signals", "")),
        ({"spinning": 1.0}, "efficient_first", ("capable", "signals", "")),
        ({"trend": -1.0, "severity": 0.7}, "efficient_first", ("capable", "signals", "")),
    ],
)  # fmt: skip
def test_who_decides(case: dict[str, Any], picker: Any, expected: tuple[str, str, str]) -> None:
    found = choose(Case(**case), W, 0.5, picker)
    assert (found.tier, found.source, found.rule) == expected


def test_a_score_of_zero_decides_nothing_at_threshold_zero() -> None:
    assert choose(Case(), W, 0.0, "efficient_first").source == "default"
    assert choose(Case(severity=0.3), W, 0.0, "efficient_first").tier == "capable"


def result(kind: str, at: int) -> Observation:
    if kind == "bad":
        return Observation(
            "bash", "execute", at, status="failed", error_class="capability", error_kind="exception",
            fingerprint=f"f{at}", call=f"c{at}", digest=f"d{at}",
        )  # fmt: skip
    if kind == "critical":
        return Observation(
            "bash", "execute", at, status="failed", error_class="critical", error_kind="oom", fingerprint=f"f{at}",
            call=f"c{at}", digest=f"d{at}",
        )  # fmt: skip
    if kind == "green":
        return Observation(
            "bash", "test", at, status="ok", tests_passed=True, tests_run=2, call=f"c{at}", digest=f"d{at}"
        )
    if kind == "edit":
        return Observation("Edit", "edit", at, status="ok", change="verified", target=f"t{at}", call=f"c{at}")
    return Observation("Read", "read", at, status="ok", call=f"c{at}", digest=f"d{at}")


steps = st.lists(st.sampled_from(["bad", "bad", "read", "read", "edit", "green", "critical", "user"]), max_size=30)
stages = st.builds(
    Stage,
    st.just(SMALL),
    st.just(LARGE),
    threshold=st.sampled_from([0.2, 0.5, 0.8]),
    picker=st.sampled_from(["efficient_first", "capable_first"]),
    window=st.integers(2, 4),
    hold=st.integers(0, 4),
    cool_off=st.integers(0, 4),
)


def played(router: Stage, kinds: list[str]) -> list[Any]:
    """The decisions of a lane, one a turn, and the memory each was made with."""
    memory, seen, depth, found = StageMemory(), [], 0, []
    for at, kind in enumerate(kinds):
        if kind == "user":
            seen, depth = [], 0
        else:
            seen.append(result(kind, at))
            depth += 1
        signals = Signals(tuple(seen), depth=depth, user_turn=kind == "user", results=at)
        turn = Turn(f"t{at}", LANE, Conversation(()), Settings(), signals, {}, {"/StageMemory": memory})
        decision = router.route(turn)
        assert router.route(turn) == decision, "the same turn decides the same"
        found.append((decision, memory))
        for event in decision.remember:
            memory = memory.after(event)
        assert memory.tier == ("capable" if decision.target == LARGE else "efficient")
    return found


@given(stages, steps)
def test_changes_come_no_faster_than_stated(router: Stage, kinds: list[str]) -> None:
    found = played(router, kinds)
    since_down: int | None = None
    since_up: int | None = None
    before = SMALL
    for decision, memory in found:
        source = decision.why.source
        if decision.target != before:
            if decision.target == LARGE:
                if since_down is not None:
                    assert since_down >= router.cool_off or source == "override"
                since_up, since_down = (router.hold if source in ("override", "signals") else 0), None
            else:
                assert since_up is None or since_up <= 0 or decision.why.values["over"]
                since_up, since_down = None, 0
        else:
            since_down = None if since_down is None else since_down + 1
            since_up = None if since_up is None else since_up - 1
            if decision.why.values["over"]:
                since_up = 0
            if decision.target == LARGE and source in ("override", "signals"):
                since_up = router.hold
        assert memory.cool == 0 or memory.tier == "efficient"
        before = decision.target


@given(stages, steps)
def test_rules_are_never_kept_down(router: Stage, kinds: list[str]) -> None:
    for decision, _ in played(router, kinds):
        if decision.why.values["severity"] >= 1 or decision.why.values["repeated"] >= 2:
            assert decision.target == LARGE


@given(stages, steps)
def test_counters_run_out(router: Stage, kinds: list[str]) -> None:
    """Whatever happened, some quiet turns later nothing is held and nothing cools."""
    quiet = ["read"] * (router.hold + router.cool_off + router.window + 1)
    _, memory = played(router, [*kinds, *quiet])[-1]
    assert memory.cool == 0
