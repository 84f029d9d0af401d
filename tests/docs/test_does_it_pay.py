"""The example in docs/guide/does-it-pay.md runs, and says what the page says."""

import re
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.evaluate.quadrants import QUADRANTS
from turnout.evaluate.words import ARMS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "does-it-pay.md").read_text("utf-8")


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
        program, *arguments = command.split()
        assert program == "turnout"
        assert run(arguments) == 0
        said.append(capsys.readouterr().out.splitlines()[0])
    assert said == block("text").splitlines()
    assert (tmp_path / "routed.html").exists()


def test_the_page_names_every_set_and_way_of_choosing() -> None:
    for name in (*QUADRANTS, *(said for name, said in ARMS.items() if name not in ("routed", "efficient"))):
        assert f"| {name}" in PAGE, name
