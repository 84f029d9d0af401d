"""Figures of judgements, against turns written by hand."""

from typing import Any

import pytest

from turnout.conversation import Usage
from turnout.evaluate.verdicts import Group, Verdicts, lean, opinion, verdicts
from turnout.ledger.outcome import Outcome, Reported
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import Source, Why
from turnout.statistics.shares import share


def turn(
    n: int,
    verdict: str = "",
    *,
    session: str = "s",
    unheard: str = "",
    rule: str = "",
    tokens: int = 10,
    calls: int = 0,
    seconds: float = 1.0,
    source: Source = "judge",
    streak: int | None = None,
) -> TurnRecord:
    """The turn number `n` of an escalation route."""
    asked = unheard not in ("breaker", "budget")
    made = (
        Call("weak", "w", "draft", rule != "latched", usage=Usage(100, tokens), cost_usd=0.01),
        Call(
            "j", "j", "judge", cost_usd=0.002 if asked else 0.0, started_s=2.0, ended_s=2.0 + seconds, unheard=unheard
        ),
    )
    if rule == "latched":
        made += (Call("strong", "s", served=True, usage=Usage(100, 10), cost_usd=0.05),)
    values: dict[str, Any] = {"draft_calls": calls, "draft_chars": 20}
    if streak is not None:
        values["streak"] = streak
    if verdict:
        values["verdict"] = verdict
    why = Why(source, "because", rule, values=values)
    agent = {"agent_program": "codex", "agent_kind": "main"}
    return TurnRecord(id=f"t{n}", at=float(n), route="r", session=session, why=why, calls=made, **agent)


def only(turns: list[TurnRecord], *outcomes: Reported) -> Verdicts:
    (found,) = verdicts(turns, outcomes)
    return found


def told(at: float = 1.0, **fields: Any) -> Reported:
    return Reported(at, Outcome(**fields))


def test_calls_failures_and_votes_are_counted() -> None:
    turns = [
        turn(1, "decline"),
        turn(2, "escalate"),
        turn(3, unheard="timeout"),
        turn(4, unheard="breaker"),
        turn(5, unheard="budget"),
        turn(6, unheard="budget"),
        turn(7, "escalate", rule="latched"),
        turn(8, source="latch"),
    ]
    turns[-1] = TurnRecord(
        id="t8", at=8.0, route="r", session="s", why=Why("latch", "held"), calls=(Call("strong", "s", cost_usd=0.05),)
    )
    found = only(turns)
    assert (found.route, found.judge, found.turns, found.asked) == ("r", "j", 7, 4)
    assert (found.skipped, found.failures) == ({"breaker": 1, "budget": 2}, {"timeout": 1})
    assert found.votes == share(2, 3)
    assert (found.escalations, found.held) == (1, 1)
    assert found.cost_usd == pytest.approx(4 * 0.002)
    assert found.route_usd == pytest.approx(7 * 0.01 + 4 * 0.002 + 2 * 0.05)


def test_votes_of_a_collaboration_are_counted_by_who_cast_them() -> None:
    hops = [
        {"votes": [{"voter": "a", "target": "ta", "approve": False}, {"voter": "b", "target": "tb", "approve": None}]},
        {"votes": [{"voter": "a", "target": "ta", "approve": True}, {"voter": "b", "target": "tb", "approve": True}]},
        {"votes": [{"voter": "a", "target": "ta", "approve": True, "copied": True}]},
    ]
    calls = tuple(Call(target, "m", "vote", cost_usd=0.001) for target in ("ta", "tb", "ta", "tb"))
    why = Why("vote", "because", "converged", values={"hops": hops})
    found = verdicts([TurnRecord(id="t1", at=1.0, route="r", why=why, calls=calls)])
    assert {one.judge: one.disapproved for one in found} == {"ta": share(1, 2), "tb": share(0, 1)}
    assert all(not one.votes.of for one in found)


def test_streaks_are_counted_within_lanes_and_broken_by_votes_against() -> None:
    said = ["escalate", "escalate", "decline", "escalate", "decline", "decline", "escalate"]
    turns = [turn(n, verdict) for n, verdict in enumerate(said)]
    other = [turn(10 + n, verdict, session="other") for n, verdict in enumerate(["escalate"] * 3)]
    unknown = [turn(20 + n, "escalate", session="") for n in range(2)]  # no session: nothing follows anything
    assert only([*other, *turns, *unknown]).streaks == {1: 4, 2: 1, 3: 1}
    again = [turn(1, "escalate", streak=1), turn(2, "escalate", streak=1), turn(3, "escalate", streak=2)]
    assert only(again).streaks == {1: 1, 2: 1}  # the second was the first, sent again
    failed = [turn(1, "escalate"), turn(2, unheard="timeout"), turn(3, "escalate")]
    assert only(failed).streaks == {2: 1}


def test_precision_and_recall_are_of_lanes_the_weak_model_served_to_the_end() -> None:
    turns, outcomes = [], []
    lanes = [  # votes, solved
        ("a", ["escalate", "decline"], False),
        ("b", ["escalate"], True),
        ("c", ["decline", "decline"], False),
        ("d", ["decline"], True),
        ("e", ["escalate", "escalate"], False),
    ]
    for session, votes, solved in lanes:
        turns += [turn(len(turns) + n, verdict, session=session) for n, verdict in enumerate(votes)]
        outcomes.append(told(session=session, success=solved))
    turns += [turn(90, "escalate", session="f", rule="latched"), turn(91, "escalate", session="g")]
    outcomes.append(told(session="f", success=True))
    found = only(turns, *outcomes)
    assert (found.known, found.taken_over) == (5, 1)
    assert found.precision == share(2, 3)  # a and e failed, b did not
    assert found.recall == share(2, 3)  # c failed unseen


def test_outcomes_are_the_newest_of_their_tenant_and_damage_is_no_success() -> None:
    turns = [turn(1, "escalate", session="a"), turn(2, "escalate", session="b"), turn(3, "escalate", session="c")]
    outcomes = [
        told(2.0, session="a", success=False),
        told(1.0, session="a", success=True),
        told(session="b", success=True, rollback=True),
        told(session="c", success=False, tenant="somebody else"),
    ]
    found = only(turns, *outcomes)
    assert (found.known, found.precision) == (2, share(2, 2))
    assert only(turns).known == 0
    assert only(turns).precision.value is None
    assert only(turns, told(turn="t3", success=False)).known == 1


def test_votes_are_compared_by_category_length_and_style() -> None:
    turns, outcomes = [], []
    for n in range(60):
        long = n % 2 == 0
        turns.append(
            turn(
                n,
                "escalate" if long else "decline",
                session=f"s{n}",
                tokens=900 if long else 30,
                calls=0 if long else 2,
            )
        )
        outcomes.append(told(session=f"s{n}", success=True, category="bugfix" if n < 30 else "docs"))
    found = only(turns, *outcomes)
    assert found.by_length == (Group("up to 30 tokens", share(0, 30)), Group("31 to 900 tokens", share(30, 30)))
    assert lean(found.by_length) == "more votes for 31 to 900 tokens than for up to 30 tokens"
    assert {group.name: group.votes for group in found.by_style} == {
        "text alone": share(30, 30),
        "calls with text": share(0, 30),
    }
    assert {group.name: group.votes.hits for group in found.by_category} == {"bugfix": 15, "docs": 15}
    assert lean(found.by_category) == ""
    assert [group.name for group in found.by_agent] == ["codex main"]
    assert only(turns).by_category == ()


def test_latencies_are_those_of_verdicts() -> None:
    turns = [turn(n, "decline", seconds=float(n)) for n in range(1, 11)]
    found = only([*turns, turn(11, unheard="timeout", seconds=99.0)])
    assert (found.latency_p50_s, found.latency_p90_s) == (pytest.approx(5.0), pytest.approx(9.0))


@pytest.mark.parametrize(
    ("why", "up"),
    [
        (None, None),
        (Why("judge", "x", values={"verdict": "escalate"}), True),
        (Why("judge", "x", values={"verdict": "decline"}), False),
        (Why("classifier", "x", confidence=0.4, threshold=0.5), True),
        (Why("classifier", "x", confidence=0.5, threshold=0.5), False),
        (Why("classifier", "x", "code", values={"verdict": {"choice": "code"}}), None),
        (Why("advisor", "x", "approved"), False),
        (Why("advisor", "x", "redo"), True),
        (Why("default", "x", "judge_failed"), None),
    ],
)
def test_what_counts_as_a_vote(why: Why | None, up: bool | None) -> None:
    assert opinion(TurnRecord(id="t", at=1.0, route="r", why=why)) is up
