"""Question files and files of recorded answers: what they may look like, and what is said of what they may not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import needs_recordings, shared

from turnout.errors import ConfigError
from turnout.peers.review import answers
from turnout.peers.review.questions import few, read, set_digest, types


def written(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_texts_and_conversations_are_questions(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    file = written(
        tmp_path / "q.jsonl",
        {"id": 1, "question": "What?", "type": "math", "difficulty": 3, "reference": 4},
        {"question_id": "b", "messages": messages, "category": "logic"},
        {"id": "c", "messages": [{"role": "user", "content": "Who?"}]},
    )
    one, other, third = read(file)
    assert (one.id, one.text, one.type, one.difficulty, one.reference) == ("1", "What?", "math", "3", "4")
    assert (other.id, other.type) == ("b", "logic")
    assert "[system]\nBe brief." in other.text
    assert "[user]\nWhy?" in other.text
    assert (third.text, third.type) == ("Who?", "general")
    assert types((one, other, third)) == {"math": 1, "logic": 1, "general": 1}
    assert few((one,) * 25 + (other,)) == {"logic": 1}
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert set_digest(read(packed)) == set_digest(tuple(reversed((one, other, third))))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "What?"}, "`id` is missing"),
        ({"id": 1}, "either `question`"),
        ({"id": 1, "question": "What?", "messages": [{"role": "user", "content": "x"}]}, "either `question`"),
        ({"id": 1, "question": 7}, "Expected `str`"),
        (
            {"id": 1, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "text only",
        ),
        ([1], "Expected `object`"),
    ],
)
def test_what_is_no_question_is_named_with_its_line(row: Any, said: str, tmp_path: Path) -> None:
    file = written(tmp_path / "q.jsonl", {"id": 0, "question": "Fine?"}, row)
    with pytest.raises(ConfigError, match=f"q.jsonl:2: not a question: .*{said}"):
        read(file)


def test_ids_stand_once_and_a_file_holds_something(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"q\.jsonl:2: the id '1' is there twice"):
        read(written(tmp_path / "q.jsonl", {"id": 1, "question": "a"}, {"id": "1", "question": "b"}))
    with pytest.raises(ConfigError, match="there is no question"):
        read(written(tmp_path / "e.jsonl"))
    (tmp_path / "t.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read(tmp_path / "t.jsonl.gz")


def test_answers_are_found_one_a_line_or_by_question(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.jsonl",
        {"id": 1, "model": "vendor-a", "answer": "4"},
        {"question_id": 1, "answers": {"b": 5, "c": None, "stranger": "x"}},
        {"id": 1, "model": "vendor-a", "answer": "4"},
    )
    assert answers.read(file, {"vendor-a": "a", "b": "b", "c": "c"}) == {
        "a": {"1": "4"},
        "b": {"1": "5"},
        "c": {},  # it is named, so that nothing is bought of it
    }


def test_answers_that_contradict_each_other_or_are_nobodys_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", {"id": 1, "model": "a", "answer": "4"}, {"id": 1, "model": "a", "answer": "5"})
    with pytest.raises(ConfigError, match=r"a\.jsonl:2: a second answer of a to '1'"):
        answers.read(file, {"a": "a"})
    with pytest.raises(ConfigError, match="no answer of the models that take part; models in it: a"):
        answers.read(file, {"b": "b"})
    with pytest.raises(ConfigError, match=r"a\.jsonl:1: not an answer"):
        answers.read(written(tmp_path / "a.jsonl", {"id": 1}), {"a": "a"})


@needs_recordings
def test_recorded_answers_of_benchmarks_are_read() -> None:
    folder = shared()
    assert folder is not None
    models = {"claude-3-haiku-20240307": "haiku", "gemma-2-9b-it": "gemma", "gpt-4o-mini-2024-07-18": "mini"}
    found = answers.read(folder / "data" / "peers" / "gsm8k_answers.jsonl.gz", models)
    assert set(found) == {"haiku", "gemma", "mini"}
    assert found["haiku"]["gsm8k-main-test-#0"] == "18"
    assert all(len(by_question) > 600 for by_question in found.values())
