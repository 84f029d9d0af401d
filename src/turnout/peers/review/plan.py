"""What a review is to do: who takes part, what is asked and how, and for each answer and score the call that gives it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from turnout.conversation import Settings
from turnout.peers.review import prompt
from turnout.peers.review.answers import Answers
from turnout.peers.review.blind import blinded, masks
from turnout.peers.review.design import Cell, cells, order
from turnout.peers.review.journal import Entry
from turnout.peers.review.questions import Question
from turnout.pricing import Rates
from turnout.pricing.tokens import estimate_tokens
from turnout.routing.judging import Judging
from turnout.routing.judging import Question as Asked
from turnout.upstream.buying.budget import Size, price, size


class Member(Struct, frozen=True):
    """A model that takes part. `name`: of its target. `model`: its server's id. `revision`: digest of what shapes its replies,
    and the operator's own word for it where stated."""

    name: str
    model: str
    upstream: str
    revision: str


class Sampling(Struct, frozen=True):
    """How models are asked. `temperature`: None leaves it to each model, for those that refuse any. `output`: as for judges."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = 0.0
    answer_tokens: Annotated[int, Meta(ge=1)] = 2048
    score_tokens: Annotated[int, Meta(ge=16)] = 1024
    output: Literal["json_schema", "json_object", "text"] = "json_schema"
    within_s: Annotated[float, Meta(gt=0, le=600)] = 120.0


class Answer(Struct, frozen=True):
    """An answer as judges see it, without its writer's names for itself. `masked`: whether it named itself."""

    text: str
    masked: bool = False


class Call(Struct, frozen=True):
    """A call to be made, and where its outcome belongs. `asked`: what a judge is asked about `text`; None = an answer is asked
    for, by `conversation`."""

    key: str
    kind: Literal["answer", "score"]
    question: Question
    member: Member
    author: str
    size: Size
    asked: Asked[prompt.Score] | None = None
    text: str = ""


class Outcome(Struct, frozen=True):
    """What is known of a cell. `status`: `ok`, `no_answer` (the author has none), `not_asked` (a call is to be made yet), or why
    the last call gave no score. `asked`: whether the judge has replied; `retried`: whether it was asked a second time."""

    score: int | None
    status: str
    message: str = ""
    asked: bool = False
    retried: bool = False

    @property
    def settled(self) -> bool:
        """Whether asking again would bring nothing."""
        return self.status in ("ok", "no_answer", "parse_error", "invalid_response")


class Plan:
    """A review to be done. `rates`: prices by member. `judges_per_answer`: 0 = all others."""

    def __init__(
        self,
        members: Sequence[Member],
        questions: Sequence[Question],
        sampling: Sampling,
        recorded: Answers | None = None,
        rates: Mapping[str, Rates | None] | None = None,
        judges_per_answer: int = 0,
        self_scores: bool = False,
    ) -> None:
        self.members = tuple(members)
        self.questions = tuple(questions)
        self.sampling = sampling
        self.recorded = recorded or {}
        self.rates = rates or {}
        self.judges_per_answer = judges_per_answer
        self.self_scores = self_scores
        self.judging = Judging(
            within_s=sampling.within_s,
            max_output_tokens=sampling.score_tokens,
            temperature=sampling.temperature,
            output=sampling.output,
        )
        self._masks = masks(name for member in members for name in (member.name, member.model))
        self._answers: dict[str, Answer] = {}
        self._shown: dict[tuple[str, str], tuple[str, int]] = {}
        self._rubric_tokens = estimate_tokens(prompt.RUBRIC) + estimate_tokens(str(prompt.FIRST.schema))

    def cells(self) -> Iterator[Cell]:
        """All cells, in the order in which they are worked on."""
        names = [member.name for member in self.members]
        return cells(self.questions, names, self.judges_per_answer, self.self_scores)

    def authors(self) -> Iterator[tuple[int, int]]:
        """All answers that are wanted: question and author."""
        return ((question, author) for question in order(self.questions) for author in range(len(self.members)))

    def answer(self, question: int, author: int, entries: Mapping[str, Entry]) -> Answer | None:
        """An answer, recorded or bought; None when there is none."""
        asked, member = self.questions[question], self.members[author]
        if member.name in self.recorded:
            text = self.recorded[member.name].get(asked.id)
        else:
            entry = entries.get(self._answer_key(asked, member))
            text = entry.text if entry is not None and entry.status == "ok" else None
        return None if text is None else self._seen(text)

    def answer_call(self, question: int, author: int, entries: Mapping[str, Entry]) -> Call | None:
        """The call that gives an answer; None when it is there, or known not to come."""
        asked, member = self.questions[question], self.members[author]
        if member.name in self.recorded:
            return None
        key = self._answer_key(asked, member)
        if (entry := entries.get(key)) is not None and entry.finished:
            return None
        size = self._size(member, estimate_tokens(asked.text), self.sampling.answer_tokens)
        return Call(key, "answer", asked, member, member.name, size)

    def answer_settings(self) -> Settings:
        """How an answer is asked for."""
        return Settings(max_tokens=self.sampling.answer_tokens, temperature=self.sampling.temperature)

    def score_call(self, cell: Cell, entries: Mapping[str, Entry]) -> Call | None:
        """The call that gives a score next; None when there is no answer, or all has been said."""
        answer = self.answer(cell.question, cell.author, entries)
        if answer is None:
            return None
        for attempt, asked in enumerate((prompt.FIRST, prompt.SECOND)):
            key = self.score_key(cell, answer, attempt)
            entry = entries.get(key)
            if entry is None or not entry.finished:
                return self._score_call(cell, answer, key, asked)
            if entry.status == "ok":
                return None
        return None

    def outcome(self, cell: Cell, entries: Mapping[str, Entry]) -> Outcome:
        """What the journal knows of a cell."""
        answer = self.answer(cell.question, cell.author, entries)
        if answer is None:
            return self._unanswered(cell, entries)
        first = entries.get(self.score_key(cell, answer, 0))
        if first is None or not first.finished or first.status == "ok":
            return _outcome(first, asked=first is not None and first.finished)
        second = entries.get(self.score_key(cell, answer, 1))
        return _outcome(second, asked=True, retried=second is not None and second.finished)

    def _unanswered(self, cell: Cell, entries: Mapping[str, Entry]) -> Outcome:
        """What is to be said of a cell without an answer to score."""
        question, author = self.questions[cell.question], self.members[cell.author]
        if author.name in self.recorded:
            return Outcome(None, "no_answer", "no answer of the author's is recorded")
        entry = entries.get(self._answer_key(question, author))
        if entry is None:
            return Outcome(None, "not_asked", "the author has not been asked yet")
        return Outcome(None, "no_answer" if entry.finished else entry.status, f"the author: {entry.message}")

    def score_key(self, cell: Cell, answer: Answer, attempt: int) -> str:
        """The identity of a judgement: all that it depends on."""
        question, judge, how = self.questions[cell.question], self.members[cell.judge], self.sampling
        sampling = [how.temperature, how.score_tokens, how.output]
        asked = [prompt.DIGEST, attempt, question.digest, question.reference, answer.text]
        return _digest(["score", judge.name, judge.revision, sampling, asked])

    def _answer_key(self, question: Question, member: Member) -> str:
        sampling = [self.sampling.temperature, self.sampling.answer_tokens]
        return _digest(["answer", member.name, member.revision, sampling, question.digest])

    def _score_call(self, cell: Cell, answer: Answer, key: str, asked: Asked[prompt.Score]) -> Call:
        question, judge, author = self.questions[cell.question], self.members[cell.judge], self.members[cell.author]
        place = (question.id, answer.text)
        if place not in self._shown:
            text = prompt.shown(question.text, answer.text, question.reference)
            self._shown[place] = text, estimate_tokens(text)
        text, tokens = self._shown[place]
        size = self._size(judge, tokens + self._rubric_tokens, self.sampling.score_tokens)
        return Call(key, "score", question, judge, author.name, size, asked, text)

    def _seen(self, text: str) -> Answer:
        if text not in self._answers:
            shown = blinded(text, self._masks)
            self._answers[text] = Answer(shown, shown != text)
        return self._answers[text]

    def _size(self, member: Member, input_tokens: int, output_tokens: int) -> Size:
        return size(input_tokens, output_tokens, self.rates.get(member.name))

    def priced(self, name: str, input_tokens: int, output_tokens: int) -> float | None:
        """What so many tokens cost at a member's prices, USD; None when no price is known."""
        return price(input_tokens, output_tokens, self.rates.get(name))


def _outcome(entry: Entry | None, asked: bool, retried: bool = False) -> Outcome:
    if entry is None:
        return Outcome(None, "not_asked", "the judge has not been asked" + (" again" if asked else ""), asked)
    if entry.status == "ok":
        return Outcome(entry.score, "ok", "", asked, retried)
    return Outcome(None, entry.status, entry.message, asked, retried)


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
