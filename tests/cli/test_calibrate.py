"""`turnout calibrate`: from recorded runs to a policy file with its evidence."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_evaluate_routes import CONFIG
from tests.outcomes import written
from tests.trajectories import rows

from turnout.cli.app import run
from turnout.policies.file import read as read_policy

ARMS = ("--capable", "big", "--efficient", "small", "--resamples", "200", "--sweep", "threshold=0.5,0.8,1")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    outcomes, runs = rows(32)
    (tmp_path / "turnout.toml").write_text(
        CONFIG.replace('capable = "large"\n', 'capable = "large"\nthreshold = 1.0\n', 1)
    )
    both = written(tmp_path / "o.jsonl", outcomes), written(tmp_path / "t.jsonl", runs)
    return str(both[0]), str(both[1]), str(tmp_path / "turnout.toml")


def calibrated(capsys: pytest.CaptureFixture[str], files: tuple[str, str, str], *more: str) -> Any:
    outcomes, runs, config = files
    arguments = ["calibrate", "coder", outcomes, *ARMS, "--config", config, "--trajectories", runs, *more, "--json"]
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_a_better_policy_is_written_with_its_evidence_and_can_be_served(
    files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "sweep.json"
    found = calibrated(capsys, files, "--max-loss", "0.3", "--keep", str(kept))
    assert (found["result"], found["chosen"], found["in_force"]) == ("better", {"threshold": 0.5}, {"threshold": 1.0})
    policy = read_policy(Path(found["policy"]))
    assert (policy.route, policy.made_by, policy.router["threshold"]) == ("coder", "calibrate", 0.5)
    evidence = policy.evidence
    assert evidence is not None
    assert (evidence.rows, evidence.holds, evidence.data_digest) == (32, True, found["data"]["digest"])
    assert evidence.metrics["lost"].value == pytest.approx(found["held_out"]["chosen"]["lost"]["value"])
    assert evidence.before["lost"].value == pytest.approx(found["held_out"]["in_force"]["lost"]["value"])
    assert policy.came_from not in ("", policy.digest)
    # What is kept for a report is what was printed.
    whole = json.loads(kept.read_text())
    assert whole == {name: value for name, value in found.items() if name != "policy"}
    assert len(whole["points"]) == 3


def test_the_same_data_and_seed_give_the_same(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (calibrated(capsys, files, "--max-loss", "0.3", "--no-write") for _ in range(2))
    assert one == two
    assert one["policy"] is None
    assert calibrated(capsys, files, "--max-loss", "0.3", "--no-write", "--seed", "2")["split"] != one["split"]


def test_people_get_the_verdict_and_what_it_rests_on(
    files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes, runs, config = files
    arguments = ["calibrate", "coder", outcomes, *ARMS, "--config", config, "--trajectories", runs]
    assert run([*arguments, "--max-loss", "0.3", "--loss-weight", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Better than what you have")
    for said in (
        "Held-out tasks, judged once",
        "random mix",
        "in force",
        "16 tasks to choose by",
        "turnout policy promote",
    ):
        assert said in out
    assert run([*arguments, "--max-loss", "0.01"]) == 0
    assert capsys.readouterr().out.startswith("None allowed: no setting loses at most 1.0%")
    assert len(list((tmp_path / "policies").glob("*.toml"))) == 1


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        (("--train", "0.2"), 2, "too little data: 32 tasks were run by both models, which leaves 6 to choose by"),
        (("--sweep", "treshold=0.5"), 2, "route coder: treshold: the router has no such number"),
        (("--sweep", "threshold=x"), 2, "expected NAME=VALUE"),
        (("--loss-weight", "billing=3"), 2, "no task is of category billing"),
        (("--efficient", "smal"), 2, "no rows of smal; nearest: small"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], more: tuple[str, ...], code: int, reason: str
) -> None:
    outcomes, runs, config = files
    arguments = ["calibrate", "coder", outcomes, *ARMS, "--config", config, "--trajectories", runs, "--max-loss", "0.3"]
    assert run([*arguments, *more]) == code
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("route", "reason"),
    [("nobody", "has no route nobody"), ("judged", "it asks small"), ("one", "no efficient and capable")],
)
def test_routes_that_cannot_be_calibrated_are_refused(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], route: str, reason: str
) -> None:
    outcomes, runs, config = files
    arms = [one for one in ARMS if not one.startswith("threshold=") and one != "--sweep"]
    arguments = ["calibrate", route, outcomes, *arms, "--config", config, "--trajectories", runs, "--max-loss", "0.3"]
    assert run(arguments) != 0
    err = capsys.readouterr().err
    assert reason in err
    assert "internal" not in err


def test_a_ledger_of_imported_runs_gives_what_the_files_give(
    files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes, runs, config = files
    url = f"sqlite:///{tmp_path}/turnout.db"
    assert run(["import", outcomes, runs, "--ledger", url]) == 0
    capsys.readouterr()
    found = calibrated(capsys, (url, url, config), "--max-loss", "0.3", "--no-write")
    of_files = calibrated(capsys, files, "--max-loss", "0.3", "--no-write")
    assert (found["chosen"], found["points"], found["split"]) == (
        of_files["chosen"],
        of_files["points"],
        of_files["split"],
    )
