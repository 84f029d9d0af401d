"""The example in docs/guide/knowledge.md runs, and says what the page says."""

import re
import shlex
from pathlib import Path

import pytest
from tests.recorded import ROOT

pytest.importorskip("tokenizers", reason="the extra `knowledge` is not installed")

from turnout.cli.app import run

PAGE = (ROOT / "docs" / "guide" / "knowledge.md").read_text("utf-8")


def block(language: str, section: str = "") -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.partition(f"## {section}\n")[2] if section else PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text(block("jsonl"))
    build, search, show = block("sh").splitlines()
    assert run(shlex.split(build)[1:]) == 0
    assert capsys.readouterr().out == block("text")
    assert run(shlex.split(search)[1:]) == 0
    found = capsys.readouterr().out
    assert "She was born in Port Saltry" in found
    assert run(shlex.split(show)[1:]) == 0
    assert "rope works" in capsys.readouterr().out
    exec(compile(block("python"), "guide", "exec"), {})
    assert "directed by Odile Vantorre. ('film',)" in capsys.readouterr().out


def test_the_example_of_a_model_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text(block("jsonl"))
    section = "Facts by a model"
    Path("turnout.toml").write_text(block("toml", section))
    Path("replies.jsonl").write_text(block("json", section))
    assert run(shlex.split(block("sh", section))[1:]) == 0
    assert capsys.readouterr().out == block("text", section)
    assert Path("by-model.calls.jsonl").exists()
