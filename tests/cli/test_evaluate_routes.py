"""`turnout evaluate --routes`: routers of a configuration on recorded runs."""

import json
from pathlib import Path

import pytest
from tests.outcomes import written
from tests.trajectories import rows

from turnout.cli.app import run

CONFIG = """
[upstreams.local]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "local"
model = "small"
[targets.large]
upstream = "local"
model = "large"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
[routes.latch]
type = "escalation"
weak = "small"
strong = "large"
judge_when = "never"
[routes.judged]
type = "escalation"
weak = "small"
strong = "large"
judge = "large"
[routes.one]
type = "passthrough"
target = "small"
"""
ARMS = ("--capable", "big", "--efficient", "small", "--resamples", "100")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    outcomes, runs = rows(8)
    (tmp_path / "turnout.toml").write_text(CONFIG)
    both = written(tmp_path / "o.jsonl", outcomes), written(tmp_path / "t.jsonl", runs)
    return str(both[0]), str(both[1]), str(tmp_path / "turnout.toml")


def test_routers_stand_beside_the_baselines(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    outcomes, runs, config = files
    assert run(["evaluate", outcomes, *ARMS, "--routes", config, "--trajectories", runs, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert list(found["routers"]) == ["coder", "latch"]
    assert found["n"] == 8
    coder = found["routers"]["coder"]
    # Half of the tasks fail visibly; of these the capable model solves every second one.
    assert (coder["figures"]["efficient_share"]["value"], coder["figures"]["success"]["value"]) == (0.5, 0.5)
    names = [point["name"] for point in found["frontier"]["points"]]
    assert {"route coder", "route latch", "oracle", "random_mix"} <= set(names)
    assert "route judged is left out: it asks small" in err
    assert "route one is left out" in err
    assert run(["evaluate", outcomes, *ARMS, "--routes", config, "--trajectories", runs]) == 0
    out = capsys.readouterr().out
    assert "route coder" in out
    assert "simulated: at a router's first move" in out


def test_without_models_to_compare_only_decisions_are_shown(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, runs, config = files
    assert run(["evaluate", runs, "--routes", config, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["routers"]["coder"]["moved"]["value"] == 0.5
    Path(runs).write_text(Path(runs).read_text() + '{"task_id": "x", "model": "small", "success": true}\n')
    assert run(["evaluate", runs, "--routes", config]) == 0
    out, err = capsys.readouterr()
    assert "no success is said" in out
    assert "1 left out; the first, 9: expected an object with a list `messages`" in err


def test_what_is_missing_is_said(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    outcomes, runs, config = files
    assert run(["evaluate", outcomes, *ARMS, "--trajectories", runs]) == 2
    assert "--routes" in capsys.readouterr().err
    assert run(["evaluate", outcomes, *ARMS, "--routes", config, "--trajectories", outcomes]) == 2
    assert "no rows of small; there are: big" in capsys.readouterr().err
    assert run(["evaluate", outcomes, "--routes", config]) == 4
    assert "no runs with their messages; line 1: " in capsys.readouterr().err
