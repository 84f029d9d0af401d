"""The report of a period loads nothing, and its figures are the sums of the rows they link to."""

import json
from typing import Any

import msgspec
import pytest
from tests.pages.opened import Opened
from tests.spent import LARGE, rates_of, turn, turns

from turnout.evaluate.period import Against, Period, period
from turnout.evaluate.report.period import html
from turnout.evaluate.timeline import Step
from turnout.ledger.trace import TurnRecord

EVIL = "</script><b>x"
COLUMNS = {
    "judges": "judges_usd",
    "discarded": "discarded_usd",
    "failed": "failed_calls_usd",
    "hung up": "hung_up_usd",
    "cold after a switch": "cold_switch_usd",
    "cold otherwise": "cold_other_usd",
    "answers": "answers_usd",
}


def told(records: list[TurnRecord] | None = None) -> tuple[Period, tuple[Step, ...]]:
    return period(turns() if records is None else records, "sqlite:///turnout.db", rates_of, Against("large", LARGE))


@pytest.fixture(scope="module")
def page() -> Opened:
    return Opened(html(*told()))


def test_the_page_loads_nothing(page: Opened) -> None:
    assert page.reaches_out() == []


def test_each_part_is_the_sum_of_the_rows_it_links_to(page: Opened) -> None:
    found, _ = told()
    for part in found.spending.parts:
        column = COLUMNS[part.kind]
        where: dict[str, Any] = {column: "> 0"}
        if part.kind == "answers":
            where = {"target": part.name, column: "> 0"}
        rows = page.shown_by("turns", **where)
        assert sum(row[column] for row in rows) == pytest.approx(part.usd)
        assert len(rows) == part.turns
    assert sum(row["known_usd"] for row in page.rows("turns")) == pytest.approx(found.spending.known_usd)


def test_every_turn_is_named_and_every_session_can_be_found(page: Opened) -> None:
    assert [row["turn"] for row in page.rows("turns")] == [record.id for record in turns()]
    for one in page.rows("sessions"):
        mine = page.shown_by("turns", session=one["session"], tenant="")
        assert len(mine) == one["turns"]
        assert sum(row["known_usd"] for row in mine) == pytest.approx(one["known_usd"])
    assert "turnout why ID" in page.text


def test_the_figures_in_the_page_are_those_of_the_command(page: Opened) -> None:
    assert page.data["figures"] == json.loads(msgspec.json.encode(told()[0]))


def test_names_from_a_ledger_cannot_break_the_page() -> None:
    records = [turn(0, EVIL, session=EVIL, tenant=EVIL), turn(1, "small", session=EVIL, tenant=EVIL)]
    assert EVIL not in html(*told(records))


def test_an_empty_period_is_a_page_too() -> None:
    text = html(*told([]))
    assert "No turns are recorded." in text
    assert Opened(text).rows("turns") == []
