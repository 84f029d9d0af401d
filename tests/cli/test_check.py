"""`turnout check`: findings, their form and the exit code."""

import json
from pathlib import Path

import pytest

from turnout.cli.app import run

GOOD = """\
[upstreams.main]
format = "anthropic_messages"
base_url = "https://api.anthropic.com"
api_key_env = "CHECK_TEST_KEY"
[targets.small]
upstream = "main"
model = "claude-haiku-4-5"
context_window = 200_000
[routes.coder]
type = "passthrough"
target = "small"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHECK_TEST_KEY", "very-secret")
    path = tmp_path / "turnout.toml"
    path.write_text(GOOD)
    return path


def test_a_good_file_exits_0(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(file), "--strict"]) == 0
    out = capsys.readouterr().out
    assert "route coder: passthrough over small" in out
    assert "0 errors, 0 warnings" in out


def test_warnings_fail_only_under_strict(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD.replace("claude-haiku-4-5", "home-made"))
    assert run(["check", str(file)]) == 0
    assert run(["check", str(file), "--strict"]) == 1
    assert f"warning: {file}:5: targets.small: no price is known" in capsys.readouterr().out


def test_errors_exit_2_and_are_listed_together(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD.replace('target = "small"', 'target = "smal"').replace("200_000", '"big"'))
    assert run(["check", str(file), "--json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["errors"], result["digest"]) == (False, 2, None)
    assert [(f["line"], f["key"]) for f in result["findings"]] == [
        (8, "targets.small.context_window"),
        (11, "routes.coder.target"),
    ]
    assert "did you mean `small`?" in result["findings"][1]["hint"]


def test_show_prints_the_effective_configuration_and_no_secret(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(file), "--show", "--json"]) == 0
    out = capsys.readouterr().out
    config = json.loads(out)["config"]
    assert config["server"]["max_body_mib"] == 32
    assert config["routes"]["coder"]["otherwise"] == "small"
    assert "very-secret" not in out


def test_a_missing_variable_is_an_error(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHECK_TEST_KEY")
    assert run(["check", str(file)]) == 2
    assert "CHECK_TEST_KEY is not set" in capsys.readouterr().out


def test_a_missing_file_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(tmp_path / "none.toml")]) == 2
    caught = capsys.readouterr()
    assert "turnout init" in caught.err
    assert len(caught.err.strip().splitlines()) == 1
