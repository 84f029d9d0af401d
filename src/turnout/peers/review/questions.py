"""The questions of a review: JSON lines with `id` and `question` or `messages`; `type`, `difficulty`, `reference` where known."""

import codecs
import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Message, Text
from turnout.errors import ClientError, ConfigError
from turnout.wire import CODECS

LEAST_PER_TYPE = 25
"""Questions of a type below which scores say little: half of the graph would change with another sample."""


class Question(Struct, frozen=True):
    """One question. `conversation`: what models are asked. `text`: the same as a judge reads it. `reference`: a known right
    answer for the judges, "" when there is none. `digest`: of what models are asked."""

    id: str
    conversation: Conversation
    text: str
    type: str = "general"
    difficulty: str = ""
    reference: str = ""
    digest: str = ""


class _Row(Struct, frozen=True):
    id: str | int | None = None
    question_id: str | int | None = None
    question: str = ""
    messages: list[dict[str, Any]] = []
    type: str = ""
    category: str = ""
    difficulty: str | int | float = ""
    reference: str | int | float | None = None


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSONL or JSONL.gz file that are not empty, numbered from 1. Raises ConfigError for what is no such file."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if text.strip():
                    yield number, text
    except (gzip.BadGzipFile, EOFError) as error:
        raise ConfigError(f"cannot be unpacked: {error}", file=str(path)) from None


def read(path: Path) -> tuple[Question, ...]:
    """The questions of a file, in order. Raises ConfigError with file and line."""
    questions: dict[str, Question] = {}
    for number, line in lines(path):
        try:
            question = _question(msgspec.json.decode(line, type=_Row))
        except (msgspec.DecodeError, ClientError, ValueError) as error:
            raise ConfigError(f"not a question: {error}", file=str(path), line=number) from None
        if question.id in questions:
            raise ConfigError(f"the id {question.id!r} is there twice", file=str(path), line=number)
        questions[question.id] = question
    if not questions:
        raise ConfigError('there is no question; a line is {"id": ..., "question": ...}', file=str(path))
    return tuple(questions.values())


def _question(row: _Row) -> Question:
    given = row.id if row.id is not None else row.question_id
    if given is None or given == "":
        raise ValueError("`id` is missing")
    if bool(row.question.strip()) == bool(row.messages):
        raise ValueError("state either `question`, a text, or `messages` in OpenAI chat form")
    if row.messages:
        body = msgspec.json.encode({"model": "", "messages": row.messages})
        conversation = CODECS["openai_chat"].read_request(body).conversation
        said = [(message.role, _said(message)) for message in conversation.messages]
        text = said[0][1] if len(said) == 1 else "\n\n".join(f"[{role}]\n{words}" for role, words in said)
        asked: Any = row.messages
    else:
        text, asked = row.question, row.question
        conversation = Conversation(messages=(Message("user", (Text(text),)),), roles=("user",))
    reference = "" if row.reference is None else str(row.reference)
    digest = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()
    kind = row.type or row.category or "general"
    return Question(str(given), conversation, text, kind, str(row.difficulty), reference, digest)


def _said(message: Message) -> str:
    """The words of a message. Raises ValueError for what a judge could not read."""
    if not all(isinstance(part, Text) for part in message.parts):
        raise ValueError("`messages` may hold text only: a judge is shown no images, calls or files")
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def set_digest(questions: Sequence[Question]) -> str:
    """The identity of a question set: ids, strata, texts and references, whatever their order."""
    rows = sorted([q.id, q.type, q.difficulty, q.reference, q.digest] for q in questions)
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def types(questions: Sequence[Question]) -> dict[str, int]:
    """How many questions there are of each type, in order of appearance."""
    return dict(Counter(question.type for question in questions))


def few(questions: Sequence[Question]) -> dict[str, int]:
    """The types with too few questions for their scores to mean much, with their numbers."""
    return {kind: n for kind, n in types(questions).items() if n < LEAST_PER_TYPE}
