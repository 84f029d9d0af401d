"""Where knowledge is kept while it grows: passages, the facts taken from each, and what each fact is about, in SQLite."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from turnout.errors import ConfigError
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document, Statement, key_of

FILE = "knowledge.db"

_SCHEMA = """
create table if not exists passages (id text primary key, title text not null, text text not null, digest text not null,
    extractor text not null) without rowid;
create table if not exists statements (passage text not null, fact text not null, place integer not null, text text not null,
    primary key (passage, fact)) without rowid;
create table if not exists mentions (passage text not null, fact text not null, entity text not null, name text not null,
    kind text not null, primary key (passage, fact, entity)) without rowid;
create index if not exists statements_by_fact on statements (fact);
create index if not exists mentions_by_entity on mentions (entity);
"""


class FactRow(msgspec.Struct, frozen=True):
    """A fact with the ids of the passages it was taken from."""

    id: str
    text: str
    sources: tuple[str, ...]


class EntityRow(msgspec.Struct, frozen=True):
    """An entity. `key`: what its spellings have in common. `name`: the commonest spelling. `kind`: how that one was told."""

    key: str
    name: str
    kind: str


class Store:
    """The database of one knowledge folder. Not for several threads."""

    def __init__(self, folder: Path, writable: bool = False) -> None:
        """Open it, or make it when `writable`. Raises ConfigError when there is none, or no database."""
        path = folder / FILE
        if not writable and not path.is_file():
            raise ConfigError(
                f"no knowledge here (no {FILE}); `turnout knowledge build CORPUS --out {folder}` makes it",
                file=str(folder),
            )
        mode = "rwc" if writable else "ro"
        self._db = sqlite3.connect(f"file:{_quoted(path)}?mode={mode}", uri=True, isolation_level=None)
        try:
            if writable:
                self._db.executescript(_SCHEMA)
            else:
                self._db.execute("select 1 from passages, statements, mentions limit 0")
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise ConfigError(f"damaged or no knowledge: {error}; build it again", file=str(path)) from None

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def known(self, passage: str) -> tuple[str, str] | None:
        """The digest of a passage as it is stored, and the extractor its facts are from."""
        found = self._db.execute("select digest, extractor from passages where id = ?", (passage,)).fetchone()
        return None if found is None else (found[0], found[1])

    @contextmanager
    def changing(self) -> Iterator[None]:
        """All changes made within are kept, or none."""
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def put(self, document: Document, extractor: str, statements: Sequence[Statement]) -> None:
        """Keep a passage with its facts, in place of what was kept of it before."""
        passage = document.passage
        self.remove([passage.id])
        self._db.execute(
            "insert into passages values (?, ?, ?, ?, ?)",
            (passage.id, passage.title, passage.text, digest_of(document), extractor),
        )
        for place, statement in enumerate(statements):
            fact = fact_id(statement.text)
            self._db.execute(
                "insert or ignore into statements values (?, ?, ?, ?)", (passage.id, fact, place, statement.text)
            )
            self._db.executemany(
                "insert or ignore into mentions values (?, ?, ?, ?, ?)",
                [(passage.id, fact, key_of(one.name), one.name, one.kind) for one in statement.mentions],
            )

    def remove(self, passages: Iterable[str]) -> None:
        """Forget passages, and the facts that only they hold."""
        for table, column in (("passages", "id"), ("statements", "passage"), ("mentions", "passage")):
            self._db.executemany(f"delete from {table} where {column} = ?", [(one,) for one in passages])

    def passage_ids(self) -> list[str]:
        """Ids of all passages, in order."""
        return [id_ for (id_,) in self._db.execute("select id from passages order by id")]

    def passages(self, ids: Iterable[str]) -> list[Passage]:
        """The passages with these ids, where there are such."""
        found = []
        for one in ids:
            row = self._db.execute("select id, title, text from passages where id = ?", (one,)).fetchone()
            found += [Passage(*row)] if row else []
        return found

    def counts(self) -> tuple[int, int, int]:
        """How many passages, facts and entities there are."""
        one = "select (select count(*) from passages), (select count(distinct fact) from statements), "
        row = self._db.execute(one + "(select count(distinct entity) from mentions)").fetchone()
        return row[0], row[1], row[2]

    def facts(self) -> list[FactRow]:
        """All facts in order of their ids, which does not depend on the order they came in."""
        found: list[tuple[str, str, list[str]]] = []
        for fact, text, passage in self._db.execute(
            "select fact, text, passage from statements order by fact, passage"
        ):
            if not found or found[-1][0] != fact:
                found.append((fact, text, []))
            found[-1][2].append(passage)
        return [FactRow(fact, text, tuple(sources)) for fact, text, sources in found]

    def entities(self) -> list[EntityRow]:
        """All entities in order of their keys."""
        found: list[EntityRow] = []
        rows = "select entity, name, min(kind) from mentions group by entity, name order by entity, count(*) desc, name"
        for key, name, kind in self._db.execute(rows):
            if not found or found[-1].key != key:
                found.append(EntityRow(key, name, kind))
        return found

    def most_joined(self, at_most: int) -> list[tuple[str, int]]:
        """The entities that most facts are about, with how many."""
        rows = "select entity, count(distinct fact) from mentions group by entity order by 2 desc, entity limit ?"
        counted = self._db.execute(rows, (at_most,)).fetchall()
        spelled = "select name from mentions where entity = ? group by name order by count(*) desc, name limit 1"
        names = {key: self._db.execute(spelled, (key,)).fetchone()[0] for key, _ in counted}
        return [(names[key], count) for key, count in counted]

    def incidence(self) -> Iterator[tuple[str, str]]:
        """Every (fact, entity key), in order of both."""
        yield from self._db.execute("select distinct fact, entity from mentions order by fact, entity")


def fact_id(text: str) -> str:
    """The id of a fact: it follows from what it says, so that it stays in a knowledge built again, in any order."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def digest_of(document: Document) -> str:
    """Changes with whatever is extracted from."""
    return hashlib.sha256(msgspec.json.encode(document)).hexdigest()[:32]


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))
