"""Signals to a score: tables, bounds, monotony, and what each side can reach."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.routing.stage.choice import choose
from turnout.routing.stage.score import IDLE, Case, Weights, needed, reach, squashed, terms, units
from turnout.signals import Observation, Signals, progress

W = Weights()
HARD = {"severity": 0.7, "newest": 0.7}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({}, 0.0),
        ({"severity": 0.3}, 3 / 7),
        ({"severity": 0.3, "newest": 0.3}, 3 / 7 * 1.25),
        ({"severity": 0.7}, 1.0),
        (HARD, 1.25),
        ({"severity": 1.0, "newest": 1.0}, 1.25),
        ({**HARD, "persistence": 0.5}, 1.75),
        ({**HARD, "persistence": 1.0, "spinning": 1.0}, 3.5),
        ({"spinning": 1.0}, 1.25),
        ({"spinning": 0.5, "exploring": 1.0, "stall": 1.0}, 0.75),
        ({"repeated_calls": 1}, 0.0),
        ({"repeated_calls": 2}, 0.375),
        ({"repeated_calls": 9}, 0.75),
        ({"complaint": 1.0}, 1.5),
        ({"trend": -1.0}, 0.5),
        ({"trend": 1.0}, -0.5),
        ({"production": 1.0}, -1.0),
        ({"production": 1.0, **HARD}, 1.25),
        ({"production": 0.7, "severity": 0.7, "newest": 0.35}, 1.0 + 0.125 - 0.35),
        ({"tests_passed": True}, -1.0),
        ({"tests_passed": True, "production": 1.0}, -2.0),
    ],
)  # fmt: skip
def test_evidence_in_units(case: dict[str, Any], expected: float) -> None:
    assert units(Case(**case), W) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("evidence", "score"),
    [(0, 0), (0.54, 0.255), (1, 0.456), (1.25, 0.554), (1.75, 0.725), (3, 1), (9, 1), (-1, -0.572), (-2, -1), (-5, -1)],
)
def test_the_squashing(evidence: float, score: float) -> None:
    assert squashed(evidence) == pytest.approx(score, abs=5e-4)
    if 0 < abs(score) < 1:
        assert needed(squashed(evidence)) == pytest.approx(evidence)


level = st.floats(0, 1)
severities = st.sampled_from([0.0, 0.3, 0.7, 1.0])
weights = st.builds(
    Weights, **{name: st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 4.0]) for name in Weights.__struct_fields__}
)
cases = st.builds(
    Case,
    severity=severities,
    persistence=level,
    complaint=level,
    spinning=level,
    stall=level,
    repeated_calls=st.integers(0, 6),
    exploring=level,
    production=level,
    tests_passed=st.booleans(),
    trend=st.floats(-1, 1),
).flatmap(lambda case: severities.map(lambda newest: msgspec.structs.replace(case, newest=min(newest, case.severity))))


@given(cases, weights)
def test_the_terms_add_up_to_the_evidence(case: Case, w: Weights) -> None:
    found = terms(case, w)
    assert [term.signal for term in found] == list(Weights.__struct_fields__)
    assert sum(term.product for term in found) == pytest.approx(units(case, w), abs=1e-9)
    for term in found:
        assert 0 <= term.share <= 1
        assert term.outdone or abs(term.product) == pytest.approx(term.weight * term.share)
    assert sum(term.signal in IDLE and term.product > 0 for term in found) <= 1


@given(cases, weights, st.data())
def test_no_signal_ever_speaks_for_the_other_side(case: Case, w: Weights, data: st.DataObject) -> None:
    up = data.draw(st.sampled_from(["persistence", "complaint", "spinning", "stall", "exploring"]))
    more = msgspec.structs.replace(case, **{up: data.draw(st.floats(getattr(case, up), 1))})
    assert units(more, w) >= units(case, w)
    again = msgspec.structs.replace(case, repeated_calls=case.repeated_calls + 1)
    assert units(again, w) >= units(case, w)
    made = msgspec.structs.replace(case, production=data.draw(st.floats(case.production, 1)))
    assert units(made, w) <= units(case, w)
    assert units(msgspec.structs.replace(case, tests_passed=True), w) <= units(case, w)
    better = msgspec.structs.replace(case, trend=data.draw(st.floats(case.trend, 1)))
    assert units(better, w) <= units(case, w)


@given(cases, weights, st.floats(0, 1), st.sampled_from(["efficient_first", "capable_first"]), st.data())
def test_more_severity_never_moves_towards_efficient(
    case: Case, w: Weights, threshold: float, picker: Any, data: st.DataObject
) -> None:
    worse = msgspec.structs.replace(case, severity=data.draw(st.sampled_from([0.3, 0.7, 1.0])))
    worse = msgspec.structs.replace(worse, severity=max(worse.severity, case.severity))
    worse = msgspec.structs.replace(worse, newest=data.draw(st.sampled_from([case.newest, worse.severity])))
    assert units(worse, w) >= units(case, w) - 1e-9
    before, after = choose(case, w, threshold, picker), choose(worse, w, threshold, picker)
    # Below the threshold the picker decides: more evidence can leave the efficient side, never enter it.
    if before.source == "signals" and before.tier == "capable":
        assert after.tier == "capable"
    if after.source == "signals" and after.tier == "efficient":
        assert before.tier == "efficient"


@given(cases, weights, st.integers(1, 8))
def test_scores_stay_in_reach_of_what_can_come_together(case: Case, w: Weights, window: int) -> None:
    assert -1 <= squashed(units(case, w)) <= 1
    far = reach(w, window)
    assert 0 <= far.capable <= 1
    assert 0 <= far.efficient <= 1


def failing(window: int) -> Signals:
    """As bad as a window can be without a rule: different hard failures, deep into the task."""
    seen = [
        Observation("bash", "read", i, status="ok", digest="d", call="c") if i < 12 else Observation(
            "bash", "execute", i, status="failed", evidence="exit_code", error_class="capability",
            error_kind="exception", fingerprint=f"f{i}", call=f"c{i}", digest=f"d{i}",
        )
        for i in range(12 + window)
    ]  # fmt: skip
    return Signals(tuple(seen), depth=12 + window, results=len(seen))


def going_well(window: int) -> Signals:
    """As good as a window can be: verified changes, then green tests."""
    change = Observation("Edit", "edit", status="ok", change="verified", target="a", call="e", digest="x")
    green = Observation("bash", "test", status="ok", tests_passed=True, tests_run=3, call="t", digest="y")
    return Signals((*[change] * (window - 1), green) if window > 1 else (change,), depth=1)


@settings(deadline=None)
@given(st.floats(0, 1, exclude_min=True), st.integers(2, 6), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_a_tier_is_reached_by_its_score_exactly_when_it_is_said_to_be(threshold: float, window: int, by: float) -> None:
    """`reach` is no more than real windows come to, for the signals that one window shows."""
    w = Weights(*[by * getattr(W, name) if name in SHOWN else 0.0 for name in Weights.__struct_fields__])
    far = reach(w, window)
    for side, signals in (("capable", failing(window)), ("efficient", going_well(window))):
        score = squashed(units(seen_as_case(signals, window), w))
        assert (abs(score) >= threshold) == (getattr(far, side) >= threshold), side


SHOWN = ("severity", "newest", "persistence", "production", "tests_passed")


def seen_as_case(signals: Signals, window: int) -> Case:
    seen = progress(signals, window)
    newest = progress(signals, 1).severity
    shared = {name: getattr(seen, name) for name in Case.__struct_fields__ if hasattr(seen, name)}
    return Case(**{**shared, "newest": newest})


def test_with_the_default_weights_each_side_reaches_exactly_one() -> None:
    for window in range(2, 65):
        assert reach(W, window).capable == reach(W, window).efficient == 1.0
    assert reach(W, 1).efficient == pytest.approx(0.572, abs=1e-3)


@pytest.mark.parametrize("weight", [-0.1, 101, float("nan")])
def test_weights_are_checked(weight: float) -> None:
    with pytest.raises(ValueError, match="severity"):
        Weights(severity=weight)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"stall": weight}, Weights)
