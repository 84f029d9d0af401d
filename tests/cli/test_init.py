"""`turnout init`: every preset is a configuration that `check` has nothing to say about."""

import json
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.cli.init import Preset

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


@pytest.mark.parametrize("preset", list(Preset))
def test_presets_pass_check_without_a_warning(
    preset: Preset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "k")
    file = tmp_path / "turnout.toml"
    assert run(["init", str(file), "--preset", preset, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert all(Path(path).is_file() for path in written["files"])
    assert run(["check", str(file), "--strict"]) == 0, capsys.readouterr().out


def test_a_file_is_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text("mine")
    assert run(["init", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run(["init", str(file), "--force"]) == 0
    assert "[routes.coder]" in file.read_text()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path / "a" / "turnout.toml")]) == 2
    assert f"there is no folder {tmp_path / 'a'}; `mkdir -p" in capsys.readouterr().err


def test_the_next_steps_name_the_key_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    assert run(["init", str(file), "--preset", "openai"]) == 0
    out = capsys.readouterr().out
    assert "export OPENAI_API_KEY=" in out
    assert f"turnout check {file}" in out
