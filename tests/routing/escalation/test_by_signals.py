"""Escalation without a judge: doubts that the signals leave are the votes."""

from typing import Any

import msgspec
import pytest
from tests.routing.escalation.test_router import CALM, LOOP, S, W, decided, step, turn, user

from turnout.conversation import Note
from turnout.routing import Escalation, Forward
from turnout.routing.escalation.memory import EscalationMemory, EscalationVoted


def router(**fields: Any) -> Escalation:
    return msgspec.convert({"type": "escalation", "weak": W, "strong": S, "judge_when": "never", **fields}, Escalation)


def test_no_model_is_asked_and_calm_turns_stream_from_the_weak_target() -> None:
    decision, asks = decided(router(), turn())
    assert isinstance(decision, Forward)
    assert (decision.target, asks, decision.remember, decision.why.source) == (W, [], (), "signals")
    assert decision.why.values["algorithm"] == "escalation_by_signals"


def test_doubts_in_a_row_latch() -> None:
    memory = EscalationMemory()
    for number in (1, 2):
        decision, asks = decided(router(confirmations=3), turn(memory, messages=LOOP, number=number))
        assert (decision.target, decision.why.rule, asks) == (W, "voted", [])
        assert decision.remember == (EscalationVoted(f"t{number}", True, 3, asked=False),)
        assert "persistence" in decision.why.values["doubts"]
        memory = memory.after(decision.remember[0])
    decision, _ = decided(router(confirmations=3, note="Take over."), turn(memory, messages=LOOP, number=3))
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.rule, decision.edits) == (S, "latched", (Note("Take over."),))
    memory = memory.after(decision.remember[0])
    held, _ = decided(router(confirmations=3), turn(memory, number=4))
    assert (held.target, held.why.source) == (S, "latch")
    assert "doubts in turn t3" in held.why.sentence


def test_a_calm_turn_breaks_the_streak() -> None:
    decision, _ = decided(router(confirmations=3), turn(EscalationMemory(2), messages=CALM))
    assert EscalationMemory(2).after(decision.remember[0]) == EscalationMemory()


def test_a_new_request_opens_the_latch_where_that_is_asked_for() -> None:
    latched = EscalationMemory(2, True, "t0")
    again = (*LOOP, user("Now write the docs"))
    decision, _ = decided(router(rearm=True), turn(latched, messages=again))
    assert (decision.target, len(decision.remember)) == (W, 1)
    assert decided(router(), turn(latched, messages=again))[0].target == S


def test_turns_that_nothing_ties_to_a_lane_are_not_counted_but_one_doubt_is_enough_where_one_is() -> None:
    decision, _ = decided(router(), turn(messages=LOOP, rung="none"))
    assert (decision.target, decision.why.rule, decision.remember) == (W, "unidentified", ())
    decision, _ = decided(router(confirmations=1), turn(messages=LOOP, rung="none"))
    assert (decision.target, decision.why.rule, decision.remember) == (S, "escalated", ())


def test_what_the_provider_stores_can_move_too_for_nothing_is_discarded() -> None:
    assert decided(router(confirmations=1), turn(messages=LOOP, store=True))[0].target == S


def test_background_calls_stay_with_the_weak_target() -> None:
    decision, _ = decided(router(confirmations=1), turn(messages=(*LOOP, *step(9)), kind="background"))
    assert (decision.target, decision.why.rule) == (W, "background")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"judge": "j"}, "asks no judge"),
        ({"irreversible": ["deploy*"]}, "asks no judge"),
        ({"judge_when": "always"}, "name the target"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=reason):
        router(**fields)
