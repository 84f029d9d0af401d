"""The file of scores a graph is made from: what `turnout peers review` writes, or `models` and `scores` written by hand."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.routing.collaboration.graph import Reviewed, Scores

Cells = dict[str, dict[str, list[float | None]]]
"""`cells[judge][author][i]`: the score of the answer to question i."""


class ScoredQuestion(Struct, frozen=True):
    """A question that was scored."""

    id: str | int = ""
    type: str = ""
    difficulty: str = ""


class ScoredType(Struct, frozen=True):
    """Scores of one type of task. `counts`: how many are behind each mean."""

    scores: Scores
    questions: int = 0
    counts: dict[str, dict[str, int]] = {}


class JudgeCounts(Struct, frozen=True):
    """How a judge did its work. `asked`: for how many scores."""

    asked: int = 0
    scored: int = 0
    parse_failures: int = 0


class ReviewManifest(Struct, frozen=True):
    """What the review used, as far as a graph repeats it."""

    began: str = ""
    models: tuple[Reviewed, ...] = ()
    question_set: str = ""
    question_count: int = 0
    prompt: str = ""
    prompt_version: str = ""
    scale: tuple[float, float] = (1.0, 10.0)


class Scored(Struct, frozen=True):
    """Scores of models by models.

    `scores[judge][author]`: None on the diagonal, for no score and for one from too few questions; in a file also a list of rows
    in the order of `models`. The rest is there where a
    review wrote the file: `cells` the scores behind the means, aligned with `questions`; `self_scores` and `lengths` by author,
    aligned alike; `judges` how each did its work. `digest`, `made_at`: of the file that was read.
    """

    models: tuple[str, ...]
    scores: Scores
    by_type: dict[str, ScoredType] = {}
    questions: tuple[ScoredQuestion, ...] = ()
    cells: Cells = {}
    self_scores: dict[str, list[float | None]] = {}
    lengths: dict[str, list[float | None]] = {}
    judges: dict[str, JudgeCounts] = {}
    complete: bool = True
    stopped: str = ""
    manifest: ReviewManifest = ReviewManifest()
    digest: str = ""
    made_at: str = ""


class _Rows(Struct):
    """A file whose matrix is a list of rows."""

    models: list[str]
    scores: list[list[float | None]]


def _named(data: bytes) -> Scored:
    """The scores in a file's text, whichever way it writes the matrix."""
    try:
        rows = msgspec.json.decode(data, type=_Rows)
    except msgspec.ValidationError:
        return msgspec.json.decode(data, type=Scored)
    if len(rows.scores) != len(rows.models) or any(len(row) != len(rows.models) for row in rows.scores):
        raise msgspec.ValidationError(f"`scores` must have a row and a column for each of {len(rows.models)} models")
    scores = {
        judge: dict(zip(rows.models, row, strict=True)) for judge, row in zip(rows.models, rows.scores, strict=True)
    }
    return msgspec.convert(msgspec.json.decode(data) | {"scores": scores}, Scored)


def read(path: Path) -> Scored:
    """The scores in a file. Raises ConfigError with what is wrong and where."""
    data = path.read_bytes()
    try:
        found = _named(data)
    except msgspec.MsgspecError as error:
        raise ConfigError(
            f'{error}; expected {{"models": ["a", "b", "c"], "scores": {{"a": {{"a": null, "b": 7, ...}}, ...}}}}, judge first',
            file=str(path),
        ) from None
    _check(found, str(path))
    made = datetime.fromtimestamp(int(path.stat().st_mtime), UTC).isoformat()
    return msgspec.structs.replace(found, digest=hashlib.sha256(data).hexdigest(), made_at=made)


def _check(found: Scored, file: str) -> None:
    pool = set(found.models)
    if len(pool) < len(found.models):
        raise ConfigError("two models have the same name", file=file, key="models")
    lowest, highest = found.manifest.scale
    if lowest >= highest:
        raise ConfigError("expected the lowest score there is, then the highest", file=file, key="manifest.scale")
    if found.manifest.began and not _is_time(found.manifest.began):
        said = "expected a time with its zone, as in 2026-01-31T12:00:00Z"
        raise ConfigError(said, file=file, key="manifest.began")
    matrices = [
        ("scores", found.scores),
        *((f"by_type.{name}.scores", one.scores) for name, one in found.by_type.items()),
    ]
    for key, scores in matrices:
        _check_names(scores, pool, file, key)
        for judge, row in scores.items():
            _check_names(row, pool, file, f"{key}.{judge}")
    for judge, authors in found.cells.items():
        _check_names({judge: 0, **authors}, pool, file, "cells")
        for author, cells in authors.items():
            _check_aligned(cells, found.questions, file, f"cells.{judge}.{author}")
    for key, by_author in (("self_scores", found.self_scores), ("lengths", found.lengths)):
        for author, values in by_author.items():
            _check_aligned(values, found.questions, file, f"{key}.{author}")


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _check_names(named: Iterable[str], pool: set[str], file: str, key: str) -> None:
    if unknown := sorted(set(named) - pool):
        raise ConfigError(f"{unknown[0]} is not among `models`", file=file, key=key)


def _check_aligned(row: Sequence[object], questions: Sequence[object], file: str, key: str) -> None:
    if len(row) != len(questions):
        raise ConfigError(f"{len(row)} entries for {len(questions)} `questions`", file=file, key=key)
