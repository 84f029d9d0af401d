"""Steps of sessions: switches within a lane, failures, tokens, and sums by session."""

import pytest
from tests.spent import COLD, answer, rates_of, turn, turns

from turnout.evaluate.period import Against, period
from turnout.evaluate.spending import spent
from turnout.evaluate.timeline import Lanes


def test_a_switch_is_a_change_of_target_within_a_lane() -> None:
    lanes = Lanes({})
    told = [
        ("small", "main"),
        ("large", "helper"),
        ("small", "main"),
        ("large", "main"),
        ("large", "main"),
        ("", "main"),
        ("small", "main"),
    ]
    records = [turn(n, target, agent=agent) for n, (target, agent) in enumerate(told)]
    assert [lanes.step(one, spent(one, rates_of)).switched for one in records] == [
        False,
        False,
        False,
        True,
        False,
        False,
        True,
    ]


def test_turns_of_no_known_session_switch_nothing_and_are_in_no_session() -> None:
    found, steps = period([turn(0, "small", session=""), turn(1, "large", session="")], "here", rates_of)
    assert not any(step.switched for step in steps)
    assert found.sessions == ()
    assert found.spending.turns == 2


def test_sessions_add_up_to_their_turns() -> None:
    found, steps = period(turns(), "here", rates_of)
    assert [one.session for one in found.sessions] == sorted(
        {step.session for step in steps if step.session},
        key=lambda name: -sum(s.known_usd for s in steps if s.session == name),
    )
    for one in found.sessions:
        mine = [step for step in steps if step.session == one.session]
        assert one.turns == len(mine)
        assert one.known_usd == pytest.approx(sum(step.known_usd for step in mine))
        assert one.switches == sum(step.switched for step in mine)
        assert one.failures == sum(step.failed for step in mine)
    by = {one.session: one for one in found.sessions}
    assert (by["s1"].switches, by["s1"].failures) == (2, 1)
    # 10,100 cold three times, 8,000 of 8,100 read once.
    assert by["s1"].cached_share == pytest.approx(8_000 / (3 * 10_100 + 8_100))
    assert (by["s2"].failures, by["s2"].unknown) == (1, 1)


def test_what_was_not_reported_is_not_zero() -> None:
    _, steps = period([turn(0, "small")], "here", rates_of)
    assert (steps[0].cached, steps[0].written, steps[0].uncached, steps[0].cost_usd) == (None, None, None, 0)


def test_tiers_are_those_of_the_route() -> None:
    tiers = {("coder", "small"): "efficient", ("coder", "large"): "capable"}
    _, steps = period([turn(0, "small"), turn(1, "large"), turn(2, "other")], "here", rates_of, None, tiers)
    assert [step.tier for step in steps] == ["efficient", "capable", ""]


def test_turns_are_told_in_the_order_they_went() -> None:
    records = [turn(n, "small" if n % 2 else "large", answer("small", COLD)) for n in range(6)]
    found, steps = period(reversed(records), "here", rates_of, Against("large", None))
    assert [step.turn for step in steps] == [record.id for record in records]
    assert found.switches == 5
    assert found.spending.alone is None
