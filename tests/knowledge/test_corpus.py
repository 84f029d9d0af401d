"""Corpora in the formats they come in."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import ClientError
from turnout.knowledge.corpus import BadDocument, read_corpus
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document


def read(path: Path) -> list[Document | BadDocument]:
    return list(read_corpus(path))


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_passages_and_contents(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "c.jsonl",
        {"id": "a", "title": "Tesk", "text": "A river.", "triples": [["Tesk", "is", "river"]]},
        {"id": 7, "contents": '"Tesk"\nA river.'},
        {"id": "c", "contents": "One line alone."},
    )
    assert read(path) == [
        Document(Passage("a", "Tesk", "A river."), (("Tesk", "is", "river"),)),
        Document(Passage("7", "Tesk", "A river.")),
        Document(Passage("c", "", "One line alone.")),
    ]


def test_questions_bring_their_passages_each_named_by_its_content(tmp_path: Path) -> None:
    context = [["Tesk", ["A river.", " It floods."]], ["Mill", ["A mill."]]]
    two_wiki = {"_id": "q", "question": "?", "context": context, "evidences": [["Mill", "on", "Tesk"]]}
    columns = {"context": {"title": ["Tesk"], "sentences": [["A river.", " It floods."]]}}
    musique = {"id": "m", "paragraphs": [{"idx": 0, "title": "Mill", "paragraph_text": "A mill."}]}
    gold = {"question": "?", "gold_passages": [{"id": "g", "title": "Fair", "text": "A fair."}]}
    path = tmp_path / "q.json.gz"
    path.write_bytes(gzip.compress(json.dumps([two_wiki, columns, musique, gold]).encode()))
    tesk, mill, again, mill_again, fair = (one for one in read(path) if isinstance(one, Document))
    assert (tesk.passage.title, tesk.passage.text, tesk.triples) == ("Tesk", "A river. It floods.", ())
    assert mill.triples == (("Mill", "on", "Tesk"),)
    assert again == tesk
    assert mill_again.passage == mill.passage
    assert fair.passage.id == "g"


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "Port_Saltry.txt").write_text("A town.")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "empty.txt").write_text(" \n")
    bad, empty, good = read(tmp_path)
    assert good == Document(Passage("in/Port_Saltry.txt", "Port Saltry", "A town."))
    assert [one.where for one in (bad, empty) if isinstance(one, BadDocument)] == ["bytes.txt", "empty.txt"]


@pytest.mark.parametrize(
    "row",
    ["[1", "7", "{}", {"id": "a", "text": "  "}, {"text": 1}, {"id": [], "text": "x"}, {"id": "a", "text": "x", "triples": [1]},
     {"context": "x"}, {"context": [["a"]]}, {"paragraphs": [1]}, {"gold_passages": [{"id": "a"}]}],
)  # fmt: skip
def test_a_bad_row_is_told_with_its_place_and_the_next_is_read(tmp_path: Path, row: Any) -> None:
    bad, good = read(lines(tmp_path / "c.jsonl", row, {"id": "b", "text": "Good."}))
    assert isinstance(bad, BadDocument)
    assert bad.where == "c.jsonl, line 1"
    assert bad.reason
    assert isinstance(good, Document)


def test_a_damaged_gzip_is_told_after_what_could_be_read(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"id": str(i), "text": f"Mill number {i * 7919} stands."}) + "\n" for i in range(5000))
    data = gzip.compress(rows.encode())
    (tmp_path / "c.jsonl.gz").write_bytes(data[: len(data) // 2])
    found = read(tmp_path / "c.jsonl.gz")
    assert len(found) > 100
    assert isinstance(found[-1], BadDocument)
    assert "damaged" in found[-1].reason


def test_other_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"no \.txt file"):
        read_corpus(tmp_path)
    with pytest.raises(ClientError, match="a corpus is"):
        read_corpus(tmp_path / "corpus.pdf")
    with pytest.raises(FileNotFoundError):
        read_corpus(tmp_path / "none.jsonl")
