"""Corpus -> knowledge folder, adding to what is there."""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, structs

from turnout.errors import ConfigError
from turnout.knowledge import arrays, lexical, manifest, rules, store
from turnout.knowledge.arrays import Told
from turnout.knowledge.corpus import BadDocument
from turnout.knowledge.embedding import Embedder, embedder
from turnout.knowledge.index import Approximate
from turnout.knowledge.manifest import Manifest, Retrieval
from turnout.knowledge.statement import Document, Statement

FACT_GRAPH = "facts.hnsw"
ENTITY_GRAPH = "entities.hnsw"

_AT_ONCE = 256
_PROBLEMS_KEPT = 20


class Extractor(Protocol):
    """Takes the facts from documents. `name`: changes with whatever changes what it takes from an unchanged document."""

    @property
    def name(self) -> str: ...

    def extract(self, documents: Sequence[Document]) -> list[list[Statement] | BadDocument]:
        """What it takes from each document, in order."""
        ...


class Rules:
    """The extractor that needs no model."""

    name = rules.NAME

    def extract(self, documents: Sequence[Document]) -> list[list[Statement] | BadDocument]:
        """See Extractor."""
        return [rules.statements(document) for document in documents]


class Built(Struct, frozen=True):
    """What a build did, and what the knowledge holds now. `added`, `changed`, `same`, `removed`: passages. `bad`: documents left
    out, by reason. `problems`: the first of them, with their places."""

    passages: int
    facts: int
    entities: int
    incidences: int
    added: int
    changed: int
    same: int
    removed: int
    bad: dict[str, int]
    problems: tuple[str, ...]


class Options(Struct, frozen=True):
    """`embedder`: "" = as before, or wordllama. `retrieval`: fields of Retrieval that are to change from how it was before, or
    from the defaults. `prune`: whether passages that this corpus lacks are forgotten."""

    embedder: str = ""
    retrieval: Mapping[str, Any] = {}
    prune: bool = False


def build(
    corpus: Iterable[Document | BadDocument],
    folder: Path,
    options: Options | None = None,
    extractor: Extractor | None = None,
    told: Told = lambda what, done, of: None,
) -> Built:
    """Add a corpus to the knowledge in a folder, which is made where it is missing.

    Passages that were extracted before, unchanged and by this extractor, are not extracted again; what was extracted is kept
    even if the build is broken off. Raises ConfigError for a folder that holds something else.
    """
    options = options or Options()
    before = _before(folder)
    chosen = embedder(options.embedder or (before.embedder if before else "wordllama"))
    retrieval = structs.replace(before.retrieval if before else Retrieval(), **options.retrieval)
    folder.mkdir(parents=True, exist_ok=True)
    kept = store.Store(folder, writable=True)
    try:
        adding = _Adding(kept, extractor or Rules(), told)
        adding.all(corpus)
        removed = adding.prune() if options.prune else 0
        made = _write(kept, folder, chosen, retrieval, before, told)
    finally:
        kept.close()
    files = {name: manifest.file_digest(folder / name) for name in (store.FILE, *made.files)}
    made = structs.replace(made, files=files)
    manifest.write(folder, made)
    bad, problems = dict(adding.bad), tuple(adding.problems)
    counts = adding.counts
    return Built(
        made.passages, made.facts, made.entities, made.incidences,
        counts["added"], counts["changed"], counts["same"], removed, bad, problems,
    )  # fmt: skip


def _before(folder: Path) -> Manifest | None:
    """What is in the folder; None for an empty or missing one, or one whose first build was broken off."""
    if (folder / manifest.FILE).exists():
        return manifest.read(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / store.FILE).exists():
        raise ConfigError("holds something else than knowledge; name a new folder", file=str(folder))
    return None


class _Adding:
    """Puts documents into the store, some at a time."""

    def __init__(self, kept: store.Store, extractor: Extractor, told: Told) -> None:
        self.counts: Counter[str] = Counter()
        self.bad: Counter[str] = Counter()
        self.problems: list[str] = []
        self._store = kept
        self._extractor = extractor
        self._told = told
        self._seen: set[str] = set()

    def all(self, corpus: Iterable[Document | BadDocument]) -> None:
        some: list[Document] = []
        done = 0
        for done, document in enumerate(corpus, 1):
            if isinstance(document, BadDocument):
                self._refuse(document)
            elif document.passage.id in self._seen:
                if self._store_or_batch_differs(document, some):
                    self._refuse(BadDocument(document.passage.id, "the id was used before, for another text"))
            else:
                self._seen.add(document.passage.id)
                some.append(document)
            if len(some) == _AT_ONCE:
                self._add(some)
                some = []
                self._told("documents", done, 0)
        self._add(some)
        self._told("documents", done, done)

    def prune(self) -> int:
        gone = [one for one in self._store.passage_ids() if one not in self._seen]
        with self._store.changing():
            self._store.remove(gone)
        return len(gone)

    def _store_or_batch_differs(self, document: Document, some: list[Document]) -> bool:
        waiting = next((one for one in some if one.passage.id == document.passage.id), None)
        if waiting is not None:
            return waiting != document
        known = self._store.known(document.passage.id)
        return known is not None and known[0] != store.digest_of(document)

    def _add(self, documents: list[Document]) -> None:
        new: list[Document] = []
        for document in documents:
            known = self._store.known(document.passage.id)
            if known == (store.digest_of(document), self._extractor.name):
                self.counts["same"] += 1
            else:
                new.append(document)
        extracted = self._extractor.extract(new) if new else []
        with self._store.changing():
            for document, statements in zip(new, extracted, strict=True):
                if isinstance(statements, BadDocument):
                    self._refuse(statements)
                    continue
                self.counts["added" if self._store.known(document.passage.id) is None else "changed"] += 1
                self._store.put(document, self._extractor.name, statements)

    def _refuse(self, document: BadDocument) -> None:
        self.bad[document.reason.split(":", 1)[0]] += 1
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(f"{document.where}: {document.reason}")


def _write(
    kept: store.Store, folder: Path, chosen: Embedder, retrieval: Retrieval, before: Manifest | None, told: Told
) -> Manifest:
    """Write the arrays that follow from the store; the manifest for them, without digests."""
    facts, entities = kept.facts(), kept.entities()
    joined = arrays.incidence(list(kept.incidence()), [one.id for one in facts], [one.key for one in entities])
    reusable = before if before is not None and before.model == chosen.model else None
    texts = [one.text for one in facts]
    vectors = _embedded(
        folder, arrays.FACT_VECTORS, arrays.FACT_TEXTS, texts, reusable, chosen, "embedding facts", told
    )
    names = [one.name for one in entities]
    entity_vectors = _embedded(
        folder, arrays.ENTITY_VECTORS, arrays.ENTITY_TEXTS, names, reusable, chosen, "embedding entities", told
    )
    files = [arrays.FACT_VECTORS, arrays.FACT_TEXTS, arrays.ENTITY_VECTORS, arrays.ENTITY_TEXTS]
    for name, array in ((arrays.STARTS, joined.starts), (arrays.ENTITIES, joined.others)):
        arrays.save(folder, name, array)
        files.append(name)
    if retrieval.index == "hnsw" and facts:
        for name, some in ((FACT_GRAPH, vectors), (ENTITY_GRAPH, entity_vectors)):
            told("indexing", len(files), 0)
            if len(some.vectors):
                Approximate.build(some.vectors).save(folder / name)
                files.append(name)
    if retrieval.bm25:
        files += _lexical(folder, texts)
    passages = kept.counts()[0]
    return Manifest(
        manifest.VERSION, chosen.name, chosen.model, chosen.dimensions, passages, len(facts), len(entities),
        len(joined.others), retrieval, dict.fromkeys(files, ""),
    )  # fmt: skip


def _embedded(
    folder: Path,
    vectors: str,
    digests: str,
    texts: list[str],
    before: Manifest | None,
    chosen: Embedder,
    what: str,
    told: Told,
) -> arrays.Embedded:
    there = before is not None and all(_whole(folder, name, before) for name in (vectors, digests))
    old = arrays.Embedded.load(folder, vectors, digests) if there else None
    found = arrays.embedded(texts, old, chosen, what, told)
    arrays.save(folder, vectors, found.vectors)
    arrays.save(folder, digests, found.texts)
    return found


def _whole(folder: Path, name: str, made: Manifest) -> bool:
    """Whether a file is the one that was written."""
    path = folder / name
    return path.exists() and manifest.file_digest(path) == made.files.get(name)


def _lexical(folder: Path, texts: list[str]) -> list[str]:
    shutil.rmtree(folder / lexical.FOLDER, ignore_errors=True)
    index = lexical.Lexical.build(texts)
    if index is None:
        return []
    return [f"{lexical.FOLDER}/{name}" for name in index.save(folder / lexical.FOLDER)]
