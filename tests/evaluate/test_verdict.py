"""The verdict follows its stated rule."""

import pytest
from tests.outcomes import unit

from turnout.evaluate.baselines import Baselines, play
from turnout.evaluate.pairing import Unit
from turnout.evaluate.verdict import Verdict, verdict


def judged(some: list[Unit], margin: float = 0.02, **weights: float) -> Verdict:
    return verdict(
        Baselines(some, play(some), {name.replace("all", ""): w for name, w in weights.items()}, 500), margin
    )


def many(*kinds: tuple[int, tuple[bool, float | None], tuple[bool, float | None]]) -> list[Unit]:
    some = [(capable, efficient) for count, capable, efficient in kinds for _ in range(count)]
    return [unit(capable, efficient, str(i)) for i, (capable, efficient) in enumerate(some)]


def routed(*kinds: tuple[int, tuple[bool, float], tuple[bool, float], tuple[bool, float]]) -> list[Unit]:
    some = [rest for count, *rest in kinds for _ in range(count)]
    return [unit(a, b, str(i), routed=c) for i, (a, b, c) in enumerate(some)]


YES, NO = (True, 10.0), (False, 10.0)
yes, no = (True, 1.0), (False, 1.0)


def test_an_efficient_model_that_does_as_well_leaves_nothing_to_route() -> None:
    found = judged(many((300, YES, yes), (100, NO, no)))
    assert found.answer == "does not pay"
    assert "efficient model alone does as well" in found.sentence
    assert "10% of its cost" in found.sentence


def test_a_capable_model_that_is_no_dearer_leaves_nothing_to_route() -> None:
    found = judged(many((300, (True, 1.0), (True, 2.0)), (100, (True, 1.0), (False, 2.0))))
    assert found.answer == "does not pay"
    assert "capable model alone" in found.sentence


def test_tasks_tried_once_show_no_headroom_beyond_luck() -> None:
    found = judged(many((200, YES, yes), (100, YES, no), (100, NO, no)))
    assert found.answer == "not enough data"
    assert "no control" in found.sentence
    assert found.more_tasks is None


def repeated(*kinds: tuple[int, tuple[bool, ...], tuple[bool, ...]]) -> list[Unit]:
    some = [(c, e) for count, c, e in kinds for _ in range(count)]
    return [
        unit((a, 10.0), (b, 1.0), str(i), str(trial))
        for i, (capable, efficient) in enumerate(some)
        for trial, (a, b) in enumerate(zip(capable, efficient, strict=True))
    ]


def test_tasks_that_keep_their_outcome_can_be_routed() -> None:
    found = judged(repeated((60, (True, True), (True, True)), (40, (True, True), (False, False))))
    assert (found.answer, found.basis) == ("pays", "headroom")
    assert found.sentence.startswith("Pays: at best, a choice by each task's other trials is as good")
    assert "46% of its cost" in found.sentence


def test_what_only_luck_decides_does_not_pay_though_the_oracle_gains() -> None:
    # What happened in the other trial always points the wrong way.
    found = judged(repeated((100, (True, False), (False, True)), (60, (True, True), (False, False))))
    assert found.answer == "not enough data"
    assert "is not as good as the capable model" in found.sentence


def test_categories_can_be_routed_without_repeated_trials() -> None:
    some = [unit((True, 10.0), (i < 200, 1.0), str(i), "", "easy" if i < 200 else "hard") for i in range(300)]
    assert judged(some).answer == "pays"
    assert "at best, a choice by the task's category is as good" in judged(some).sentence


def test_an_oracle_that_saves_nothing_leaves_nothing_to_route() -> None:
    found = judged(many((100, (True, 10.0), (False, 1.0)), (100, (True, 10.0), (True, 10.0))))
    assert found.answer == "does not pay"
    assert "not even the oracle" in found.sentence


def test_a_router_as_good_as_the_capable_model_for_less_pays() -> None:
    found = judged(routed((200, YES, yes, yes), (100, YES, no, YES), (50, NO, no, no)))
    assert (found.answer, found.basis) == ("pays", "routed")
    assert all(one.holds is not None for one in found.criteria)


@pytest.mark.parametrize(
    ("some", "why"),
    [
        (routed((200, YES, yes, yes), (100, YES, no, no)), "loses more tasks"),
        (routed((200, YES, yes, (True, 11.0)), (100, YES, no, (True, 11.0))), "no cheaper"),
        (routed((200, YES, yes, (True, 5.0)), (100, NO, no, (False, 5.0))), "efficient model alone does as well"),
    ],
)
def test_a_router_that_is_worse_or_dearer_or_needless_does_not_pay(some: list[Unit], why: str) -> None:
    found = judged(some)
    assert found.answer == "does not pay"
    assert why in found.sentence


def test_a_few_tasks_are_not_enough_and_the_sentence_says_how_many_are() -> None:
    found = judged(routed((20, YES, yes, yes), (3, YES, no, YES), (1, YES, no, no)))
    assert found.answer == "not enough data"
    assert found.more_tasks is not None
    assert found.more_tasks > 0
    assert f"about {found.more_tasks:,} more tasks" in found.sentence


def test_weights_of_lost_tasks_turn_the_verdict() -> None:
    # One lost for one gained: even, unless a loss weighs more.
    some = routed((300, YES, yes, yes), (30, YES, no, no), (30, NO, yes, yes), (100, YES, no, YES))
    assert judged(some, 0.05).answer == "pays"
    assert judged(some, 0.05, all=4.0).answer == "does not pay"


def test_without_costs_nothing_can_pay() -> None:
    found = judged(many((100, (True, None), (False, None))))
    assert found.answer == "not enough data"
    assert "cost" in found.sentence


def test_without_units_there_is_not_enough_data() -> None:
    found = judged([])
    assert found.answer == "not enough data"
    assert "no task was run by both" in found.sentence


def test_nine_tasks_settle_nothing() -> None:
    assert judged(many((9, YES, yes))).answer == "not enough data"
    assert judged(many((10, YES, yes))).answer == "does not pay"


def test_a_figure_inside_its_bound_is_not_enough_where_its_interval_is_not() -> None:
    # One task lost in a hundred: 0.01 is below the margin of 0.02, its interval is not.
    found = judged(routed((69, YES, yes, yes), (30, YES, no, YES), (1, YES, no, no)))
    assert found.answer == "not enough data"
    assert found.criteria[0].holds is None
    assert found.criteria[0].difference.value == pytest.approx(0.01)


def test_two_models_that_solve_nothing_are_not_said_to_do_well() -> None:
    assert judged(many((300, NO, no))).sentence.endswith("neither solves any of these tasks.")
    assert "neither" not in judged(many((299, NO, no), (1, YES, yes))).sentence
