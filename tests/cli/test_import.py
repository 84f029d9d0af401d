"""`turnout import`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
from tests.evaluate.importers.samples import SAMPLES, lines, table, written

from turnout.cli.app import run


def test_a_folder_of_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for sample in SAMPLES:
        written(folder, sample)
    (folder / "notes.json").write_text('{"a": 1}', "utf-8")
    ledger = f"sqlite:///{tmp_path}/a.db"
    assert run(["import", str(folder), "--ledger", ledger, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["turns"], told["outcomes"]) == (sum(s.turns for s in SAMPLES), sum(s.outcomes for s in SAMPLES))
    assert (told["new_turns"], told["new_outcomes"]) == (told["turns"], told["outcomes"])
    assert {Path(f["file"]).name: f["format"] for f in told["files"]} == {s.name: s.format for s in SAMPLES} | {
        "notes.json": ""
    }
    assert run(["import", str(folder), "--ledger", ledger]) == 0
    assert "0 turns and 0 outcomes were added" in capsys.readouterr().out


def test_what_is_skipped_is_said_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(table(2)) + b"garbage\n")
    skipped = tmp_path / "skipped.jsonl"
    assert run(["import", str(path), "--ledger", f"sqlite:///{tmp_path}/a.db", "--skipped", str(skipped)]) == 0
    out = capsys.readouterr().out
    assert "skipped 1: damaged: cut or overwritten" in out
    assert f"{path}:3" in out
    assert [json.loads(line)["line"] for line in skipped.read_text("utf-8").splitlines()] == [3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "there is no such file or folder"),
        (["x.json", "--format", "word"], "no format 'word'; known: claude-code, codex"),
        (["x.json"], "no file has a format that is known"),
        (["x.json", "--ledger", "mysql://u:hunter22@h/d"], "SQLite or PostgreSQL"),
    ],
)
def test_errors_say_what_to_do(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text("{}", "utf-8")
    assert run(["import", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "hunter22" not in error
