"""Whole ledgers are replayed: exactly for the router that made them, by its own memory for another, never by guesses."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lived import FAILED, PASSED, PRICES, TARGETS, Life, reply

from turnout.evaluate.replay_report import ReplayReport, Tally
from turnout.evaluate.replaying import Candidate, Replayed, Replaying
from turnout.ledger.rows import COLUMNS, record_of, row_of
from turnout.ledger.trace import TurnRecord
from turnout.routing import (
    Affinity,
    Ask,
    Escalation,
    Forward,
    Outcome,
    Passthrough,
    Random,
    Router,
    Stage,
    TargetName,
    Turn,
    Why,
)

SMALL, LARGE, JUDGE = TargetName("small"), TargetName("large"), TargetName("judge")
RECORD = COLUMNS.index("record")
STAGE = Stage(SMALL, LARGE, threshold=0.4)


def kept(records: Iterable[TurnRecord]) -> list[TurnRecord]:
    """Records as they come back from a ledger, without their bodies."""
    return [record_of(row_of(record, "full")[0][RECORD]) for record in records]


def candidate(router: Router, policy: str = "another") -> Candidate:
    """A router to replay."""

    def fault(error: Exception) -> Forward:
        return Forward(router.otherwise, Why("fault", f"it failed: {error}", rule=type(error).__name__))

    return Candidate("coder", router, policy, fault)


def replayed(records: list[TurnRecord], router: Router, policy: str = "another") -> list[Replayed]:
    """What a router decides on these turns."""
    bodies = {record.id: record.request for record in records}
    chosen = candidate(router, policy)
    return list(Replaying(lambda _: chosen, TARGETS, bodies.get).turns(kept(records)))


def told(turns: Iterable[Replayed]) -> ReplayReport:
    """The report on them."""
    tally = Tally()
    for turn in turns:
        tally.add(turn)
    return tally.report()


STEPS = st.lists(
    st.sampled_from(("fails", "fails", "passes", "says", "again", "back", "lost", "other")), min_size=3, max_size=14
)


def lived(steps: list[str], router: Router, **more: Any) -> Life:
    """A session of these steps."""
    life = Life(router, **more)
    for n, step in enumerate(steps):
        before = len(life.messages)
        if step in ("fails", "lost"):
            life.result(FAILED)
        elif step == "passes":
            life.result(PASSED)
        elif step == "other":
            life.result(f"Traceback (most recent call last):\nValueError: {n % 2}", f"python run{n % 3}.py")
        elif step == "says":
            life.say(f"that is not it yet ({n})")
        elif step == "back" and before > 3:
            del life.messages[-2:]
            life.result(PASSED if n % 2 else FAILED, f"pytest tests/test_b{n}.py")
        life.turn(kept=step != "lost")
    return life


@settings(max_examples=25)
@given(STEPS)
def test_a_ledger_replays_exactly_for_its_router_and_equally_from_the_routers_own_decisions(steps: list[str]) -> None:
    records = lived(steps, STAGE).records
    own = replayed(records, STAGE, "live")
    assert [turn.different for turn in own] == [()] * len(records)
    again = replayed(records, STAGE, "another name for the same")
    assert [turn.decision for turn in again] == [turn.decision for turn in own]
    assert all(turn.agrees for turn in (*own, *again))
    for report in (told(own), told(again)):
        assert report.agreement == 1.0
        assert report.cost.candidate_usd == report.cost.live_usd
        assert report.unsupported == {}


@settings(max_examples=25)
@given(STEPS)
def test_what_another_router_decides_is_what_it_decides_when_it_lives_through_the_same(steps: list[str]) -> None:
    """Stage routers choose by results, so the same session comes about whoever serves: replaying one on the other's ledger must
    give what it decided itself, holds and cool-offs included."""
    other = Stage(SMALL, LARGE, threshold=0.9, hold=3, cool_off=1)
    live, alone = lived(steps, STAGE), lived(steps, other)
    found = replayed(live.records, other)
    decided = kept(alone.records)
    assert [turn.decision.target for turn in found if turn.decision] == [record.target for record in decided]
    assert [msgspec.to_builtins(turn.decision.why) for turn in found if turn.decision] == [
        msgspec.to_builtins(record.why) for record in decided
    ]


def test_a_changed_decision_of_its_own_is_found_and_said() -> None:
    records = lived(["fails"] * 4, STAGE).records
    cautious = msgspec.structs.replace(STAGE, threshold=0.99)
    report = told(replayed(records, cautious, "live"))
    assert report.own.turns == 4
    assert report.own.exact < 4
    assert any("threshold 0.99 instead of 0.4" in line for line in report.own.different[0].differences)


def test_a_flip_says_from_where_to_where_and_what_made_the_difference() -> None:
    report = told(replayed(lived(["passes", "passes"], STAGE).records, Passthrough(LARGE)))
    (flip, *_) = report.flips
    assert (flip.was.target, flip.now.target, flip.now.source) == ("small", "large", "fixed")
    assert flip.was.sentence
    assert flip.now.sentence
    assert flip.changed["source"][1] == "fixed"
    assert report.flipped[0].was == "small"
    assert sum(pair.turns for pair in report.flipped) == report.replayed - report.agreed == len(report.flips)
    assert report.now == {"large": 2}
    stage = told(replayed(lived(["fails", "fails"], Passthrough(SMALL)).records, STAGE)).flips[0]
    assert stage.signals["severity"] > 0


def judge(escalate: bool) -> Any:
    def answers(ask: Ask) -> Outcome:
        return reply(
            json.dumps({"reason": "a loop", "escalate": escalate}) if ask.purpose == "judge" else "I try again."
        )

    return answers


ESCALATION = Escalation(SMALL, LARGE, JUDGE)


def test_calls_come_from_the_recording_and_what_follows_a_missing_one_is_unknown() -> None:
    life = lived(["fails"] * 4, ESCALATION, full=True, answers=judge(True))
    assert [record.why.rule for record in life.records if record.why] == ["voted", "latched", "", ""]
    own = told(replayed(life.records, ESCALATION, "live"))
    assert (own.own.exact, own.replayed, own.agreement) == (4, 4, 1.0)
    at_once = replayed(life.records, msgspec.structs.replace(ESCALATION, confirmations=1))
    assert [turn.decision.target if turn.decision else turn.reason for turn in at_once] == ["large"] * 4
    patient = replayed(life.records, msgspec.structs.replace(ESCALATION, confirmations=3))
    # From the third turn on the recorded router asked nobody any more.
    assert [turn.reason for turn in patient] == [None, None, "call", "memory"]
    assert told(patient).unsupported == {"call": 1, "memory": 1}
    without = replayed(life.records, Random((SMALL, LARGE)))
    assert all(turn.decision for turn in without)


def test_a_router_that_remembers_nothing_goes_on_after_a_missing_call() -> None:
    life = lived(["fails"] * 3, Passthrough(SMALL), full=True)
    careless = Escalation(SMALL, LARGE, JUDGE)
    assert [turn.reason for turn in replayed(life.records, careless)] == ["call", "memory", "memory"]
    # A conversation that begins anew has nothing to remember.
    del life.messages[1:]
    life.turn()
    assert [turn.reason for turn in replayed(life.records, careless)] == ["call", "memory", "memory", "call"]


def test_what_was_said_is_read_where_it_is_kept_and_missed_where_it_is_not() -> None:
    pinned = Affinity(Random((SMALL, LARGE)), until="user_turn")
    life = lived(["fails", "says", "fails"], pinned, full=True)
    assert told(replayed(life.records, pinned, "live")).own.exact == 3
    bare = [msgspec.structs.replace(record, request=None) for record in life.records]
    assert told(replayed(bare, pinned, "live")).unsupported == {"conversation": 3}
    for_good = Affinity(Random((SMALL, LARGE), per="lane"))
    assert "conversation" in told(replayed(bare, for_good)).unsupported
    assert told(replayed(bare, STAGE)).unsupported == {}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ended": "rejected", "why": None}, "refused"),
        ({"ended": "client_gone", "why": None}, "unfinished"),
        ({"ended": "client_gone", "why": None, "route": "", "policy": ""}, "unfinished"),
        ({"signals": None}, "signals"),
    ],
)
def test_turns_that_were_never_decided_are_counted_by_reason(changes: dict[str, Any], reason: str) -> None:
    records = lived(["fails", "fails", "passes"], STAGE).records
    records[1] = msgspec.structs.replace(records[1], **changes)
    report = told(replayed(records, STAGE, "live"))
    assert report.unsupported == {reason: 1}
    assert report.own.exact == 2


def test_a_turn_without_a_route_in_the_configuration_is_counted() -> None:
    records = kept(lived(["fails"], STAGE).records)
    assert [turn.reason for turn in Replaying(lambda _: None, TARGETS).turns(records)] == ["route"]


class Broken(Passthrough, frozen=True):
    """Fails where tests fail."""

    def route(self, turn: Turn) -> Forward:
        if turn.signals.observations:
            raise ValueError("no")
        return super().route(turn)


def test_a_router_that_raises_decides_as_it_did() -> None:
    life = lived(["says", "fails"], Passthrough(SMALL))
    found = replayed(life.records, Broken(SMALL))
    assert [turn.decision.why.source for turn in found if turn.decision] == ["fixed", "fault"]


def test_an_imported_turn_agrees_by_the_model_that_served() -> None:
    records = [
        msgspec.structs.replace(record, route="imported:codex", policy="", why=None, target="vendor-small", model="vendor-small")
        for record in lived(["fails", "fails"], Passthrough(SMALL)).records
    ]  # fmt: skip
    report = told(replayed(records, Passthrough(SMALL)))
    assert (report.agreement, report.own.turns) == (1.0, 0)
    assert report.cost.turns == 2
    assert told(replayed(records, Passthrough(LARGE))).agreement == 0.0


def test_lanes_without_identity_remember_nothing() -> None:
    life = Life(STAGE, rung="none", session="")
    for _ in range(3):
        life.result(FAILED).turn()
    found = replayed(life.records, STAGE)
    assert all(turn.agrees for turn in found)


def test_a_compaction_goes_on_from_what_was_remembered_before_it() -> None:
    life = lived(["fails", "fails", "fails", "fails"], STAGE)
    summary = (
        "This session is being continued from a previous conversation that ran out of context. "
        "The conversation is summarized below:\nTests fail."
    )
    life.messages = [{"role": "user", "content": summary}]
    assert life.turn().signals.compacted  # type: ignore[union-attr]
    life.result(FAILED).turn()
    life.result(PASSED).turn()
    found = replayed(life.records, STAGE)
    assert [turn.decision.target for turn in found if turn.decision] == [record.target for record in life.records]


def usd(name: str, prompt: int, held: int) -> float:
    """What a prompt of so many tokens, held of them cached, and 100 tokens of reply cost."""
    new, out, read = PRICES[name]
    return (read * held + new * (prompt - held) + out * 100) / 1e6


def test_a_switch_pays_for_a_cold_cache_and_the_way_back_for_what_was_missed() -> None:
    """The tests fail on the second turn: the candidate goes up, comes down again, and pays for both."""
    life = Life(Passthrough(SMALL))
    for prompt in (10_000, 12_000, 14_000, 16_000):
        life.turn(prompt=prompt)
        life.result(FAILED)

    class Zigzag(Passthrough, frozen=True):
        def route(self, turn: Turn) -> Forward:
            return Forward(LARGE if int(turn.id[-1]) in (1, 2) else SMALL, Why("fixed", "as told"))

    report = told(replayed(life.records, Zigzag(SMALL)))
    stayed = usd("small", 10_000, 0) + usd("small", 12_000, 10_000) + usd("small", 14_000, 12_000)
    assert report.cost.live_usd == pytest.approx(stayed + usd("small", 16_000, 14_000))
    went = (
        usd("small", 10_000, 0) + usd("large", 12_000, 0) + usd("large", 14_000, 12_000) + usd("small", 16_000, 10_000)
    )
    assert report.cost.candidate_usd == pytest.approx(went)
    assert report.cost.saved_usd == pytest.approx(report.cost.live_usd - went)
    assert report.cost.saved_usd < 0


def test_judges_are_charged_where_they_were_asked() -> None:
    life = lived(["fails"] * 3, ESCALATION, full=True, answers=judge(False))
    spent = sum(call.cost_usd or 0.0 for record in life.records for call in record.calls if call.purpose == "judge")
    same = told(replayed(life.records, ESCALATION)).cost
    assert same.candidate_aside_usd == same.live_aside_usd == pytest.approx(spent)
    assert same.candidate_usd == same.live_usd
    without = told(replayed(life.records, Passthrough(SMALL))).cost
    assert without.candidate_aside_usd == 0.0
    assert without.saved_usd == pytest.approx(spent)


def test_turns_that_cannot_be_decided_again_leave_the_routers_own_caches_as_they_were() -> None:
    """Without bodies a judged turn is not decided again; what its target was sent then is in its cache all the same."""
    life = lived(["fails"] * 4, ESCALATION, answers=judge(True))
    turns = replayed(life.records, ESCALATION, "live")
    assert [turn.reason for turn in turns] == ["conversation", "conversation", None, None]
    cost = told(turns).cost
    assert (cost.turns, cost.unpriced) == (2, 0)
    assert cost.candidate_usd == cost.live_usd > 0
    # Where another router would have sent that turn is not known, so neither is what its caches held later.
    other = told(replayed(life.records, ESCALATION, "another")).cost
    assert other.turns == 0


def test_what_has_no_price_is_left_out_on_both_sides_and_counted() -> None:
    life = lived(["fails", "fails"], Passthrough(SMALL))
    life.turn(kept=False)
    unpriced = {**TARGETS, LARGE: msgspec.structs.replace(TARGETS[LARGE], rates=None)}
    chosen = candidate(Passthrough(LARGE))
    report = told(Replaying(lambda _: chosen, unpriced).turns(kept(life.records)))
    assert (report.cost.turns, report.cost.unpriced, report.cost.live_usd) == (0, 3, None)
    report = told(replayed(life.records, Passthrough(LARGE)))
    assert (report.cost.turns, report.cost.unpriced) == (2, 1)
    assert Counter(report.was) == {"small": 3}
