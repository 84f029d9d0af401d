"""Builds: in one go, bit by bit, again, and broken off."""

import json
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.knowledge.corpora import ALL, DIRECTOR, FAIR, FILM, TOWN

from turnout.errors import ConfigError
from turnout.knowledge import open_knowledge
from turnout.knowledge.building import Built, Options, Rules, build
from turnout.knowledge.corpus import BadDocument
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document, Statement
from turnout.routing.retrieval.facts import Found, Lookup

pytest.importorskip("bm25s")
HASHED = Options("hashed")


def arrays(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.npy"))}


def answers(folder: Path) -> list[Found]:
    lookups = [Lookup(text, at_most=5) for text in ("Who directed Lanterns over Harrowmere?", "rope works", "1702")]
    return [one for one in open_knowledge(str(folder)).look_up(lookups) if isinstance(one, Found)]


@given(st.permutations(range(4)), st.lists(st.integers(0, 4), max_size=2))
@settings(max_examples=5)
def test_bit_by_bit_in_any_order_is_as_in_one_go(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("knowledge")
    build(ALL, folder / "one", HASHED)
    corpus = [ALL[place] for place in order]
    bounds = [0, *sorted(cuts), len(corpus)]
    for start, end in pairwise(bounds):
        built = build(corpus[start:end], folder / "bits", HASHED)
    assert built.passages == 4
    assert arrays(folder / "bits") == arrays(folder / "one")
    assert answers(folder / "bits") == answers(folder / "one")


def test_what_has_not_changed_is_not_extracted_again(tmp_path: Path) -> None:
    extracted: list[str] = []

    class Counting(Rules):
        def extract(self, documents: Sequence[Document]) -> list[list[Statement] | BadDocument]:
            extracted.extend(document.passage.id for document in documents)
            return super().extract(documents)

    def counts(built: Built) -> tuple[int, int, int, int]:
        return built.added, built.changed, built.same, built.removed

    assert counts(build(ALL, tmp_path, HASHED, Counting())) == (4, 0, 0, 0)
    changed = Document(Passage("town", "Port Saltry", "Port Saltry is now a city."))
    assert counts(build([FILM, DIRECTOR, changed], tmp_path, HASHED, Counting())) == (0, 1, 2, 0)
    assert extracted == ["film", "director", "town", "fair", "town"]
    assert counts(build([FILM, DIRECTOR, changed], tmp_path, Options("hashed", prune=True))) == (0, 0, 3, 1)
    build([FILM, DIRECTOR, changed], tmp_path / "fresh", HASHED)
    assert arrays(tmp_path) == arrays(tmp_path / "fresh"), "nothing is left of what was changed and forgotten"


def test_a_fact_of_two_passages_is_one_with_both_as_sources(tmp_path: Path) -> None:
    twin = Document(Passage("twin", "Port Saltry", TOWN.passage.text))
    assert build([TOWN, twin], tmp_path, HASHED).facts == 1
    (found,) = open_knowledge(str(tmp_path)).look_up([Lookup("rope works")])
    assert isinstance(found, Found)
    assert found.facts[0].sources == ("town", "twin")


def test_bad_documents_are_counted_and_left_out(tmp_path: Path) -> None:
    other = Document(Passage("film", "Another", "Text of another."))
    built = build([FILM, BadDocument("line 2", "not JSON: x"), other, FILM, FAIR], tmp_path, HASHED)
    assert built.passages == 2
    assert built.bad == {"not JSON": 1, "the id was used before, for another text": 1}
    assert built.problems[0] == "line 2: not JSON: x"


def test_a_build_that_was_broken_off_is_finished_by_the_next(tmp_path: Path) -> None:
    class Breaking(Rules):
        def extract(self, documents: Sequence[Document]) -> list[list[Statement] | BadDocument]:
            if any(document.passage.id == "p299" for document in documents):
                raise KeyboardInterrupt
            return super().extract(documents)

    corpus = [Document(Passage(f"p{i}", f"Mill {i}", f"Mill {i} stands on the Tesk.")) for i in range(300)]
    with pytest.raises(KeyboardInterrupt):
        build(corpus, tmp_path, HASHED, Breaking())
    with pytest.raises(ConfigError, match="makes or finishes it"):
        open_knowledge(str(tmp_path))
    built = build(corpus, tmp_path, HASHED)
    assert (built.same, built.added, built.passages) == (256, 44, 300)
    build(corpus, tmp_path / "one", HASHED)
    assert arrays(tmp_path) == arrays(tmp_path / "one")


@pytest.mark.parametrize("name", ["fact_vectors.npy", "incidence_entities.npy", "knowledge.db", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_damage_is_told_with_its_file(tmp_path: Path, name: str, damage: str) -> None:
    build(ALL, tmp_path, HASHED)
    data = bytearray((tmp_path / name).read_bytes())
    if damage == "missing":
        (tmp_path / name).unlink()
    else:
        data[len(data) // 2] ^= 0x80
        (tmp_path / name).write_bytes(data if damage == "flipped" else data[: len(data) // 2])
    with pytest.raises(ConfigError, match=r"turnout knowledge build|build it again") as caught:
        open_knowledge(str(tmp_path))
    assert caught.value.file.startswith(str(tmp_path))


def test_a_build_repairs_what_is_damaged_but_the_database(tmp_path: Path) -> None:
    build(ALL, tmp_path, HASHED)
    whole = arrays(tmp_path)
    (tmp_path / "fact_vectors.npy").write_bytes(b"damaged")
    (tmp_path / "entity_texts.npy").unlink()
    build(ALL, tmp_path, HASHED)
    assert arrays(tmp_path) == whole
    (tmp_path / "knowledge.db").write_bytes(b"no database at all, but long enough to be looked at as one" * 20)
    with pytest.raises(ConfigError, match="damaged or no knowledge"):
        build(ALL, tmp_path, HASHED)


def test_folders_of_other_things_and_versions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"):
        build(ALL, tmp_path, HASHED)
    build(ALL, tmp_path / "k", HASHED)
    manifest = json.loads((tmp_path / "k" / "manifest.json").read_text())
    (tmp_path / "k" / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(ConfigError, match="made by another version"):
        open_knowledge(str(tmp_path / "k"))


def test_an_empty_corpus_makes_knowledge_of_nothing(tmp_path: Path) -> None:
    assert build([], tmp_path / "k", HASHED).facts == 0
    assert open_knowledge(str(tmp_path / "k")).look_up([Lookup("anything")]) == [Found(())]


def test_the_database_is_plain_sqlite(tmp_path: Path) -> None:
    build(ALL, tmp_path, HASHED)
    with sqlite3.connect(tmp_path / "knowledge.db") as db:
        joined = "statements join mentions using (passage, fact)"
        about = f"select text from {joined} where entity = 'port saltry' and name = 'Port Saltry'"
        assert {row[0].split()[0] for row in db.execute(about)} == {"Port", "Odile"}
    db.close()
