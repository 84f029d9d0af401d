"""The example in docs/guide/policies.md runs, and says what the page says."""

import re
import shlex
from pathlib import Path

import pytest
from tests.recorded import ROOT

from turnout.cli.app import run
from turnout.policies.folder import Folder

PAGE = (ROOT / "docs" / "guide" / "policies.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def plain(text: str) -> str:
    """Without digests, and without what depends on their width."""
    names: dict[str, str] = {}
    text = re.sub(r"\b(?:[0-9a-f]{12}|[A-Z]{4})\b", lambda m: names.setdefault(m[0], f"<{len(names)}>"), text)
    return "\n".join(line for line in (" ".join(row.split()) for row in text.splitlines()) if line and "──" not in line)


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("turnout.toml", "sooner.toml"), blocks("toml"), strict=True):
        Path(name).write_text(text)
    commands = blocks("sh")[0].splitlines()
    for command in commands[:3]:
        assert run(shlex.split(command)[1:]) == 0
    assert plain(capsys.readouterr().out) == plain(blocks("text")[0])
    assert run(shlex.split(commands[3])[1:]) == 0
    history = capsys.readouterr().out
    assert [word in history for word in ("fewer tasks lost, same price", "failures rose")] == [True, True]
    assert [change.action for change in Folder(Path("policies")).history()] == ["promote", "rollback"]
