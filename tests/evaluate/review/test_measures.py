"""Measures equal what is worked out plainly from the same runs, lanes and turns."""

import random
from typing import Any

import pytest
from tests.outcomes import BIG, ROUTER, SMALL, run
from tests.spent import LARGE, answer, call, turn, turns

from turnout.conversation import Usage
from turnout.evaluate.off_policy import estimate
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.review import evidence
from turnout.evaluate.review.conditions import CanaryArms, Logged
from turnout.evaluate.review.evidence import Lanes
from turnout.evaluate.review.measures import Drawn, between
from turnout.ledger.outcome import Outcome as Told
from turnout.ledger.outcome import Reported
from turnout.routing.core import Why


def drawn(found: evidence.Evidence) -> Drawn:
    return Drawn(found, 400, 1)


def tried() -> list[Outcome]:
    """Sixty tasks by both, and some by one only; costs of some not known."""
    dice = random.Random(5)
    runs = []
    for task in range(60):
        for arm, likely, usd in ((BIG, 0.8, 2.0), (ROUTER, 0.7, 0.5)):
            cost = None if task % 10 == 3 and arm is ROUTER else usd + dice.random()
            runs.append(run(arm, dice.random() < likely, cost, f"t{task}", line=len(runs) + 1))
    return [*runs, run(BIG, True, 9.0, "alone", line=500), run(SMALL, True, 9.0, "t1", line=501)]


def test_trials_are_compared_task_by_task() -> None:
    runs = tried()
    big = {one.task: one for one in runs if one.arm == BIG and one.task != "alone"}
    routed = {one.task: one for one in runs if one.arm == ROUTER}
    priced = [task for task in big if routed[task].cost_usd is not None]
    found = drawn(evidence.trials(runs, BIG, ROUTER))
    loss = found.measure("success_loss", 0.95)
    assert loss.value == pytest.approx(
        (sum(o.success for o in big.values()) - sum(o.success for o in routed.values())) / 60
    )
    assert loss.low is not None
    assert loss.high is not None
    assert loss.low < loss.value < loss.high  # type: ignore[operator]
    assert (loss.n, len(loss.rows)) == (60, 60)
    spent = [sum(of[task].cost_usd or 0.0 for task in priced) for of in (big, routed)]
    saving = found.measure("saving", 0.95)
    assert saving.value == pytest.approx(1 - spent[1] / spent[0])
    assert (saving.n, len(saving.rows)) == (54, 54)
    done = [sum(of[task].success for task in priced) for of in (big, routed)]
    assert found.measure("cost_per_completed", 0.9).value == pytest.approx((spent[1] / done[1]) / (spent[0] / done[0]))
    assert found.measure("success", 0.95).value == pytest.approx(sum(o.success for o in routed.values()) / 60)


def test_each_side_of_a_comparison_stands_by_itself() -> None:
    runs = tried()
    big = [one for one in runs if one.arm == BIG and one.task != "alone"]
    side = drawn(evidence.trials(runs, BIG, ROUTER)).sides()["capable"]
    # The other's cost is not known for six of the tasks, which leaves the costs of both.
    priced = [one for one in big if int(one.task[1:]) % 10 != 3]
    assert (side.n, side.success.value) == (60, pytest.approx(sum(one.success for one in big) / 60))
    assert side.cost_usd.value == pytest.approx(sum(one.cost_usd or 0.0 for one in priced) / 54)
    done = sum(one.success for one in priced)
    assert side.per_completed_usd.value == pytest.approx(sum(one.cost_usd or 0.0 for one in priced) / done)
    assert drawn(evidence.turns([evidence.turn(one, LARGE) for one in turns()])).sides() == {}


def test_more_confidence_is_a_wider_interval() -> None:
    found = drawn(evidence.trials(tried(), BIG, ROUTER))
    narrow, wide = found.measure("success_loss", 0.5), found.measure("success_loss", 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]


def test_what_is_alike_in_every_task_is_not_certain() -> None:
    runs = [run(arm, True, 1.0, f"t{n}", line=2 * n + (arm is BIG)) for n in range(40) for arm in (BIG, ROUTER)]
    found = drawn(evidence.trials(runs, BIG, ROUTER))
    loss, success = found.measure("success_loss", 0.95), found.measure("success", 0.95)
    assert (loss.value, success.value) == (0.0, 1.0)
    assert -0.1 < loss.low < 0.0 < loss.high < 0.1  # type: ignore[operator]
    assert 0.9 < success.low < 1.0 == success.high  # type: ignore[operator]


def lanes(told: list[Told]) -> evidence.Evidence:
    """Forty lanes, every fourth the candidate's; each two turns of 1 and 2 USD (5 and 7 for the incumbent)."""
    found = Lanes("back")
    for n in range(40):
        arm = "candidate" if n % 4 == 0 else "incumbent"
        why = Why("default", "", values={"canary": {"name": "back", "arm": arm, "share": 0.25}})
        for part, usd in enumerate((1.0, 2.0) if arm == "candidate" else (5.0, 7.0)):
            found.turn(turn(10 * n + part, "large", call("large", usd, served=True), session=f"s{n}", why=why))
    found.turn(turn(900, "large", call("large", 100.0), session="other"))
    for outcome in told:
        found.outcome(Reported(1.0, outcome))
    return evidence.canary(found.lanes(), CanaryArms("back", "incumbent"))


def test_lanes_of_a_canary_are_compared_as_drawn() -> None:
    told = [Told(session=f"s{n}", success=n % 3 > 0) for n in range(36)]
    found = drawn(lanes(told))
    mine = [n for n in range(36) if n % 4]
    others = [n for n in range(36) if n % 4 == 0]
    success = {side: sum(n % 3 > 0 for n in of) / len(of) for side, of in (("routed", mine), ("capable", others))}
    loss = found.measure("success_loss", 0.95)
    assert loss.value == pytest.approx(success["capable"] - success["routed"])
    assert (loss.n, len(loss.rows)) == (9, 36)  # of the side that has fewer
    assert found.measure("saving", 0.95).value == pytest.approx(1 - 12.0 / 3.0)
    assert found.measure("saving", 0.95).n == 10


def test_an_outcome_belongs_to_the_lane_of_its_turn_and_damage_is_failure() -> None:
    told = [Told(turn="t10", rollback=True), Told(session="s2"), Told(session="s0", success=True)]
    found = {row.key: row.values for row in lanes(told).rows}
    known, ok = evidence.COMPARED.index("n_routed"), evidence.COMPARED.index("ok_routed")
    assert (found["s1 main"][known], found["s1 main"][ok]) == (1.0, 0.0)
    assert found["s2 main"][known] == 0.0
    assert found["s0 main"][evidence.COMPARED.index("ok_capable")] == 1.0
    assert "other main" not in found


def thrown(n: int = 120) -> list[Outcome]:
    """Runs of which dice sent 70 % to the small model, with what the candidate would have done."""
    dice = random.Random(11)
    runs = []
    for task in range(n):
        small = dice.random() < 0.7
        arm, propensity = (SMALL, 0.7) if small else (BIG, 0.3)
        usd = 1.0 if small else 4.0
        more: dict[str, Any] = {"propensity": propensity, "candidate_propensity": 0.5, "line": task + 1}
        runs.append(run(arm, dice.random() < (0.5 if small else 0.8), usd, f"t{task}", **more))
    return runs


def test_logged_runs_give_what_the_off_policy_estimate_gives() -> None:
    runs = thrown()
    how = Logged("big", "small")
    found = drawn(evidence.logged(runs, BIG, SMALL, how))
    alone = estimate(runs, BIG, SMALL, "capable", 100)
    assert alone is not None
    assert alone.success is not None
    assert alone.cost_usd is not None
    successes = sum(one.success for one in runs) / len(runs)
    assert found.measure("success_loss", 0.95).value == pytest.approx(alone.success.doubly_robust.value - successes)  # type: ignore[operator]
    spent = sum(one.cost_usd or 0.0 for one in runs) / len(runs)
    assert found.measure("saving", 0.95).value == pytest.approx(1 - spent / alone.cost_usd.doubly_robust.value)  # type: ignore[operator]
    candidate = drawn(evidence.logged(runs, BIG, SMALL, Logged("big", "small", "candidate")))
    other = estimate(runs, BIG, SMALL, "candidate", 100)
    assert other is not None
    assert other.success is not None
    assert candidate.measure("success", 0.95).value == pytest.approx(other.success.doubly_robust.value)


def test_runs_that_cannot_tell_are_refused_with_the_reason() -> None:
    sure = [run(SMALL, True, 1.0, f"t{n}", propensity=1.0) for n in range(50)]
    assert "support is missing" in evidence.logged(sure, BIG, SMALL, Logged("big", "small")).reason
    assert (
        "no run of this period has a propensity"
        in evidence.logged(tried(), BIG, ROUTER, Logged("big", "router")).reason
    )
    assert "worth" in evidence.logged(thrown(12), BIG, SMALL, Logged("big", "small")).reason


def test_turns_are_measured_by_what_they_cost_and_what_judges_said() -> None:
    silent = turn(8, "small", answer("small", Usage(10, 1)), call("judge", 0.001, "judge", unheard="timeout"))
    skipped = turn(9, "small", answer("small", Usage(10, 1)), call("judge", None, "judge", unheard="breaker"))
    records = [*turns(), silent, skipped]
    found = drawn(evidence.turns([evidence.turn(one, LARGE) for one in records]))
    assert found.measure("judge_failures", 0.95).value == pytest.approx(1 / 3)
    assert found.measure("turn_errors", 0.95).value == pytest.approx(1 / 10)
    calls = [one for record in records for one in record.calls]
    known = sum(one.cost_usd or 0.0 for one in calls)
    judges = sum(one.cost_usd or 0.0 for one in calls if one.purpose == "judge")
    assert found.measure("judge_share", 0.95).value == pytest.approx(judges / known)
    assert {row.key for row in found.measure("judge_failures", 0.95).rows} == {"t1", "t2", "t8"}


def test_without_a_price_nothing_is_saved_or_lost() -> None:
    found = drawn(evidence.turns([evidence.turn(one, None) for one in turns()]))
    assert found.measure("saving", 0.95).value is None
    assert found.measure("saving", 0.95).n == 0


def test_a_period_has_its_first_moment_and_not_its_last() -> None:
    rows = [evidence.Row(str(at), at, "c", "", ()) for at in (1.0, 2.0, 3.0, None)]
    assert [row.key for row in between(rows, 1.0, 3.0)] == ["1.0", "2.0", "None"]
