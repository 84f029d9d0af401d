"""The example in docs/guide/calibrate.md runs, and says what the page says."""

import re
import shlex
from pathlib import Path

import pytest
from tests.recorded import ROOT

from turnout.cli.app import run

PAGE = (ROOT / "docs" / "guide" / "calibrate.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    said = []
    for command in block("sh").splitlines():
        program, *arguments = shlex.split(command)
        assert program == "turnout"
        assert run(arguments) == 0
        said.append(capsys.readouterr().out.splitlines()[0])
    assert said == [" ".join(one.split()) for one in block("text").split("\n\n")]
    assert len(list((tmp_path / "policies").glob("coder-*.toml"))) == 1
