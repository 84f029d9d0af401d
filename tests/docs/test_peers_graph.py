"""The example in docs/guide/peers-graph.md runs, and says what the page says."""

import re
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.peers.graph.words import CELLS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "peers-graph.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    for command in block("sh").splitlines():
        program, *arguments = command.split()
        assert program == "turnout"
        assert run(arguments) == 0
        said = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
        assert said[:8] == [line for line in block("text").splitlines() if line.strip()]
    assert (tmp_path / "graph.html").stat().st_size > 20_000
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_names_every_category() -> None:
    for cell in CELLS:
        assert re.search(rf"\b{cell}\b", PAGE), cell
