"""The report is one file that loads nothing, and every figure's rows are in it."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.outcomes import row, written
from tests.pages.opened import Opened

from turnout.evaluate.arms import Wanted
from turnout.evaluate.evaluation import Asked, Evaluation, evaluate
from turnout.evaluate.outcomes import read
from turnout.evaluate.pairing import Unit
from turnout.evaluate.report.comparison import COLUMNS, html

EVIL = "</script><b>x"


def compared(tmp_path: Path, rows: list[object]) -> tuple[Evaluation, tuple[Unit, ...]]:
    names = [Wanted("big"), Wanted("small")]
    found = read(written(tmp_path / "o.jsonl", rows), names)
    big, small = (one.among(found.arms) for one in names)
    return evaluate(found, Asked(big, small, resamples=200), lambda model: None)


def rows_of(cost: bool = True) -> list[object]:
    return [
        one
        for i in range(24)
        for one in (
            row(f"{EVIL}{i}", "big", i < 14, 10.0 + i if cost else None, category=EVIL if i % 2 else "even", steps=20),
            row(f"{EVIL}{i}", "small", i < 9 or i > 20, 1.0 if cost else None, steps=5 + i),
        )
    ]


Made = tuple[Evaluation, tuple[Unit, ...], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparison")


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    """A comparison, its units and its page."""
    found, units = compared(folder, rows_of())
    return found, units, html(found, units)


def test_the_page_loads_nothing(made: Made) -> None:
    assert Opened(made[2]).reaches_out() == []


def test_every_unit_is_in_the_data_with_the_lines_of_its_runs(folder: Path, made: Made) -> None:
    found, _, text = made
    page = Opened(text)
    assert tuple(page.table("units")["columns"]) == COLUMNS
    rows = page.rows("units")
    assert len(rows) == found.n == 24
    file = [json.loads(line) for line in (folder / "o.jsonl").read_text().splitlines()]
    for one in rows:
        for arm, model in (("capable", "big"), ("efficient", "small")):
            source = file[one[f"{arm} line"] - 1]
            assert (source["task_id"], source["model"]) == (one["task"], model)
            assert (source["success"], source["cost_usd"]) == (one[f"{arm} success"], one[f"{arm} USD"])
    for name, count in found.quadrants.items():
        assert len(page.shown_by("units", quadrant=name)) == sum(one["quadrant"] == name for one in rows) == count
    best = [one[f"{one['oracle']} USD"] for one in rows]
    assert abs(sum(best) - (found.oracle.cost_usd.total.value or 0)) < 1e-9


def test_the_figures_in_the_page_are_those_of_the_command(made: Made) -> None:
    found, _, text = made
    assert Opened(text).data["figures"] == json.loads(msgspec.json.encode(found))


def test_figures_link_to_rows_that_exist(made: Made) -> None:
    page = Opened(made[2])
    asked = {json.dumps(one) for one in page.asked}
    for where in ({}, {"costed": True}, {"quadrant": "LOSS"}, {"category": "even"}, {"category": EVIL}):
        assert json.dumps(["units", where]) in asked
    for name, where in page.asked:
        assert set(where) <= set(page.table(name)["columns"])


def test_texts_of_rows_cannot_break_the_page(made: Made) -> None:
    text = made[2]
    assert EVIL not in text
    assert text.count("<script") == 2


def test_the_first_screen_says_the_verdict_before_any_table(made: Made) -> None:
    found, _, text = made
    verdict = text.index(found.verdict.replace("'", "&#x27;"))
    assert verdict < text.index("<svg") < text.index("<table")
    for name, said in found.definitions.items():
        assert f"<dt>{name}<dd>{said}" in text


def test_without_costs_the_page_says_so(tmp_path: Path) -> None:
    text = html(*compared(tmp_path, rows_of(cost=False)))
    assert "No frontier" in text
    assert "No costs, no waterfall" in text


def test_the_same_comparison_gives_the_same_page(made: Made) -> None:
    found, units, text = made
    assert html(found, units) == text
