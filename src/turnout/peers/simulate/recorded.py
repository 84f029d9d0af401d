"""Recorded answers of several models to the same questions, or verdicts on them, in one form that a chain can be played on.

An answer is known by the model that gave it. Two answers say the same when their marks are equal; one that could not be read
says the same as no other. A row is one of

    {"question_id": 1, "gold": "B", "category": "law", "answers": {"small": "B", "large": null}, "samples": {"small": ["B", "C"]}}
    {"question_id": 1, "judge": "large", "first": "small", "second": "other", "score": 1}

`samples`: further answers of a model, where there are any. `score`: 1 = the first is better, 2 = the second, 3 = a tie; `judge`
is a model, or `human` for the verdicts that answers are valued by.
"""

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError

HUMAN = "human"
"""The judge whose verdicts say what an answer is worth."""


class Question(Struct, frozen=True):
    """What is recorded of a question; lists are in the order of the table's models.

    `marks`: equal for answers that say the same, all below 0 differ. `values`: what an answer is worth, 0 to 1.
    `approves[voter]`: what a voter says of each answer, None = nothing; () = it approves of answers that say what its own does.
    `scores[judge]`: its score for each answer, 0 to 10, made without labels. `samples`: marks and values of further answers.
    """

    id: str
    category: str
    marks: tuple[int, ...]
    values: tuple[float, ...]
    scores: tuple[tuple[float | None, ...], ...]
    approves: tuple[tuple[bool | None, ...], ...] = ()
    samples: tuple[tuple[tuple[int, float], ...], ...] = ()

    def vote(self, voter: int, author: int) -> bool | None:
        """What `voter` says of the recorded answer of `author`."""
        if self.approves:
            return self.approves[voter][author]
        return self.marks[voter] == self.marks[author]


class Table(Struct, frozen=True):
    """Recorded answers. `kind`: `answers` can be compared and counted, `verdicts` are on texts that cannot. `skipped`: rows or
    questions that could not be used, by reason."""

    name: str
    kind: Literal["answers", "verdicts"]
    models: tuple[str, ...]
    questions: tuple[Question, ...]
    skipped: dict[str, int] = {}

    @property
    def has_samples(self) -> bool:
        """Whether every model has more than one answer to some question."""
        return any(question.samples and all(question.samples) for question in self.questions)


class _Row(Struct):
    question_id: str | int
    category: str = ""
    dataset: str = ""
    gold: Any = None
    answers: dict[str, Any] | None = None
    samples: dict[str, list[Any]] = {}
    judge: str = ""
    first: str = ""
    second: str = ""
    score: int = 0


def read(path: Path, models: Sequence[str] = ()) -> Table:
    """The table in a JSONL or JSONL.gz file, of some models (none named = all). Raises ConfigError with file and line."""
    rows = list(_rows(path))
    if not rows:
        raise ConfigError("there is no row", file=str(path))
    name = rows[0].dataset or path.name.split(".")[0]
    has_answers = [row.answers is not None for row in rows]
    if any(has_answers) != all(has_answers):
        line = has_answers.index(not has_answers[0]) + 1
        raise ConfigError("answers and verdicts do not go together in one file", file=str(path), line=line)
    known = _names(rows)
    pool = tuple(models) or known
    if unknown := [model for model in pool if model not in known]:
        raise ConfigError(f"no row knows the model {unknown[0]!r}; there are: {', '.join(known)}", file=str(path))
    if len(set(pool)) < len(pool):
        raise ConfigError("a model is named twice", file=str(path))
    try:
        return _answered(name, rows, pool) if has_answers[0] else _judged(name, rows, pool)
    except ValueError as error:
        raise ConfigError(str(error), file=str(path)) from None


def _rows(path: Path) -> Iterator[_Row]:
    decoder = msgspec.json.Decoder(_Row)
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot be unpacked: {error}", file=str(path)) from None
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"not a row: {error}", file=str(path), line=number) from None
        if row.answers is None and not (row.judge and row.first and row.second and row.score in (1, 2, 3)):
            said = "not a row: expected `answers`, or `judge`, `first`, `second` and a `score` of 1, 2 or 3"
            raise ConfigError(said, file=str(path), line=number)
        yield row


def _names(rows: Iterable[_Row]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for row in rows:
        for name in row.answers or (row.first, row.second):
            found[name] = None
    return tuple(found)


def _answered(name: str, rows: Iterable[_Row], models: tuple[str, ...]) -> Table:
    questions: dict[str, Question] = {}
    skipped: dict[str, int] = defaultdict(int)
    for row in rows:
        if row.gold is None:
            skipped["questions without a gold answer"] += 1
            continue
        key = str(row.question_id)
        if key in questions:
            raise ValueError(f"question {key} is there twice")
        answers = [(row.answers or {}).get(model) for model in models]
        marks = _marks([*answers, row.gold])
        gold = marks.pop()
        samples = [row.samples.get(model, []) for model in models]
        questions[key] = Question(
            key,
            row.category,
            tuple(marks),
            tuple(float(mark == gold) for mark in marks),
            proxy_scores(marks),
            samples=tuple(_sampled(given, row.gold) for given in samples) if any(samples) else (),
        )
    return Table(name, "answers", models, tuple(questions.values()), dict(skipped))


def _marks(answers: Sequence[Any]) -> list[int]:
    """A number for each answer, equal for equal ones; each that could not be read has one of its own, below 0."""
    seen: dict[str, int] = {}
    return [-1 - at if answer is None else seen.setdefault(str(answer), len(seen)) for at, answer in enumerate(answers)]


def _sampled(answers: Sequence[Any], gold: Any) -> tuple[tuple[int, float], ...]:
    marks = _marks([*answers, gold])
    return tuple((mark, float(mark == marks[-1])) for mark in marks[:-1])


def proxy_scores(marks: Sequence[int]) -> tuple[tuple[float | None, ...], ...]:
    """Scores without labels, by what models say themselves: 10 for an answer that says the same as the judge's, else
    10 x (1 - the share of the other models that agree with the judge). Directional: one who is alone scores others high. None by
    a judge whose own answer could not be read."""
    n = len(marks)
    agree = [sum(mark == other for other in marks) - 1 for mark in marks]
    return tuple(
        tuple(
            None if j == i or marks[j] < 0 else 10.0 if marks[i] == marks[j] else 10.0 * (1 - agree[j] / (n - 1))
            for i in range(n)
        )
        for j in range(n)
    )


def _judged(name: str, rows: Sequence[_Row], models: tuple[str, ...]) -> Table:
    place = {model: at for at, model in enumerate(models)}
    shares: dict[str, dict[str, dict[tuple[int, int], list[float]]]] = {}
    category: dict[str, str] = {}
    skipped: dict[str, int] = defaultdict(int)
    for row in rows:
        if row.first not in place or row.second not in place or (row.judge != HUMAN and row.judge not in place):
            skipped["verdicts by or on other models"] += 1
            continue
        key, first, second = str(row.question_id), place[row.first], place[row.second]
        category[key] = row.category
        won = {1: 1.0, 2: 0.0, 3: 0.5}[row.score]
        pairs = shares.setdefault(key, {}).setdefault(row.judge, {})
        pairs.setdefault((first, second), []).append(won)
        pairs.setdefault((second, first), []).append(1 - won)
    questions = []
    for key, by_judge in shares.items():
        values = [_won(by_judge.get(HUMAN, {}), author, len(models)) for author in range(len(models))]
        if None in values:
            skipped["questions without human verdicts on every model"] += 1
            continue
        verdicts = [by_judge.get(model, {}) for model in models]
        questions.append(
            Question(
                key,
                category[key],
                tuple(range(len(models))),
                tuple(value for value in values if value is not None),
                tuple(_wins(pairs, judge, len(models)) for judge, pairs in enumerate(verdicts)),
                tuple(_approvals(pairs, voter, len(models)) for voter, pairs in enumerate(verdicts)),
            )
        )
    return Table(name, "verdicts", models, tuple(questions), dict(skipped))


Pairs = Mapping[tuple[int, int], Sequence[float]]
"""What a judge gave the first of two over the second, each time: 1, 0.5 or 0."""


def _won(pairs: Pairs, author: int, n: int) -> float | None:
    """The share of comparisons an answer won, each opponent counting alike."""
    found = [sum(won) / len(won) for other in range(n) if (won := pairs.get((author, other)))]
    return sum(found) / len(found) if found else None


def _wins(pairs: Pairs, judge: int, n: int) -> tuple[float | None, ...]:
    """A judge's score for each answer: 10 times the share of comparisons it let it win, those with its own among them."""
    return tuple(
        None if author == judge or (won := _won(pairs, author, n)) is None else 10 * won for author in range(n)
    )


def _approvals(pairs: Pairs, voter: int, n: int) -> tuple[bool | None, ...]:
    """A voter approves of an answer unless, on balance over both orders, it prefers its own."""
    return tuple(
        True if author == voter else None if not (won := pairs.get((voter, author))) else sum(won) <= len(won) / 2
        for author in range(n)
    )
