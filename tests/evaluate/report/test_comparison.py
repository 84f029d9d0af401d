"""The report is one file that loads nothing, and every figure's rows are in it."""

import json
from pathlib import Path

import msgspec
from tests.evaluate.report.pages import Opened
from tests.outcomes import row, written

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


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    assert Opened(html(*compared(tmp_path, rows_of()))).reaches_out() == []


def test_every_unit_is_in_the_data_with_the_lines_of_its_runs(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    page = Opened(html(found, units))
    assert tuple(page.table("units")["columns"]) == COLUMNS
    rows = page.rows("units")
    assert len(rows) == found.n == 24
    file = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    for one in rows:
        for arm, model in (("capable", "big"), ("efficient", "small")):
            source = file[one[f"{arm} line"] - 1]
            assert (source["task_id"], source["model"]) == (one["task"], model)
            assert (source["success"], source["cost_usd"]) == (one[f"{arm} success"], one[f"{arm} USD"])
    for name, count in found.quadrants.items():
        assert len(page.shown_by("units", quadrant=name)) == sum(one["quadrant"] == name for one in rows) == count
    best = [one[f"{one['oracle']} USD"] for one in rows]
    assert abs(sum(best) - (found.oracle.cost_usd.total.value or 0)) < 1e-9


def test_the_figures_in_the_page_are_those_of_the_command(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    assert Opened(html(found, units)).data["figures"] == json.loads(msgspec.json.encode(found))


def test_figures_link_to_rows_that_exist(tmp_path: Path) -> None:
    page = Opened(html(*compared(tmp_path, rows_of())))
    asked = {json.dumps(one) for one in page.asked}
    for where in ({}, {"costed": True}, {"quadrant": "LOSS"}, {"category": "even"}, {"category": EVIL}):
        assert json.dumps(["units", where]) in asked
    for name, where in page.asked:
        assert set(where) <= set(page.table(name)["columns"])


def test_texts_of_rows_cannot_break_the_page(tmp_path: Path) -> None:
    text = html(*compared(tmp_path, rows_of()))
    assert EVIL not in text
    assert text.count("<script") == 2


def test_the_first_screen_says_the_verdict_before_any_table(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    text = html(found, units)
    verdict = text.index(found.verdict.replace("'", "&#x27;"))
    assert verdict < text.index("<svg") < text.index("<table")
    for name, said in found.definitions.items():
        assert f"<dt>{name}<dd>{said}" in text


def test_without_costs_the_page_says_so(tmp_path: Path) -> None:
    text = html(*compared(tmp_path, rows_of(cost=False)))
    assert "No frontier" in text
    assert "No costs, no waterfall" in text


def test_the_same_comparison_gives_the_same_page(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    assert html(found, units) == html(found, units)
