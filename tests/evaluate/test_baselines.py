"""Baselines, worked by hand over a few units, and the laws they keep."""

import pytest
from hypothesis import given
from tests.outcomes import SMALL, run, unit, units

from turnout.evaluate.baselines import Baselines, Played, play, weight_of
from turnout.evaluate.pairing import Unit

HAND = [
    unit((True, 4.0), (True, 1.0), "safe"),
    unit((True, 4.0), (False, 2.0), "loss", category="bill"),
    unit((False, 6.0), (True, 1.0), "rescue"),
    unit((False, 2.0), (False, 3.0), "hard"),
]


def figures(some: list[Unit], **weights: float) -> Baselines:
    return Baselines(some, play(some), {name.replace("all", ""): w for name, w in weights.items()}, 200)


def test_the_baselines_of_four_units_are_as_worked_by_hand() -> None:
    found = figures(HAND)
    values = {name: found.figures(name) for name in found.plays}
    assert {name: (one.success.value, one.cost_usd.total.value) for name, one in values.items()} == {
        "capable": (0.5, 16.0),
        "efficient": (0.5, 7.0),
        "oracle": (0.75, 1.0 + 4.0 + 1.0 + 2.0),
        # Efficient first; where it fails the capable one is paid too.
        "cascade": (0.75, 1.0 + (2.0 + 4.0) + 1.0 + (3.0 + 2.0)),
        # The oracle took the efficient model twice in four: half of each.
        "random_mix": (0.5, 11.5),
        # The capable model leads in no category's other tasks.
        "held_out": (0.5, 7.0),
    }
    assert values["oracle"].cost_usd.value == 2.0
    assert values["oracle"].cost_usd.per_completed.value == pytest.approx(8 / 3)
    assert values["capable"].cost_usd.per_completed.value == 8.0
    assert values["oracle"].efficient_share.value == 0.5
    assert values["efficient"].cost_usd.tails is not None
    assert values["efficient"].cost_usd.tails.p50 == 1.5


def test_risk_weighs_lost_tasks_by_category() -> None:
    assert figures(HAND).figures("efficient").risk.value == 0.0
    # One lost task of weight 5 less one gained, over four units.
    assert figures(HAND, bill=5.0).figures("efficient").risk.value == 1.0
    assert figures(HAND, all=3.0).figures("efficient").risk.value == 0.5
    assert figures(HAND, all=9.0, bill=2.0).figures("efficient").risk.value == 0.25
    assert figures(HAND, all=9.0).figures("oracle").risk.value == -0.25
    assert weight_of({}, "x") == 1.0


def test_unknown_costs_leave_the_cost_figures_only() -> None:
    some = [*HAND, unit((True, None), (True, 1.0), "unknown")]
    found = figures(some)
    assert found.n_cost == 4
    assert found.figures("capable").success.value == 0.6
    assert found.figures("capable").cost_usd.value == 4.0
    # Of the four units with costs two succeeded.
    assert found.figures("capable").cost_usd.per_completed.value == 8.0


def test_without_costs_there_are_no_cost_figures() -> None:
    one = figures([unit((True, None), (False, None))]).figures("capable")
    assert one.success.value == 1.0
    assert one.cost_usd.value is None
    assert one.cost_usd.tails is None


def test_a_routed_run_sets_the_share_of_the_mix() -> None:
    made = [
        Unit(
            i,
            one.task,
            "",
            "",
            one.capable,
            one.efficient,
            run(SMALL, True, 3.0, efficient_share=share, judge_cost_usd=0.6),
        )
        for i, (one, share) in enumerate(zip(HAND, (1.0, 0.5, 1.0, 0.5), strict=True))
    ]
    found = figures(made)
    assert found.figures("routed").efficient_share.value == 0.75
    assert found.figures("random_mix").cost_usd.value == pytest.approx(0.75 * 7 / 4 + 0.25 * 16 / 4)
    assert found.judge_share().value == pytest.approx(0.2)
    assert found.success_difference("routed", "capable").value == 0.5


def test_rates_over_trials_choose_by_task() -> None:
    some = [
        unit((True, 4.0), (False, 1.0), "a", "1"),
        unit((True, 4.0), (False, 1.0), "a", "2"),
        unit((False, 4.0), (True, 1.0), "a", "3"),
        unit((True, 4.0), (True, 1.0), "b", "1"),
        unit((False, 4.0), (False, 1.0), "b", "2"),
    ]
    found = play(some)
    # In sample: a goes to capable (2 of 3 against 1 of 3), b is a tie and goes to the cheaper.
    assert [(one.success, one.cost_usd) for one in found["oracle_by_rate"]] == [
        (1, 4.0), (1, 4.0), (0, 4.0), (1, 1.0), (0, 1.0)
    ]  # fmt: skip
    # Held out, a: trials 1 and 2 see a win each (even: the efficient one), trial 3 sees two of capable.
    assert [(one.success, one.cost_usd) for one in found["held_out"]] == [
        (0, 1.0), (0, 1.0), (0, 4.0), (1, 1.0), (0, 1.0)
    ]  # fmt: skip


def test_a_category_speaks_for_tasks_that_were_tried_once() -> None:
    some = [
        unit((True, 4.0), (kind != "hard", 1.0), f"{kind}{i}", "", kind) for kind in ("hard", "easy") for i in range(3)
    ]
    assert [one.cost_usd for one in play(some)["held_out"]] == [4.0] * 3 + [1.0] * 3
    # Of three tasks one is an exception: it cannot be known; the two others see one win in two.
    some[0] = unit((True, 4.0), (True, 1.0), "hard0", "", "hard")
    assert [one.cost_usd for one in play(some)["held_out"]] == [4.0] * 3 + [1.0] * 3
    assert "oracle_by_rate" not in play(some)


def test_tasks_tried_once_in_one_category_leave_nothing_to_go_by() -> None:
    assert "held_out" not in play(HAND[2:])


@given(units())
def test_what_is_held_out_is_not_looked_at(some: list[Unit]) -> None:
    before = play(some).get("held_out")
    for i, one in enumerate(some):
        other = unit((not one.capable.success, 1.0), (one.efficient.success, 2.0), one.task, one.trial, one.category)
        after = play([*some[:i], other, *some[i + 1 :]]).get("held_out")
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert before[i].efficient == after[i].efficient


@given(units())
def test_no_choice_between_two_runs_beats_the_oracle(some: list[Unit]) -> None:
    found = play(some)
    for name in ("capable", "efficient", "random_mix", "cascade", "oracle_by_rate", "held_out"):
        assert all(one.success <= best.success for one, best in zip(found.get(name, []), found["oracle"], strict=False))


@given(units(known=True))
def test_the_cascade_is_as_good_as_the_oracle_and_never_cheaper(some: list[Unit]) -> None:
    found = play(some)
    for one, best in zip(found["cascade"], found["oracle"], strict=True):
        assert one.success == best.success
        assert one.cost_usd is not None
        assert best.cost_usd is not None
        assert one.cost_usd >= best.cost_usd


@given(units())
def test_a_mix_lies_between_its_models(some: list[Unit]) -> None:
    found = play(some)
    for mix, a, b in zip(found["random_mix"], found["capable"], found["efficient"], strict=True):
        assert isinstance(mix, Played)
        assert min(a.success, b.success) <= mix.success + 1e-12
        assert mix.success - 1e-12 <= max(a.success, b.success)
