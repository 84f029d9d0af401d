"""`turnout knowledge`."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wordllama", reason="the extra `knowledge` is not installed")

from turnout.cli import knowledge
from turnout.cli.app import run

ROWS = [
    {"id": "film", "title": "Lanterns over Harrowmere", "text": "It was directed by Odile Vantorre."},
    {"id": "town", "title": "Port Saltry", "text": "Port Saltry is a harbour town. Odile Vantorre left it in 1946."},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "nonsense\n")
    assert (
        run(["knowledge", "build", "c.jsonl", "--out", "k", "--embedder", "hashed", "--facts", "7", "--no-bm25"]) == 0
    )
    caught = capsys.readouterr()
    assert "2 passages, 3 facts" in caught.out
    assert "1 bad" in caught.out
    assert "left out: c.jsonl, line 3: not JSON" in caught.err
    return "k"


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["knowledge", *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_settings_stay_until_they_are_changed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "build", "c.jsonl", "--out", folder)["same"] == 2
    made = told(capsys, "show", folder)
    assert (made["embedder"], made["retrieval"]["facts"], made["retrieval"]["bm25"]) == ("hashed", 7, False)
    told(capsys, "build", "c.jsonl", "--out", folder, "--bm25", "--embedder", "wordllama")
    made = told(capsys, "show", folder)
    assert (made["embedder"], made["retrieval"]["facts"], made["retrieval"]["bm25"]) == ("wordllama", 7, True)
    assert made["most_joined"][0] == {"name": "Odile Vantorre", "facts": 2}


def test_search_prints_facts_with_their_passages(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = told(capsys, "search", folder, "Who left in 1946?", "harbour", "--at-most", "1")
    assert first["facts"][0]["text"] == "Port Saltry: Odile Vantorre left it in 1946."
    assert second["facts"][0]["sources"] == ["town"]
    assert run(["knowledge", "search", folder, "harbour"]) == 0
    assert "harbour town" in capsys.readouterr().out


def test_show_tells_an_entity_a_fact_and_a_passage(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    about = told(capsys, "show", folder, "odile vantorre", "--at-most", "1")
    assert (len(about["facts"]), about["facts_in_all"]) == (1, 2)
    assert told(capsys, "show", folder, about["facts"][0]["id"])["facts"] == about["facts"]
    assert told(capsys, "show", folder, "town")["passages"][0]["title"] == "Port Saltry"
    assert run(["knowledge", "show", folder]) == 0
    assert "2 passages" in capsys.readouterr().out
    assert run(["knowledge", "show", folder, "town"]) == 0
    assert "harbour" in capsys.readouterr().out


def test_what_is_wrong_is_told_with_its_code(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    for code, arguments in (
        (4, ["show", folder, "nobody"]),
        (2, ["search", "nowhere", "x"]),
        (2, ["build", "none.jsonl", "--out", folder]),
        (2, ["build", "c.jsonl", "--out", "."]),
        (2, ["build", "c.jsonl", "--out", folder, "--embedder", "magic"]),
        (3, ["search", "http://127.0.0.1:9", "x"]),
        (2, ["serve", "nowhere"]),
    ):
        assert run(["knowledge", *arguments]) == code, arguments
        assert capsys.readouterr().err.startswith("error: ")


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(knowledge, "_PACKAGES", ("no_such_package",))
    assert run(["knowledge", "build", "c.jsonl", "--out", "k"]) == 2
    assert "pip install 'turnout[knowledge]'" in capsys.readouterr().err
