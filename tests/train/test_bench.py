"""The benchmark at its smallest: warm start, runs in processes of their own, the table; what is done is not done again."""

import json
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.train.bench import ARMS, PRESETS, Outcome, jobs, settings_of, table
from turnout.train.credit import Route
from turnout.train.evaluation import Scored


def row(f1: float, route: Route) -> Scored:
    return Scored("q", "a", f1, f1, 0.5, 0.5, 0.0, 1, 2, route)


def test_every_way_takes_as_many_trajectories_and_differs_in_its_switches_only(tmp_path: Path) -> None:
    preset = PRESETS["cpu-small"]
    made = [
        settings_of(preset, job, tmp_path, tmp_path) for job in jobs(preset) if (job.seed, job.setting) == (0, "main")
    ]
    assert len({(one.optimisation, one.limits, one.thresholds, one.weights) for one in made}) == 1
    assert len({(one.route_by, one.shaping, one.teacher) for one in made}) == len(ARMS) == 5


def test_the_table_puts_seeds_together(tmp_path: Path) -> None:
    first, second = [job for job in jobs(PRESETS["cpu-small"]) if job.arm == "full" and job.setting == "main"][:2]
    right, wrong = row(1.0, Route.FAITHFUL), row(0.0, Route.SHORTCUT)
    worlds = ("known", "held_out", "edited")
    outcomes = [
        Outcome(first, dict.fromkeys(worlds, (right, right)), 1.0, {}),
        Outcome(second, dict.fromkeys(worlds, (right, wrong)), 1.0, {}),
    ]
    lines = table(outcomes)
    assert [line.world for line in lines] == list(worlds)
    assert (lines[0].runs, lines[0].f1.value, lines[0].shortcut_share.value if lines[0].shortcut_share else None) == (
        2,
        0.75,
        0.25,
    )
    assert lines[0].f1.low <= 0.75 <= lines[0].f1.high


def test_the_smallest_benchmark_runs_and_is_not_run_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("trl", reason="needs the extra `train`")
    arguments = ["train", "bench", "--preset", "cpu-tiny", "--out", str(tmp_path), "--jobs", "1", "--json"]
    assert run(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["run"] for one in told["runs"]} == {"main-grpo-0", "main-full-0", "hard-full-0"}
    assert len(told["table"]) == 9
    for line in told["table"]:
        assert line["f1"]["low"] <= line["f1"]["value"] <= line["f1"]["high"]
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert kept == {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
