"""`turnout report`: who spent what over a period of a ledger."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pages.opened import Opened
from tests.spent import CONFIG, plain, turns, written

from turnout.cli import exits
from turnout.cli.app import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger and the configuration it was made under."""
    at = tmp_path_factory.mktemp("report")
    written(at / "turnout.db")
    (at / "turnout.toml").write_text(CONFIG)
    return at


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["report", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_figures_are_those_added_up_from_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reported(capsys, "page.html")
    plainly = plain(folder / "turnout.db")
    parts: dict[str, float] = {}
    for part in found["spending"]["parts"]:
        name = f"{part['kind']} {part['name']}" if part["kind"] == "answers" else part["kind"]
        parts[name] = parts.get(name, 0.0) + part["usd"]
    assert parts == pytest.approx(plainly["parts"])
    alone = found["spending"]["alone"]
    assert (alone["target"], alone["usd"], alone["spent_usd"]) == (
        "large",
        pytest.approx(plainly["alone"]),
        pytest.approx(plainly["paid"]),
    )
    assert Opened((folder / "page.html").read_text("utf-8")).data["figures"] == found


def test_people_get_a_sentence_and_the_sessions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("At least $0.")
    assert "than large alone" in out.splitlines()[0]
    assert "cold after a switch" in out
    assert "s1" in out


def test_a_period_is_cut_out_of_the_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    at = turns()[0].at
    cut = reported(capsys, "--since", "2023-11-14T22:13:21Z", "--until", "2023-11-14T22:13:24Z")
    assert (cut["first"], cut["spending"]["turns"]) == ("2023-11-14T22:13:21.000+00:00", 3)
    assert at == 1_700_000_000.0
    assert reported(capsys, "--since", "14d")["spending"]["turns"] == 0
    assert reported(capsys, "--session", "s2")["spending"]["turns"] == 3
    assert reported(capsys, "-n", "2")["last"].startswith("2023-11-14T22:13:27")


def test_without_a_configuration_no_model_alone_is_priced(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = reported(capsys, "--ledger", f"sqlite:///{folder / 'turnout.db'}")
    assert found["spending"]["alone"] is None
    assert found["spending"]["cold_unknown"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--since", "yesterday"), exits.USAGE, "--since 'yesterday': expected a span such as 14d"),
        (("--until", "0d"), exits.USAGE, "--until '0d': expected a time span"),
        (("--against", "lagre"), exits.USAGE, "there are large, small"),
        (("--ledger", "sqlite:///none.db"), exits.NOT_FOUND, "none.db does not exist"),
        (("--config", "none.toml"), exits.USAGE, "none.toml"),
        (("nowhere/page.html",), exits.USAGE, "nowhere/page.html"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *arguments]) == code
    assert said in capsys.readouterr().err


def test_the_configuration_of_another_gateway_prices_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = folder / "other.toml"
    other.write_text(CONFIG.replace("small", "tiny").replace("large", "huge"))
    assert reported(capsys, "--config", str(other))["spending"]["alone"] is None
    assert reported(capsys, "--config", str(other), "--against", "huge")["spending"]["alone"]["target"] == "huge"
