"""The example in docs/guide/peers-simulate.md runs, and says what the page says."""

import json
import re
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.peers.simulate.arms import TOLD

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "peers-simulate.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    first, second = block("sh").splitlines()
    assert run([*first.split()[1:], "--processes", "1"]) == 0
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    for line in block("text").splitlines():
        assert any(one.startswith(line) for one in said), line
    assert run([*second.split()[1:], "--processes", "1", "--splits", "1"]) == 0
    assert "default alpha=1 d2=75" in json.loads(capsys.readouterr().out)["strategies"]


def test_the_page_names_every_strategy() -> None:
    for strategy in TOLD:
        assert re.search(rf"^\| .*\b{strategy}\b", PAGE, re.MULTILINE), strategy
