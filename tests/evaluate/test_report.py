"""The report is one file that loads nothing, and every figure's rows are in it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from tests.outcomes import row, written

from turnout.evaluate.arms import Wanted
from turnout.evaluate.evaluation import Asked, Evaluation, evaluate
from turnout.evaluate.outcomes import read
from turnout.evaluate.pairing import Unit
from turnout.evaluate.report import COLUMNS, html

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


class Page(HTMLParser):
    """What a page loads, its links, and its block of data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.asked: list[str] = []
        self.bold: list[str] = []
        self.data = ""
        self._in_data = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loads += [f"{tag} {given[name]}" for name in ("src", "href", "xlink:href", "data") if given.get(name)]
        if "data-rows" in given:
            self.asked.append(given["data-rows"] or "")
        self._in_data = given.get("id") == "rows"

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    text = html(*compared(tmp_path, rows_of()))
    assert all(re.fullmatch(r"\S+ #\S+", one) for one in Page(text).loads)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_every_unit_is_in_the_data_with_the_lines_of_its_runs(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    data = json.loads(Page(html(found, units)).data)
    assert tuple(data["columns"]) == COLUMNS
    rows = [dict(zip(COLUMNS, one, strict=True)) for one in data["rows"]]
    assert len(rows) == found.n == 24
    file = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    for one in rows:
        for arm, model in (("capable", "big"), ("efficient", "small")):
            source = file[one[f"{arm} line"] - 1]
            assert (source["task_id"], source["model"]) == (one["task"], model)
            assert (source["success"], source["cost_usd"]) == (one[f"{arm} success"], one[f"{arm} USD"])
    for name, count in found.quadrants.items():
        assert sum(one["quadrant"] == name for one in rows) == count
    best = [one[f"{one['oracle']} USD"] for one in rows]
    assert abs(sum(best) - (found.oracle.cost_usd.total.value or 0)) < 1e-9


def test_figures_link_to_rows_that_exist(tmp_path: Path) -> None:
    found, units = compared(tmp_path, rows_of())
    asked = Page(html(found, units)).asked
    assert set(asked) >= {"all", "costed", "SAFE", "LOSS", "RESCUE", "HARD", "category even", f"category {EVIL}"}


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
