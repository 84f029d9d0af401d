"""Answers recorded elsewhere: JSON lines of one answer each (`id`, `model`, `answer`), or of one question (`id`, `answers`)."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.peers.review.questions import lines

Answers = dict[str, dict[str, str]]
"""Answers by model, then by question."""


class _Row(Struct, frozen=True):
    id: str | int | None = None
    question_id: str | int | None = None
    model: str = ""
    answer: str | int | float | None = None
    answers: dict[str, str | int | float | None] = {}


def read(path: Path, models: Mapping[str, str]) -> Answers:
    """The answers in a file of the models that take part. `models`: who takes part, by every name it may have in the file.

    A null is no answer: a model that is named has those answers and no others. Rows of other models are
    passed over. Raises ConfigError with file and line, also for two answers of one model to one question that differ, and for a
    file without any answer of those models.
    """
    found: Answers = {}
    others: set[str] = set()
    for number, line in lines(path):
        try:
            row = msgspec.json.decode(line, type=_Row)
            given = row.id if row.id is not None else row.question_id
            if given is None or not (row.model or row.answers):
                raise ValueError("expected `id`, and `model` with `answer`, or `answers` by model")
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"not an answer: {error}", file=str(path), line=number) from None
        for name, answer in (row.answers or {row.model: row.answer}).items():
            if name not in models:
                others.add(name)
                continue
            own = found.setdefault(models[name], {})
            if answer is not None and str(answer).strip():
                before = own.setdefault(str(given), str(answer))
                if before != str(answer):
                    message = f"a second answer of {name} to {str(given)!r}, and not the same"
                    raise ConfigError(message, file=str(path), line=number)
    if not any(found.values()):
        there = ", ".join(sorted(others)[:8]) or "none"
        raise ConfigError(f"no answer of the models that take part; models in it: {there}", file=str(path))
    return found
