"""The report of a calibration loads nothing, and its figures can be made again from the units in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_evaluate_routes import CONFIG
from tests.outcomes import written
from tests.pages.opened import Opened
from tests.trajectories import rows

from turnout.cli.app import run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Opened, dict[str, Any]]:
    """The page that `turnout calibrate --report` writes, and what the command keeps as JSON."""
    folder = tmp_path_factory.mktemp("calibration")
    outcomes, runs = rows(32)
    config = CONFIG.replace('capable = "large"\n', 'capable = "large"\nthreshold = 1.0\n', 1)
    (folder / "turnout.toml").write_text(config)
    both = written(folder / "o.jsonl", outcomes), written(folder / "t.jsonl", runs)
    arguments = [
        "calibrate",
        "coder",
        str(both[0]),
        "--trajectories",
        str(both[1]),
        "--config",
        str(folder / "turnout.toml"),
    ]
    arguments += ["--capable", "big", "--efficient", "small", "--resamples", "200", "--max-loss", "0.3"]
    arguments += ["--sweep", "threshold=0.5,0.8,1", "--no-write"]
    kept = folder / "kept.json"
    assert run([*arguments, "--report", str(folder / "page.html"), "--keep", str(kept)]) == 0
    return Opened(Path(folder / "page.html").read_text("utf-8")), json.loads(kept.read_text())


def test_the_page_loads_nothing(made: tuple[Opened, dict[str, Any]]) -> None:
    assert made[0].reaches_out() == []
    assert made[0].text.count("<svg") == 3


def test_the_figures_in_the_page_are_those_of_the_command(made: tuple[Opened, dict[str, Any]]) -> None:
    page, found = made
    assert page.data["figures"] == found


@pytest.mark.parametrize("side", ["train", "held_out"])
@pytest.mark.parametrize("name", ["chosen", "in_force"])
def test_figures_are_made_again_from_the_units(made: tuple[Opened, dict[str, Any]], name: str, side: str) -> None:
    page, found = made
    units = page.shown_by("units", side=side)
    judged = found[side][name]
    moved = [one for one in units if one[name] is not None]
    solved = sum(one["efficient_success" if one[name] is None else "capable_success"] for one in units)
    assert judged["success"]["value"] == pytest.approx(solved / len(units))
    assert judged["moved"]["value"] == pytest.approx(len(moved) / len(units))
    lost = page.shown_by("units", side=side, quadrant="LOSS", **{name: None})
    assert judged["lost"]["value"] == pytest.approx(len(lost) / len(units))


def test_every_setting_tried_is_a_row(made: tuple[Opened, dict[str, Any]]) -> None:
    page, found = made
    points = page.rows("points")
    assert [one["threshold"] for one in points] == [1.0, 0.5, 0.8]
    for row, point in zip(points, found["points"], strict=True):
        assert (row["train_lost"], row["held_out_lost"]) == (point["train"]["lost"], point["held_out"]["lost"])
        assert (row["chosen"], row["in_force"], row["allowed"]) == (
            point["chosen"],
            point["in_force"],
            point["allowed"],
        )


def test_each_bin_of_the_score_shows_its_units(made: tuple[Opened, dict[str, Any]]) -> None:
    page, found = made
    assert found["reliability"]
    for one in found["reliability"]:
        units = page.shown_by("units", side="held_out", bin=f"{one['low']:g} to {one['high']:g}")
        assert len(units) == one["n"]
        if units:
            assert one["failed"]["value"] == pytest.approx(
                sum(not unit["efficient_success"] for unit in units) / one["n"]
            )
            assert one["score"] == pytest.approx(sum(unit["score"] for unit in units) / one["n"])


def test_units_stand_where_their_lines_say(made: tuple[Opened, dict[str, Any]]) -> None:
    page, _ = made
    outcomes, _ = rows(32)
    for one in page.rows("units"):
        source = outcomes[one["capable_line"] - 1]
        assert (source["task_id"], bool(source["success"])) == (one["task"], one["capable_success"])
