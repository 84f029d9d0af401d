"""The bill adds up, and may show a loss."""

import pytest

from turnout.conversation import Usage
from turnout.demo.bill import bill, line
from turnout.ledger.trace import TurnRecord


def record(cost: float | None, target: str = "capable") -> TurnRecord:
    return TurnRecord(id="t", at=0.0, route="r", target=target, usage=Usage(10, 5, 3, 2), cost_usd=cost)


def test_a_line_adds_up_all_turns():
    found = line("routed", [record(0.25), record(0.5, "efficient")], ("capable",))
    assert (found.turns, found.capable_turns, found.prompt, found.cached, found.written, found.output) == (
        2,
        1,
        30,
        6,
        4,
        10,
    )
    assert found.cost_usd == 0.75


def test_savings_may_be_negative():
    dear, cheap = line("routed", [record(3.0)], ()), line("all-capable", [record(2.0)], ())
    found = bill(dear, cheap, cheap, efficient="a", capable="b")
    assert (found.saved_usd, found.saved_share) == (-1.0, -0.5)


@pytest.mark.parametrize(("routed", "capable"), [(None, 1.0), (1.0, None)])
def test_nothing_is_saved_where_a_cost_is_not_known(routed, capable):
    found = bill(
        line("", [record(routed)], ()), line("", [record(capable)], ()), line("", [], ()), efficient="a", capable="b"
    )
    assert found.saved_usd is None
