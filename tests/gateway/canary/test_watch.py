"""Watching a canary: what counts, once each, and that it stops when it must and mostly not when it must not."""

import random
from typing import Any

import pytest
from tests.ledger.records import turn

from turnout.conversation import Usage
from turnout.gateway.canary.watch import Watch
from turnout.ledger.outcome import Outcome, Reported
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing import Canary, Passthrough, TargetName
from turnout.routing.canary.watching import Watching
from turnout.routing.core import Why
from turnout.signals import Signals
from turnout.signals.course import Course

SHARE = 0.2


def watch(**watching: Any) -> Watch:
    router = Canary(
        Passthrough(TargetName("a")), Passthrough(TargetName("b")), share=SHARE, watching=Watching(**watching)
    )
    return Watch("coder", router)


def lane_turn(session: str, arm: str, at: float, **changes: Any) -> TurnRecord:
    why = Why("canary", "", values={"canary": {"name": "canary", "arm": arm, "share": SHARE}})
    calm: dict[str, Any] = {"signals": Signals(course=Course()), "agent": "", "why": why, "session": session, "at": at}
    return turn(int(at), **{**calm, **changes})


def nowhere(turn: str) -> None:
    return None


def test_a_lane_counts_once_when_it_is_silent_and_later_turns_change_nothing() -> None:
    seen = watch(settle_s=100.0)
    seen.turn(lane_turn("s", "candidate", 1000.0, ended="error"))
    seen.turn(lane_turn("s", "candidate", 1090.0))
    seen.pass_to(1189.0)
    assert seen.status().lanes == {"candidate": 0, "incumbent": 0}
    assert seen.status().running == {"candidate": 1, "incumbent": 0}
    seen.pass_to(1190.0)
    errors = seen.status().metrics["errors"]
    assert (errors.candidate.lanes, errors.candidate.mean, errors.incumbent.lanes) == (1, 1.0, 0)
    seen.turn(lane_turn("s", "candidate", 1200.0))
    seen.pass_to(5000.0)
    assert seen.status().lanes == {"candidate": 1, "incumbent": 0}


def test_each_metric_is_that_of_the_lane() -> None:
    seen = watch(settle_s=10.0)
    failing = Signals(course=Course(troubled=True, failing=((),)))  # type: ignore[arg-type]  # one failure that came back
    heard = Call("judge", "j", purpose="judge", unheard="timeout")
    usage = Usage(input_tokens=60, cache_read_tokens=40)
    seen.turn(lane_turn("s", "candidate", 1.0, cost_usd=0.2, total_s=1.0, calls=(heard,), signals=failing, usage=usage))
    seen.turn(lane_turn("s", "candidate", 2.0, cost_usd=0.3, total_s=3.0, usage=usage))
    seen.turn(lane_turn("t", "incumbent", 2.0, cost_usd=None, ended="cut", usage=None, signals=None))
    seen.pass_to(100.0)
    found = {name: (m.candidate.mean, m.incumbent.mean) for name, m in seen.status().metrics.items()}
    assert found == {
        "success": (None, None),
        "uncleared": (0.0, None),  # cleared by the last turn
        "repeated": (1.0, None),
        "errors": (0.0, 1.0),
        "cost": (pytest.approx(0.5), None),
        "latency": (2.0, None),
        "judges": (1.0, 0.0),
        "cache": (0.4, None),
    }


def test_turns_that_were_not_drawn_or_belong_to_another_canary_do_not_count() -> None:
    seen = watch(settle_s=10.0)
    other = Why("canary", "", values={"canary": {"name": "before", "arm": "candidate", "share": SHARE}})
    seen.turn(lane_turn("s", "candidate", 1.0, why=other))
    seen.turn(lane_turn("t", "candidate", 1.0, why=None))
    seen.turn(turn(1))
    seen.pass_to(1e9)
    assert seen.status().lanes == {"candidate": 0, "incumbent": 0}


def test_an_outcome_counts_for_its_lane_once() -> None:
    seen = watch(settle_s=10.0)
    seen.turn(lane_turn("s", "candidate", 1.0))
    seen.turn(lane_turn("s", "incumbent", 1.0, agent="child", agent_kind="subagent"))
    seen.outcome(Reported(3.0, Outcome(session="s")), nowhere)
    seen.outcome(Reported(3.0, Outcome(session="nobody's", success=True)), nowhere)
    seen.outcome(Reported(3.0, Outcome(session="s", tenant="other", success=True)), nowhere)
    assert seen.status().metrics["success"].candidate.lanes == 0
    seen.outcome(Reported(3.0, Outcome(session="s", rollback=True)), nowhere)
    seen.outcome(Reported(4.0, Outcome(session="s", success=True)), nowhere)
    seen.pass_to(100.0)
    seen.outcome(Reported(101.0, Outcome(turn="t1", success=True)), lambda turn: ("", "s", "child"))
    success = seen.status().metrics["success"]
    assert (success.candidate.mean, success.candidate.lanes) == (0.0, 1)
    assert (success.incumbent.mean, success.incumbent.lanes) == (1.0, 1)


def run(seed: int, lanes: int, success: float, **worse: Any) -> Watch:
    """A trial: incumbents succeed in 70 %; `worse`: fields of the candidate's turns."""
    dice, seen = random.Random(seed), watch(settle_s=1.0)
    for n in range(lanes):
        arm = "candidate" if dice.random() < SHARE else "incumbent"
        spent = dice.lognormvariate(0.0, 1.0)
        fields = {"cost_usd": spent, "total_s": dice.lognormvariate(0.0, 0.5)}
        if arm == "candidate":
            fields |= {name: factor * fields[name] for name, factor in worse.items()}
        at = 10.0 * n + 10
        seen.turn(lane_turn(f"s{n}", arm, at, **fields))
        hit = dice.random() < (success if arm == "candidate" else 0.7)
        seen.outcome(Reported(at + 1, Outcome(session=f"s{n}", success=hit)), nowhere)
        if seen.stop is not None:
            break
    return seen


def test_a_watch_goes_on_exactly_from_what_another_kept() -> None:
    dice, whole, resumed = random.Random(1), watch(settle_s=30.0), watch(settle_s=30.0)
    at = 0.0
    for n in range(300):
        arm = "candidate" if dice.random() < SHARE else "incumbent"
        at += 10.0
        record = lane_turn(f"s{n % 150}", arm, at, cost_usd=dice.random(), total_s=dice.random())
        told = Reported(at, Outcome(session=f"s{dice.randrange(n + 1)}", success=dice.random() < 0.5))
        for seen in (whole, resumed):
            seen.turn(record)
            seen.outcome(told, nowhere)
        if n % 20 == 7:
            kept, resumed = resumed.kept(), watch(settle_s=30.0)
            resumed.resume(kept)
        assert resumed.status() == whole.status()
    assert resumed.kept() == whole.kept()
    assert sum(whole.status().lanes.values()) > 100


def test_what_was_kept_is_for_a_watch_of_the_same_settings() -> None:
    one = watch()
    assert one.settings == watch().settings != watch(alpha=0.01).settings
    for wrong in (b"", one.kept()[:-9], watch(metrics=("success",)).kept()):
        with pytest.raises(ValueError, match="kept"):
            one.resume(wrong)


def test_equal_arms_run_on_and_ten_points_less_success_stop_with_a_reason() -> None:
    assert sum(run(seed, 400, 0.7).stop is not None for seed in range(20)) <= 1
    for seed in range(8):
        stop = run(seed, 6000, 0.6).stop
        assert stop is not None
        assert (stop.route, stop.name, stop.metric) == ("coder", "canary", "success")
        assert "the candidate does worse" in stop.reason


@pytest.mark.parametrize(("field", "metric"), [("cost_usd", "cost"), ("total_s", "latency")])
def test_a_candidate_that_is_much_dearer_or_slower_is_stopped(field: str, metric: str) -> None:
    stop = run(3, 3000, 0.7, **{field: 3.0}).stop
    assert stop is not None
    assert stop.metric == metric
    assert f"{metric}: the candidate does worse by more than the margin of 0.05" in stop.reason
