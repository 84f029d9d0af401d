"""`turnout peers review`: what it prints and writes, how it ends, and what it says of bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnout.cli.app import run

TARGET = '[targets.{0}]\nupstream = "{1}"\nmodel = "vendor-{0}"\n'
CONFIG = (
    '[upstreams.played]\nformat = "{form}"\nscript = "replies.jsonl"\n'
    '[upstreams.closed]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "PEERS_REVIEW_KEY"\n'
    + "".join(TARGET.format(name, "played") + "price = {{ input = 1.0, output = 5.0 }}\n" for name in ("a", "b", "c"))
    + TARGET.format("free", "played")
    + TARGET.format("locked", "closed")
    + '[routes.any]\ntype = "passthrough"\ntarget = "a"\n'
)
GRADE = '{{"reason": "So.", "score": {0}, "flags": []}}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PEERS_REVIEW_KEY", raising=False)
    (tmp_path / "turnout.toml").write_text(CONFIG.format(form="openai_chat"))
    lines: list[dict[str, Any]] = []
    for judge, scores in (("a", (8, 6)), ("b", (9, 7)), ("c", (5, 4)), ("free", (3, 3))):
        lines += [
            {"model": f"vendor-{judge}", "contains": "Grade the answer", "text": GRADE.format(scores[0])},
            {"model": f"vendor-{judge}", "text": f"The answer of one of them is {ord(judge[0])}."},
        ]
    (tmp_path / "replies.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    questions(tmp_path / "q.jsonl", 25)
    return tmp_path


def questions(file: Path, count: int, kind: str = "general") -> None:
    file.write_text("".join(f'{{"id": {i}, "question": "What is {i}?", "type": "{kind}"}}\n' for i in range(count)))


def review(*arguments: str) -> int:
    return run(["peers", "review", "q.jsonl", "--models", "a,b,c", *arguments])


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_scores_come_from_models_of_any_format(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "turnout.toml").write_text(CONFIG.format(form=form))
    assert review("--json") == 0
    told, written = json.loads(capsys.readouterr().out), json.loads((folder / "scores.json").read_text())
    assert told == written
    assert written["scores"] == {
        "a": {"a": None, "b": 8.0, "c": 8.0},
        "b": {"a": 9.0, "b": None, "c": 9.0},
        "c": {"a": 5.0, "b": 5.0, "c": None},
    }
    assert written["complete"]
    assert [m["model"] for m in written["manifest"]["models"]] == ["vendor-a", "vendor-b", "vendor-c"]
    assert written["spent"]["calls"] == 25 * 3 + 25 * 6


def test_a_plan_calls_nothing_and_says_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert review("--plan", "--json") == 0
    before = json.loads(capsys.readouterr().out)
    assert (before["calls"], before["calls_there"]) == (225, 0)
    assert 0 < before["usd"] < before["usd_at_most"]
    assert not (folder / "review.journal.jsonl").exists()
    assert review() == 0
    table = capsys.readouterr().out
    assert "8.00" in table
    assert "0 of 50" in table
    assert review("--plan", "--json") == 0
    after = json.loads(capsys.readouterr().out)
    assert (after["calls"], after["calls_there"], after["usd"]) == (0, 225, 0)
    spent = json.loads((folder / "scores.json").read_text())["spent"]
    assert spent["usd"] <= before["usd_at_most"]
    assert run(["peers", "review", "q.jsonl", "--models", "a,b,free", "--plan"]) == 0
    assert "no price is known for free" in capsys.readouterr().out


def test_recorded_answers_leave_scores_to_be_bought(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question_id": i, "answers": {"vendor-a": f"x{i}", "b": f"y{i}", "c": None}} for i in range(25)]
    rows[3]["answers"] = {"vendor-a": "x", "b": "y", "c": "z"}
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert review("--answers", "a.jsonl") == 0
    found = json.loads((folder / "scores.json").read_text())
    assert found["spent"]["calls"] == 25 * 4 + 2
    assert found["counts"]["a"] == {"a": 0, "b": 25, "c": 1}
    assert {(one["judge"], one["author"], one["count"]) for one in found["thin"]} == {("a", "c", 1), ("b", "c", 1)}
    assert found["scores"]["a"]["c"] is None
    (folder / "a.jsonl").write_text('{"id": "no such", "model": "a", "answer": "x"}\n')
    assert review("--answers", "a.jsonl") == 2
    assert "ids must match" in capsys.readouterr().err


def test_a_limit_ends_it_with_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert review("--max-calls", "100", "--sequential") == 1
    assert "might exceed the limit on calls" in capsys.readouterr().err
    assert json.loads((folder / "scores.json").read_text())["stopped"] == "calls"
    assert review("--max-calls", "225") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--models", "a,b"], "3 different models or more"),
        (["--models", "a,b,b"], "3 different models or more"),
        (["--models", "a,b,d"], "no target 'd'"),
        (["--judges", "3"], "each answer has 2 others"),
        (["--revision", "x=1"], "--revision x: no such target"),
        (["--models", "a,b,free", "--max-usd", "1"], "no price is known for free"),
        (["--models", "a,b,locked"], "PEERS_REVIEW_KEY is not set"),
        (["--config", "other.toml"], "no such file"),
        (["--journal", "q.jsonl"], "not a line of a review's journal"),
        (["--temperature", "3"], "temperature"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "q.jsonl").read_bytes()
    assert review(*arguments) == 2
    assert said in capsys.readouterr().err
    assert (folder / "q.jsonl").read_bytes() == before
    assert not (folder / "scores.json").exists()


def test_few_questions_take_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions(folder / "q.jsonl", 7, "math")
    assert review() == 2
    assert "fewer than 25 questions of type math (7)" in capsys.readouterr().err
    assert review("--force") == 0


def test_a_target_that_is_not_there_is_an_upstream_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PEERS_REVIEW_KEY", "sk-test-0123456789abcdef")
    (folder / "replies.jsonl").write_text('{"model": "vendor-a", "status": 401, "error": "bad key"}\n{"text": "17"}\n')
    assert review() == 3
    said = capsys.readouterr().err
    assert "a gave no replies" in said
    assert "sk-test" not in said + (folder / "review.journal.jsonl").read_text()
