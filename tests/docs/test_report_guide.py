"""The commands in docs/guide/report.md run, and the page names every part of the spend as reports do."""

import re
from pathlib import Path

import pytest
from tests.recorded import ROOT
from tests.spent import CONFIG, written

from turnout.cli.app import run
from turnout.evaluate.spending import KINDS

PAGE = (ROOT / "docs" / "guide" / "report.md").read_text("utf-8")


def test_the_commands_say_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "turnout.db")
    (tmp_path / "turnout.toml").write_text(CONFIG)
    commands, said = (re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0] for language in ("sh", "text"))
    for command in commands.splitlines():
        assert run(command.split()[1:]) == 0
        assert capsys.readouterr().out.splitlines()[0] == said.strip()
    assert (tmp_path / "week.html").exists()


def test_every_part_of_the_spend_is_on_the_page() -> None:
    rows = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE))
    for kind, said in KINDS.items():
        assert rows[kind].startswith(said[:40]), kind
