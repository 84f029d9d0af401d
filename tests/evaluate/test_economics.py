"""Whether a judge pays, against values worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Usage
from turnout.evaluate.economics import Economics, recorded
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.rates import Rates


@pytest.mark.parametrize(
    ("weak", "strong", "judge", "break_even", "with_drafts"),
    [
        (0.01, 0.05, 0.004, 0.1, 0.28),  # 4 / (50 - 10); (10 + 4) / 50
        (0.0, 0.04, 0.01, 0.25, 0.25),  # a free weak model: nothing is thrown away with its replies
        (0.02, 0.08, 0.03, 0.5, 0.625),
        (0.01, 0.05, 0.0, 0.0, 0.2),  # a free judge still has drafts thrown away
        (0.01, 0.012, 0.004, None, None),
        (0.01, 0.05, 0.04, None, None),  # every turn would have to stay, and then nothing would be won
        (0.05, 0.05, 0.0, None, None),
        (0.05, 0.01, 0.001, None, None),
    ],
)
def test_the_shares_by_hand(
    weak: float, strong: float, judge: float, break_even: float | None, with_drafts: float | None
) -> None:
    found = Economics(weak, strong, judge)
    assert found.break_even == (None if break_even is None else pytest.approx(break_even))
    assert found.with_drafts == (None if with_drafts is None else pytest.approx(with_drafts))
    assert found.pays == (with_drafts is not None)
    assert Economics(weak, strong, judge, drafts=False).needed == found.break_even


amounts = st.floats(0.0, 10.0).map(lambda usd: round(usd, 6))


@given(amounts, amounts, amounts, st.booleans())
def test_at_the_share_nothing_is_won_and_below_it_nothing_is_saved(
    weak: float, strong: float, judge: float, drafts: bool
) -> None:
    found = Economics(weak, strong, judge, drafts)
    if found.needed is None:
        assert found.saving_usd(1.0) <= 1e-9
    else:
        assert found.saving_usd(found.needed) == pytest.approx(0.0, abs=1e-9)
        assert found.saving_usd(1.0) > 0
        assert found.saving_usd(0.0) <= 0


def test_money_of_ten_turns_by_hand() -> None:
    found = Economics(0.01, 0.05, 0.004)
    # Six stay and four are done again: 10 x (10 + 4) + 4 x 50 = 340 thousandths, instead of 500.
    assert 10 * found.saving_usd(0.6) == pytest.approx(0.160)
    assert 10 * found.saving_usd(0.2) == pytest.approx(-0.040)


def call(target: str, purpose: str, usd: float | None, served: bool = False, unheard: str = "") -> Call:
    return Call(target, target, purpose, served, usage=Usage(1000, 100), cost_usd=usd, unheard=unheard)


def turn(n: int, *calls: Call) -> TurnRecord:
    target = next((c.target for c in calls if c.served), "")
    costs = [c.cost_usd for c in calls]
    whole = None if None in costs else sum(c for c in costs if c is not None)
    return TurnRecord(id=f"t{n}", at=float(n), route="r", target=target, calls=calls, cost_usd=whole)


KEPT = (call("weak", "draft", 0.01, True), call("judge", "judge", 0.004))
AGAIN = (call("weak", "draft", 0.01), call("judge", "judge", 0.004), call("strong", "answer", 0.06, True))
LATCHED = (call("strong", "answer", 0.08, True),)


def test_a_route_from_its_turns() -> None:
    turns = [turn(1, *KEPT), turn(2, *KEPT), turn(3, *KEPT), turn(4, *AGAIN), turn(5, *LATCHED)]
    found = recorded(turns, "strong")
    assert found.economics == Economics(0.01, pytest.approx(0.07), 0.004)
    assert (found.judged, found.kept.hits, found.kept.of) == (4, 3, 4)
    assert (found.discarded, found.discarded_usd) == (1, pytest.approx(0.01))
    assert found.judge_usd == pytest.approx(0.016)
    assert found.judge_share == pytest.approx(0.016 / (3 * 0.014 + 0.074 + 0.08))
    assert (found.repriced, found.strong_turns, found.saved_usd) == (False, 2, None)


def test_with_its_rates_the_strong_model_is_priced_at_the_tokens_that_were_served() -> None:
    rates = Rates(input=20.0, output=100.0)  # 1000 and 100 tokens: 0.03 USD
    found = recorded([turn(1, *KEPT), turn(2, *AGAIN)], "strong", rates)
    assert found.economics is not None
    assert (found.economics.strong_usd, found.repriced) == (pytest.approx(0.03), True)
    assert (found.compared, found.spent_usd) == (2, pytest.approx(0.088))
    assert found.saved_usd == pytest.approx(0.06 - 0.088)  # it cost more, and says so


def test_turns_of_unknown_cost_are_left_out_and_counted() -> None:
    unknown = (call("weak", "draft", 0.01, True), call("judge", "judge", None))
    skipped = (call("weak", "draft", 0.01, True), call("judge", "judge", 0.0, unheard="breaker"))
    found = recorded([turn(1, *KEPT), turn(2, *unknown), turn(3, *skipped)], "strong", Rates(input=20.0, output=100.0))
    assert (found.turns, found.judged, found.left_out, found.compared) == (3, 1, 1, 2)


def test_a_judge_that_is_asked_first_throws_no_drafts_away() -> None:
    small = (call("judge", "judge", 0.004), call("weak", "answer", 0.01, True))
    large = (call("judge", "judge", 0.004), call("strong", "answer", 0.05, True))
    found = recorded([turn(1, *small), turn(2, *large)], "strong")
    assert found.economics is not None
    assert (found.economics.drafts, found.economics.needed) == (False, pytest.approx(0.1))
    assert found.discarded == 0


def test_a_route_without_judges_has_no_break_even() -> None:
    found = recorded([turn(1, *LATCHED)], "strong")
    assert (found.economics, found.judged, found.kept.value) == (None, 0, None)
