"""A turn rebuilt from its record, as a ledger gives it back, is decided as it was; so is its record alone."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.stage.test_choice import LANE, LARGE, SMALL
from tests.routing.stage.test_price import FACTS, NOW, lane
from tests.story import Story

from turnout.conversation import Conversation, Settings
from turnout.ledger.rows import record_of, row_of
from turnout.ledger.trace import TurnRecord
from turnout.routing import Stage, Turn
from turnout.routing.stage.explain import again
from turnout.routing.stage.router import StageMemory
from turnout.routing.warmth import KEY
from turnout.signals import observe

COLUMN = -4
"""Where a row holds the record's text."""


def told(steps: list[str]) -> Story:
    story = Story()
    for at, step in enumerate(steps):
        if step == "fail":
            story.bash(
                f"python x{at % 2}.py", f"Traceback (most recent call last):\nValueError: bad {'abc'[at % 3]}", 1
            )
        elif step == "edit":
            story.call("Edit", {"file_path": f"f{at}"}, f"The file f{at} has been updated.")
        elif step == "green":
            story.bash("pytest", "3 passed in 0.1s", 0)
        elif step == "wrong":
            story.say("It is still wrong.")
        else:
            story.bash(f"cat f{at % 3}", "x = 1", 0)
    return story


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["fail", "fail", "edit", "green", "look", "wrong"]), max_size=14),
    st.sampled_from([2_000, 60_000, 150_000]),
    st.sampled_from([StageMemory(), StageMemory("capable"), StageMemory("capable", 2), StageMemory(cool=1)]),
)
def test_a_recorded_turn_is_decided_again_as_it_was(steps: list[str], tokens: int, memory: StageMemory) -> None:
    signals = observe(told(steps).conversation)
    served = LARGE if memory.tier == "capable" else SMALL
    states: dict[str, Any] = {"/StageMemory": memory, KEY: lane(tokens, served)}
    router = Stage(SMALL, LARGE)
    first = router.route(Turn("t", LANE, Conversation(()), Settings(), signals, FACTS, states, NOW))
    record = TurnRecord(
        id="t", at=NOW, route="r", policy="p", target=first.target, why=first.why, signals=signals, memory=states
    )
    kept = record_of(row_of(record, "signals")[0][COLUMN])
    assert kept.signals is not None
    assert kept.why is not None
    turn = Turn("t", LANE, Conversation(()), Settings(), kept.signals, FACTS, kept.memory, kept.at)
    second = router.route(turn)
    assert (second.target, second.why, second.remember) == (first.target, kept.why, first.remember)
    assert again(kept.why).tier == ("capable" if first.target == LARGE else "efficient")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"weights": {"production": 0.1, "tests_passed": 0.1, "trend": 0.1}, "picker": "capable_first"},
            "threshold 0.5",
        ),
        (
            {"weights": {"production": 0, "tests_passed": 0, "trend": 0}, "picker": "capable_first", "threshold": 0},
            "0.00",
        ),
        ({"window": 1, "threshold": 0.8, "picker": "capable_first"}, "window 1"),
    ],
)
def test_a_configuration_that_never_leaves_the_capable_tier_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError), match=r"weights: the efficient tier can never.*" + says):
        msgspec.convert({"type": "stage", "efficient": "small", "capable": "large", **fields}, Stage)


def test_tiers_out_of_reach_of_the_score_are_warned_of() -> None:
    assert Stage(SMALL, LARGE).concerns() == []
    quiet = msgspec.convert(dict.fromkeys(("severity", "newest", "persistence", "complaint"), 0.0), dict)
    router = msgspec.convert(
        {"type": "stage", "efficient": "s", "capable": "l", "weights": quiet, "threshold": 0.9}, Stage
    )
    ((field, message),) = router.concerns()
    assert field == "weights"
    assert "the capable tier can never be chosen by its score" in message
    assert "rules alone choose it" in message
