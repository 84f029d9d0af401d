"""Routes, weights and rewards against values worked by hand."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from turnout.train.credit import (
    Episode,
    Route,
    RouteBy,
    Shaping,
    Thresholds,
    Weights,
    calibrated,
    credit,
    format_score,
    repeated_share,
    route_of,
    weight_of,
)

BOTH = Episode(
    answer="oslo",
    golds=("Oslo",),
    gold_passages=("x born in y", "y capital oslo"),
    lookups=(("x born in y",), ("y capital oslo", "x born in y")),
    steps=3,
    well_formed=3,
)


def test_the_four_routes() -> None:
    assert route_of(True, True) is Route.FAITHFUL
    assert route_of(True, False) is Route.SHORTCUT
    assert route_of(False, True) is Route.EVIDENCE
    assert route_of(False, False) is Route.FAILURE


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("both", (1.0, 0.5, 0.3, 1.0)),
        ("correctness", (1.0, 1.0, 0.3, 0.3)),
        ("path", (1.0, 0.5, 1.0, 0.5)),
        ("none", (1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_weights_by_route(by: RouteBy, expected: Sequence[float]) -> None:
    routes = (Route.FAITHFUL, Route.SHORTCUT, Route.EVIDENCE, Route.FAILURE)
    assert tuple(weight_of(route, Weights(), by) for route in routes) == tuple(expected)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="down must be 0 or more"):
        Weights(down=-0.1)


def test_a_faithful_success_by_hand() -> None:
    earned = credit(BOTH, Thresholds(), Weights(), Shaping())
    # union: x born in y y capital oslo (7 tokens); gold 1 has 4 of 4: 2*4/11; gold 2 has 3 of 3: 2*3/10
    path = (8 / 11 + 6 / 10) / 2
    assert earned.route is Route.FAITHFUL
    assert (earned.exact, earned.f1, earned.coverage, earned.weight) == (True, 1.0, 1.0, 1.0)
    assert earned.path == pytest.approx(path)
    assert earned.terms == pytest.approx(
        {
            "base": -1.0,
            "format": 1.0,
            "answer": 1.0,
            "path": 0.5 * path,
            "explored": 0.2,
            "stopped_early": 0.0,
            "ran_out": 0.0,
            "repeated": -0.1 * 0.5,
        }
    )
    assert earned.reward == pytest.approx(1.0 + 0.5 * path + 0.2 - 0.05)


def test_a_shortcut_is_right_without_evidence() -> None:
    episode = replace(BOTH, lookups=(), steps=1, well_formed=1)
    earned = credit(episode, Thresholds(), Weights(), Shaping(format="every_step"))
    assert (earned.route, earned.weight, earned.path) == (Route.SHORTCUT, 0.5, 0.0)
    assert earned.reward == pytest.approx(-1 + 1 + 1.0 - 0.25)
    by_graph_r1 = credit(episode, Thresholds(), Weights(), Shaping())
    assert by_graph_r1.terms == {"base": -1.0, "format": 0.5}


def test_running_out_without_an_answer_is_a_joint_failure() -> None:
    episode = replace(BOTH, answer=None, lookups=(("z",), ("z",)), steps=2, well_formed=2, ran_out=True)
    earned = credit(episode, Thresholds(), Weights(), Shaping())
    assert earned.route is Route.FAILURE
    assert earned.reward == pytest.approx(-1 + 1 - 0.5 - 0.1)


def test_evidence_found_but_answered_wrongly() -> None:
    earned = credit(replace(BOTH, answer="rome"), Thresholds(), Weights(), Shaping())
    assert (earned.route, earned.weight, earned.f1) == (Route.EVIDENCE, 0.3, 0.0)
    assert earned.terms["explored"] == 0.0


def test_thresholds_count_from_their_value_on() -> None:
    half = replace(BOTH, answer="oslo x", golds=("oslo y",))  # F1 0.5
    assert credit(half, Thresholds(correct=0.5), Weights(), Shaping()).correct
    assert not credit(half, Thresholds(correct=0.51), Weights(), Shaping()).correct
    path = credit(BOTH, Thresholds(), Weights(), Shaping()).path
    assert credit(BOTH, Thresholds(path=path), Weights(), Shaping()).route is Route.FAITHFUL
    assert credit(BOTH, Thresholds(path=path + 1e-9), Weights(), Shaping()).route is Route.SHORTCUT


@pytest.mark.parametrize("term", ["path", "explored", "stopped_early", "ran_out", "repeated"])
def test_each_term_can_be_switched_off_alone(term: str) -> None:
    episodes = [
        BOTH,
        replace(BOTH, lookups=(("z",),)),
        replace(BOTH, answer=None, ran_out=True, lookups=(("z",), ("z",))),
    ]
    on, off = Shaping(), replace(Shaping(), **{term: 0.0})
    changed = False
    for episode in episodes:
        with_it = credit(episode, Thresholds(), Weights(), on).terms
        without = credit(episode, Thresholds(), Weights(), off).terms
        changed |= with_it[term] != 0.0
        assert without == {**with_it, term: 0.0}
    assert changed


def test_format_by_both_rules() -> None:
    assert [format_score(n, n, "half_per_step") for n in (0, 1, 2, 5)] == [0.0, 0.5, 1.0, 1.0]
    assert format_score(4, 1, "half_per_step") == 0.5
    assert [format_score(n, n, "every_step") for n in (0, 1, 2)] == [0.0, 1.0, 1.0]
    assert format_score(4, 1, "every_step") == 0.125


def test_repeats_are_counted_by_look_up() -> None:
    assert repeated_share([["a", "b"], ["b", "c"], ["a", "c"], []]) == pytest.approx(0.5 + 1.0)
    assert repeated_share([]) == 0.0


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=4))
def test_a_first_look_up_repeats_nothing(lookups: list[list[str]]) -> None:
    assert 0.0 <= repeated_share(lookups) <= max(0, len(lookups) - 1)
    assert repeated_share(lookups[:1]) == 0.0


def test_calibration_separates_what_covered_the_gold() -> None:
    found = calibrated([0.0, 0.02, 0.05, 0.3, 0.4, 0.5], [0.0, 0.1, 0.2, 0.9, 1.0, 0.8])
    assert found.suggested == pytest.approx(0.175)
    assert (found.below, found.separation) == (0.5, 1.0)
    assert sum(found.counts) == 6
    assert len(found.edges) == len(found.counts) + 1


def test_calibration_falls_back_to_the_median() -> None:
    flat = calibrated([0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert (flat.suggested, flat.separation) == (0.2, None)
    with pytest.raises(ValueError, match="at least one"):
        calibrated([], [])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_calibration_counts_every_trajectory(pairs: list[tuple[float, float]]) -> None:
    result = calibrated([path for path, _ in pairs], [share for _, share in pairs])
    assert sum(result.counts) == len(pairs)
    assert result.below == sum(path < result.suggested for path, _ in pairs) / len(pairs)
