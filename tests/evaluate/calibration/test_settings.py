"""The numbers of a router, and the points of a sweep."""

import pytest

from turnout.evaluate.calibration.settings import AT_MOST, Axis, axis, changed, points, settings_of
from turnout.routing import Affinity, ByAgent, Escalation, Stage, TargetName
from turnout.routing.stage.score import Weights

E, C = TargetName("efficient"), TargetName("capable")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("window=2,3,5", (2, 3, 5)),
        ("threshold=0.1:0.5:0.1", (0.1, 0.2, 0.3, 0.4, 0.5)),
        ("threshold=0.5,0.5", (0.5,)),
        ("confirmations=1:4:1", (1, 2, 3, 4)),
    ],
)
def test_an_axis_is_read(text: str, values: tuple[float, ...]) -> None:
    assert axis(text) == Axis(text.split("=")[0], values)


@pytest.mark.parametrize(
    "text", ["window", "window=", "=3", "window=a", "window=5:1:1", "window=1:2:0", "window=nan", "a=0:1e9:1e-9"]
)
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected NAME=VALUE"):
        axis(text)


def test_settings_are_named_as_in_the_table_and_can_be_changed() -> None:
    for router, prefix in ((Stage(E, C), ""), (Affinity(Stage(E, C)), "router."), (ByAgent(Stage(E, C)), "")):
        own = settings_of(router)
        assert (own[f"{prefix}threshold"], own[f"{prefix}window"], own[f"{prefix}weights.stall"]) == (0.5, 3, 0.75)
        other = changed(router, {f"{prefix}threshold": 1, f"{prefix}weights.stall": 2, f"{prefix}window": 5.0})
        assert settings_of(other) == own | {
            f"{prefix}threshold": 1.0,
            f"{prefix}weights.stall": 2.0,
            f"{prefix}window": 5,
        }
    assert changed(Stage(E, C), {"window": 5}) == Stage(E, C, window=5)
    assert settings_of(Escalation(E, C, judge_when="never"))["confirmations"] == 2


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"treshold": 0.5}, "no such number; it has .*threshold"),
        ({"weights": 1}, "no such number"),
        ({"efficient": 1}, "no such number"),
        ({"window": 2.5}, "not a whole number"),
        ({"threshold": 1.5}, "not between 0 and 1"),
        ({"weights.stall": -1}, "not between 0 and 100"),
    ],
)
def test_settings_that_a_router_does_not_take_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        changed(Stage(E, C), settings)


def test_points_hold_the_policy_in_force_first_and_nothing_twice() -> None:
    found = points(Stage(E, C), [Axis("threshold", (0.5, 0.6)), Axis("window", (3, 4))], 1)
    assert found == [{}, {"window": 4}, {"threshold": 0.6}, {"threshold": 0.6, "window": 4}]
    usual = points(Stage(E, C), [], 1)
    assert usual[0] == {}
    assert len({tuple(sorted(one.items())) for one in usual}) == len(usual)
    assert {name for one in usual for name in one} >= {"threshold", "window", "weights.stall"}
    assert all(changed(Stage(E, C), one) for one in usual)


def test_of_too_many_points_some_are_drawn_by_the_seed() -> None:
    axes = [Axis(f"weights.{name}", tuple(n / 10 for n in range(30))) for name in Weights.__struct_fields__[:4]]
    found = points(Stage(E, C), axes, 7)
    assert AT_MOST - 500 < len(found) <= AT_MOST + 1
    assert found == points(Stage(E, C), axes, 7) != points(Stage(E, C), axes, 8)
