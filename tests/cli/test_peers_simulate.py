"""`turnout peers simulate`."""

import json
from pathlib import Path

import pytest
from tests.peers.simulate.tables import rows, written

from turnout.cli.app import run

QUICK = ["--splits", "2", "--resamples", "100", "--processes", "1", "--first", "best"]


def test_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, rows(60), "answers.jsonl.gz"))
    grid = ["--alpha", "3,1", "--d2", "50,75", "--picker", "random,max_received"]
    assert run(["peers", "simulate", path, *QUICK, *grid, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name, one in found["strategies"].items():
        assert set(one["accuracy"]) == {"value", "low", "high"}, name
        assert one["generations"] >= 1
        assert one["votes"] >= 0
    told = {"best_single", "random_chain", "non_targeted", "majority", "majority_C", "paper", "default"}
    settings = {"default alpha=1", "default d2=75", "default alpha=1 picker=max_received d2=75"}
    assert told | settings <= set(found["strategies"])
    assert any("no self-mixture" in note for note in found["notes"])


def test_the_table_says_what_strategies_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, rows(40)))
    priced = [part for model in ("large=8", "middle=3", "small=1", "odd=1") for part in ("--price", model)]
    assert run(["peers", "simulate", path, *QUICK, "--first", "cheapest", *priced]) == 0
    said = capsys.readouterr().out
    assert said.startswith("answers: 4 models, 40 questions, 2 splits; accuracy is the share of right answers")
    assert "default: our rules" in said
    assert "default - paper: " in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mode", "fast"], "--mode fast: expected paper, default"),
        (["--alpha", "1.5"], "--alpha 1.5: expected whole numbers from 0 to 20"),
        (["--d2", "50,50"], "--d2 50,50: something is named twice"),
        (["--picker", ","], "--picker names nothing"),
        (["--price", "large"], "--price large: expected MODEL=X"),
        (["--price", "large=nan"], "--price large=nan: expected MODEL=X"),
        (["--models", "large,tiny"], "no row knows the model 'tiny'"),
    ],
)
def test_what_is_wrong_is_said(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["peers", "simulate", str(written(tmp_path, rows(30))), *options]) == 2
    assert said in capsys.readouterr().err
