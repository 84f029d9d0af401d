"""`turnout peers graph` and `turnout peers show`."""

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.peers.graph.reviews import review_json
from tests.peers.worked import EXPECTED, WORKED

from turnout.cli.app import run


def scores(folder: Path, **changes: Any) -> str:
    path = folder / "scores.json"
    path.write_text(json.dumps({"models": WORKED["models"], "scores": WORKED["scores"]} | changes))
    return str(path)


@pytest.mark.parametrize("d2", EXPECTED["by_d2"])
def test_the_contract(d2: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = {j: {i: WORKED["scores"][j].get(i) for i in WORKED["models"]} for j in WORKED["models"]}
    assert run(["peers", "graph", scores(tmp_path, scores=full), "--d1", "50", "--d2", d2, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    targets = EXPECTED["by_d2"][d2]["targets"]
    assert found["given"] == EXPECTED["given"]
    assert found["received"] == EXPECTED["received"]
    assert found["category"] == EXPECTED["cells"]
    assert (found["C"], found["C_prime"]) == (EXPECTED["C"], EXPECTED["C_prime"])
    assert found["C_i"] == {author: one["C_i"] for author, one in targets.items()}
    assert found["C_prime_i"] == {author: one["C_prime_i"] for author, one in targets.items()}
    assert (found["d1"], found["d2"], found["traps"], found["flags"]) == (50, float(d2), [], [])


def test_a_matrix_may_be_a_list_of_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[WORKED["scores"][j].get(i) for i in WORKED["models"]] for j in WORKED["models"]]
    assert run(["peers", "graph", scores(tmp_path, scores=rows), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["C_i"] == {author: one["C_i"] for author, one in EXPECTED["by_d2"]["50"]["targets"].items()}


def test_old_scores_are_said_to_be_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "reviewed.json"
    made.write_text(json.dumps(review_json(30, types=1)))
    graph = str(tmp_path / "graph.json")
    for days, said in (("0", "stale"), ("99999", "")):
        options = ["--resamples", "0", "--stale-days", days, "--out", graph]
        assert run(["peers", "graph", str(made), *options]) == 0
        capsys.readouterr()
        assert run(["peers", "show", graph]) == 0
        assert ("days old" in capsys.readouterr().err) == bool(said)


def test_a_trap_is_said_on_stderr_and_in_the_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["a", "b", "c", "d"]
    same = {j: {i: 3 + abs(models.index(i) - models.index(j)) for i in models if i != j} for j in models}
    assert run(["peers", "graph", scores(tmp_path, models=models, scores=same), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["flags"] == ["symmetric_scores"]
    assert said.err.startswith("warning: scores are symmetric")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ["M1", "M2"], "scores": {}}, "a graph needs at least 3 models, got 2"),
        ({"models": ["M1", "M2", "M3"]}, "scores: M4 is not among `models`"),
        ({"models": ["M1", "M1", "M3"]}, "models: two models have the same name"),
        ({"scores": [[1]]}, "`scores` must have a row and a column for each of 5 models"),
        ({"scores": 7}, "Expected `object`, got `int`"),
        ({"cells": {"M1": {"M2": [1, 2]}}}, "cells.M1.M2: 2 entries for 0 `questions`"),
        ({"scores": {"M1": {"M2": "high"}}}, "got `str`"),
        ({"manifest": {"scale": [5, 5]}}, "manifest.scale: expected the lowest score"),
        ({"manifest": {"began": "yesterday"}}, "manifest.began: expected a time with its zone"),
        ({"manifest": {"began": "2026-01-01"}}, "manifest.began: expected a time with its zone"),
    ],
)
def test_what_is_wrong_with_scores_is_said(
    changes: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["peers", "graph", scores(tmp_path, **changes)]) == 2
    assert said in capsys.readouterr().err


class Loads(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data") and not (value or "").startswith(("#", "data:")):
                self.found.append(f"{tag} {name}={value}")


def test_pictures_and_the_page_of_a_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "reviewed.json"
    made.write_text(json.dumps(review_json(types=1)))
    graph, page, picture = tmp_path / "graph.json", tmp_path / "<graph>.html", tmp_path / "graph.svg"
    assert run(["peers", "graph", str(made), "--resamples", "60", "--out", str(graph)]) == 0
    assert "LH 100%" in capsys.readouterr().out
    assert run(["peers", "show", str(graph), "--type", "type0", "--html", str(page), "--picture", str(picture)]) == 0
    html = page.read_text("utf-8")
    loads = Loads()
    loads.feed(html)
    assert loads.found == []
    assert html.count("<svg") == 3
    assert "C: anchor, second" in html
    assert "@import" not in html
    assert picture.read_text("utf-8").count("anchor") >= 3
    again = page.read_bytes()
    assert run(["peers", "show", str(graph), "--type", "type0", "--html", str(page)]) == 0
    assert page.read_bytes() == again


def test_a_type_that_is_not_there_and_an_ending_that_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "graph.json"
    assert run(["peers", "graph", scores(tmp_path), "--out", str(graph)]) == 0
    assert run(["peers", "show", str(graph), "--type", "law"]) == 4
    assert "no type 'law'; there are: none" in capsys.readouterr().err
    assert run(["peers", "show", str(graph), "--picture", "graph.gif"]) == 2
    assert run(["peers", "show", str(tmp_path / "scores.json")]) == 2
    assert "expected the graph that `turnout peers graph --out` writes" in capsys.readouterr().err


def test_without_numpy_there_is_a_graph_and_a_word_on_intervals(tmp_path: Path) -> None:
    made = tmp_path / "reviewed.json"
    made.write_text(json.dumps(review_json(30, types=1)))
    script = (
        "import sys; sys.modules.update(dict.fromkeys(('numpy', 'scipy', 'matplotlib', 'polars')))\n"
        f"from turnout.cli.app import run; sys.exit(run(['peers', 'graph', {str(made)!r}, '--json']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stability"] == {}
    assert done.stderr == "no intervals: they need numpy; pip install 'turnout[report]'\n"
