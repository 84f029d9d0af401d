"""Corpora -> documents, with an account of what could not be read.

JSON Lines or JSON lists (gzipped or not) of {id, title, text}, of {id, contents} as Search-R1 and Graph-R1 have them, or of
questions that bring their passages (HotpotQA, 2WikiMultihopQA, MuSiQue, `gold_passages`); and folders of .txt files.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnout.errors import ClientError
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document

_SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".ndjson")


class BadDocument(msgspec.Struct, frozen=True):
    """A document that could not be read. `where`: file and place in it."""

    where: str
    reason: str


class _Bad(Exception):
    """Why a row is no document."""


def read_corpus(path: Path) -> Iterator[Document | BadDocument]:
    """The documents of a file or folder, in order. Raises ClientError for a place that holds no corpus, OSError for one that
    cannot be read."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*.txt") if one.is_file())
        if not files:
            raise ClientError(f"{path} holds no .txt file; name a .jsonl file or a folder of .txt files")
        return _texts(path, files)
    if not path.name.endswith(_SUFFIXES):
        raise ClientError(f"{path}: a corpus is a folder of .txt files or a file {', '.join(_SUFFIXES)}")
    path.open("rb").close()  # complain now, not at the first document
    return _documents(path)


def _texts(root: Path, files: Sequence[Path]) -> Iterator[Document | BadDocument]:
    for file in files:
        name = str(file.relative_to(root))
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            yield BadDocument(name, f"cannot be read: {error}")
            continue
        if text.strip():
            yield Document(Passage(name, file.stem.replace("_", " "), text))
        else:
            yield BadDocument(name, "empty")


def _documents(path: Path) -> Iterator[Document | BadDocument]:
    for place, row in _rows(path):
        where = f"{path.name}, {place}"
        if isinstance(row, _Bad):
            yield BadDocument(where, str(row))
            continue
        try:
            yield from _of_row(row)
        except _Bad as bad:
            yield BadDocument(where, str(bad))


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a file with their places; a _Bad for one that is not JSON."""
    with path.open("rb") as plain, gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain as file:
        if path.name.removesuffix(".gz").endswith(".json"):
            data = file.read()
            whole = _decoded(data)
            if isinstance(whole, list):
                yield from ((f"[{i}]", row) for i, row in enumerate(whole))
                return
            lines: Iterator[bytes] | Any = iter(data.splitlines())
        else:
            lines = _lines(file)
        for number, line in enumerate(lines, 1):
            if isinstance(line, _Bad) or line.strip():
                yield f"line {number}", line if isinstance(line, _Bad) else _decoded(line)


def _lines(file: Any) -> Iterator[Any]:
    """Lines; where a gzip stream is damaged, what says so instead of the rest."""
    try:
        yield from file
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        yield _Bad(f"the file is damaged from here on: {error}")


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _Bad(f"not JSON: {error}")


def _of_row(row: Any) -> Iterator[Document]:
    if not isinstance(row, Mapping):
        raise _Bad("not an object")
    if isinstance(row.get("contents"), str):
        yield _contents(row)
    elif isinstance(row.get("text"), str):
        yield _document(row.get("id", row.get("_id")), row.get("title"), row["text"], _triples(row))
    elif isinstance(row.get("paragraphs"), Sequence):
        for one in _objects(row["paragraphs"], "paragraphs"):
            yield _document(one.get("id"), one.get("title"), one.get("paragraph_text", one.get("text")), ())
    elif "context" in row:
        yield from _context(row)
    elif "gold_passages" in row:
        for one in _objects(row["gold_passages"], "gold_passages"):
            yield _document(one.get("id"), one.get("title"), one.get("text"), ())
    else:
        raise _Bad("no `text`, `contents`, `context`, `paragraphs` or `gold_passages`")


def _contents(row: Mapping[str, Any]) -> Document:
    """`"Title"` on the first line, the text behind it; one line is text alone."""
    head, line, rest = row["contents"].partition("\n")
    title, text = (head.strip().strip('"'), rest) if line and rest.strip() else (row.get("title"), row["contents"])
    return _document(row.get("id", row.get("_id")), title, text, _triples(row))


def _context(row: Mapping[str, Any]) -> Iterator[Document]:
    """Titled lists of sentences, as HotpotQA has them; the triples of 2WikiMultihopQA go to the passage of their subject."""
    context = row["context"]
    if isinstance(context, Mapping):
        pairs = list(zip(context.get("title", ()), context.get("sentences", ()), strict=False))
    elif isinstance(context, Sequence) and not isinstance(context, str):
        pairs = list(context)
    else:
        raise _Bad("`context` is not a list of [title, sentences]")
    triples = _triples(row)
    for pair in pairs:
        if isinstance(pair, str):
            yield _document(None, None, pair, ())
            continue
        if not isinstance(pair, Sequence) or len(pair) != 2 or not isinstance(pair[1], Sequence):
            raise _Bad("`context` is not a list of [title, sentences]")
        title, sentences = pair
        text = sentences if isinstance(sentences, str) else " ".join(str(one).strip() for one in sentences)
        yield _document(None, title, text, tuple(one for one in triples if one[0] == title))


def _objects(rows: Any, key: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(rows, Sequence) or any(not isinstance(one, Mapping) for one in rows):
        raise _Bad(f"`{key}` is not a list of objects")
    return rows


def _triples(row: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    found = next((row[key] for key in ("triples", "evidences", "facts") if row.get(key)), ())
    if not isinstance(found, Sequence) or any(
        not isinstance(one, Sequence) or isinstance(one, str) or len(one) != 3 for one in found
    ):
        raise _Bad("triples are not a list of [subject, relation, object]")
    return tuple((str(subject), str(relation), str(object_)) for subject, relation, object_ in found)


def _document(id_: Any, title: Any, text: Any, triples: tuple[tuple[str, str, str], ...]) -> Document:
    """A document; one without an id is named by its content, so that a passage of many questions is one."""
    if not isinstance(text, str) or not text.strip():
        raise _Bad("no text" if text is None else "`text` is empty or not a text")
    title = title if isinstance(title, str) else ""
    if id_ is None or id_ == "":
        id_ = "p-" + hashlib.sha256(f"{title}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]
    if not isinstance(id_, str | int):
        raise _Bad("`id` is neither a text nor a number")
    return Document(Passage(str(id_), title, text), triples)
