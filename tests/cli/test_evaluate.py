"""`turnout evaluate`: whether routing pays, from recorded outcomes."""

import builtins
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.outcomes import row, written
from tests.recorded import needs_recordings, shared

from turnout.cli.app import run
from turnout.evaluate.quadrants import DEFINITIONS

ROWS = [
    one
    for i in range(30)
    for trial in (1, 2)
    for one in (
        row(str(i), "big", i < 20, 10.0, harness="one", trial=trial, category="odd" if i % 2 else "even"),
        row(str(i), "small", i < 10 or i > 27, None if i == 29 else 1.0, harness="one", trial=trial),
        row(str(i), "small", i < 5, 1.0, harness="two", trial=trial),
        row(str(i), "router", i < 20, 4.0, harness="one", trial=trial, efficient_share=0.5),
    )
]
ARMS = ("--capable", "big", "--efficient", "small@one", "--resamples", "300")


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["evaluate", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_contract_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluated(capsys, str(written(tmp_path / "o.jsonl", ROWS)), *ARMS)
    assert (found["n"], found["n_tasks"], found["n_cost"]) == (60, 30, 58)
    assert found["quadrants"] == {"SAFE": 20, "LOSS": 20, "RESCUE": 4, "HARD": 16}
    for arm, success, cost in (("capable", 40, 580), ("efficient", 24, 58), ("oracle", 44, 238)):
        assert found[arm]["success"]["value"] == pytest.approx(success / 60)
        assert found[arm]["success"]["low"] < success / 60 < found[arm]["success"]["high"]
        assert found[arm]["cost_usd"]["value"] == pytest.approx(cost / 58)
        assert found[arm]["cost_usd"]["total"]["value"] == pytest.approx(cost)
        assert found[arm]["cost_usd"]["low"] <= cost / 58 <= found[arm]["cost_usd"]["high"]
    assert found["control"]["capable"]["LOSS"]["value"] == 0.0
    assert found["verdict"].split(":")[0] in ("Pays", "Does not pay", "Not enough data")
    assert found["definitions"] == DEFINITIONS
    assert found["arms"]["efficient"] == {"model": "small", "harness": "one"}


def test_without_repeated_trials_the_control_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = [one for one in ROWS if one["trial"] == 1]
    assert evaluated(capsys, str(written(tmp_path / "o.jsonl", once)), *ARMS)["control"] is None


def test_people_get_the_verdict_the_tables_and_the_definitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "o.jsonl", [*ROWS, "{"])
    assert run(["evaluate", str(file), *ARMS, "--routed", "router", "--loss-weight", "odd=2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Pays: as good as the capable model, for 40% of its cost")
    assert "66.7%" in out
    assert "RESCUE" in out
    assert "weight 2 odd" in out
    assert f"line {len(ROWS) + 1}: " in out
    for name, said in DEFINITIONS.items():
        assert f"  {name}: {said}" in out


def test_an_ambiguous_model_is_an_error_that_lists_its_harnesses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "o.jsonl", ROWS)
    assert run(["evaluate", str(file), "--capable", "big", "--efficient", "small", "--json"]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert "small@one; small@two" in caught.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--capable", "big"), "--efficient"),
        (("--capable", "huge", "--efficient", "small@one"), "no rows of huge"),
        (("--capable", "big", "--efficient", "big"), "named twice"),
        ((*ARMS, "--loss-weight", "x"), "--loss-weight x"),
        ((*ARMS, "--loss-weight", "bill=2"), "there are: even, odd"),
        ((*ARMS, "--loss-weight", "-1"), "0 or more"),
        (("--all-pairs", *ARMS[:2]), "leave out"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run(["evaluate", str(written(tmp_path / "o.jsonl", ROWS)), *arguments]) == 2
    caught = capsys.readouterr().err
    assert said in caught
    assert len(caught.splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(tmp_path / "none.jsonl"), *ARMS]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_the_report_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "r.html"
    found = evaluated(capsys, str(written(tmp_path / "o.jsonl", ROWS)), *ARMS, "--report", str(page))
    text = page.read_text("utf-8")
    assert found["verdict"].replace("'", "&#x27;") in text
    # The lines it names are those of this very file.
    assert hashlib.sha256((tmp_path / "o.jsonl").read_bytes()).hexdigest() in text


@pytest.mark.parametrize("missing", ["numpy", "matplotlib"])
def test_a_missing_extra_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *rest, **more)

    import sys

    for name in [name for name in sys.modules if name.startswith("turnout.evaluate")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    arguments = [str(written(tmp_path / "o.jsonl", ROWS)), *ARMS, "--report", str(tmp_path / "r.html")]
    assert run(["evaluate", *arguments]) == 2
    assert "pip install 'turnout[report]'" in capsys.readouterr().err


def test_all_pairs_are_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "o.jsonl", ROWS)
    found = evaluated(capsys, str(file), "--all-pairs")
    assert len(found["pairs"]) == 6
    gains = [one["headroom"] for one in found["pairs"]]
    assert gains == sorted(gains, reverse=True)
    assert run(["evaluate", str(file), "--all-pairs"]) == 0
    out = capsys.readouterr().out
    assert "small@one" in out
    assert "headroom" in out


@needs_recordings
def test_the_recorded_systems_are_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared()
    assert folder is not None
    file = folder / "data" / "traces" / "outcomes_terminal_bench_core_0_1_1.jsonl.gz"
    found = evaluated(capsys, str(file), "--all-pairs")
    assert (found["arms"], len(found["pairs"])) == (13, 78)
    assert all(one["noise"] is not None for one in found["pairs"])
