"""Files of questions -> `Question`s, with an account of what could not be read."""

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from turnout.errors import ClientError
from turnout.train.data.formats import FORMATS, BadRow, FormatName, detected
from turnout.train.data.question import Question

_PROBLEMS_KEPT = 20


class Read(msgspec.Struct, frozen=True):
    """The questions of a file. `format`: as it was read. `skipped`: rows left out, by reason. `problems`: the first of them,
    with the place in the file."""

    format: FormatName
    questions: tuple[Question, ...]
    skipped: dict[str, int]
    problems: tuple[str, ...]


def read_questions(path: Path, format: FormatName | None = None, limit: int | None = None) -> Read:
    """Read a file of questions: a JSON list, JSON Lines, or PopQA's TSV; each may be gzipped.

    `format`: None to tell it by the fields of the first row. `limit`: stop after so many questions. Raises ClientError when
    the file holds no row of a known format, OSError when it cannot be read.
    """
    return collected(_rows(path), path.name, format, limit, str(path))


def collected(
    rows: Iterable[tuple[str, Any]], name: str, format: FormatName | None, limit: int | None, where: str = ""
) -> Read:
    """The questions of rows, each with its place in what is called `name`; see `read_questions`."""
    questions: list[Question] = []
    skipped: Counter[str] = Counter()
    problems: list[str] = []
    ids: set[str] = set()
    stem = name.partition(".")[0]
    for place, row in rows:
        if limit is not None and len(questions) >= limit:
            break
        try:
            if not isinstance(row, Mapping):
                raise BadRow("not an object")
            if format is None:
                format = detected(row)
            question = FORMATS[format](row, f"{stem}-{len(questions)}")
            if question.id in ids:
                raise BadRow("the id was used before")
        except BadRow as problem:
            skipped[str(problem)] += 1
            if len(problems) < _PROBLEMS_KEPT:
                problems.append(f"{name}, {place}: {problem}")
            continue
        ids.add(question.id)
        questions.append(question)
    if format is None or not questions:
        seen = f": {problems[0]}" if problems else ", as it is empty"
        raise ClientError(f"no question could be read from {where or name}{seen}. Known formats: {', '.join(FORMATS)}")
    return Read(format, tuple(questions), dict(skipped), tuple(problems))


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a file, each with its place."""
    name = path.name.removesuffix(".gz")
    with path.open("rb") as plain, gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain as file:
        if name.endswith((".tsv", ".csv")):
            lines = (line.decode("utf-8", "replace") for line in file)
            for i, row in enumerate(csv.DictReader(lines, delimiter="\t" if name.endswith(".tsv") else ",")):
                yield f"row {i + 1}", row
        elif name.endswith(".json") and (whole := _whole(file.read())) is not None:
            yield from whole
        else:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"line {number}", _decoded(line)


def _whole(data: bytes) -> Iterator[tuple[str, Any]] | None:
    """The rows of a JSON list, or of TriviaQA's object with the rows in `Data`; None for anything else."""
    value = _decoded(data)
    if isinstance(value, list):
        return ((f"[{i}]", row) for i, row in enumerate(value))
    if isinstance(value, dict) and isinstance(value.get("Data"), list):
        return ((f"Data[{i}]", row) for i, row in enumerate(value["Data"]))
    return None


def _decoded(text: bytes) -> Any:
    """The value of a row; a text for one that is not JSON, which no format takes."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}"
