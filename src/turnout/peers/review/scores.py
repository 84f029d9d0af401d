"""What a review found: a pure function of its plan and its journal, whatever the order in which calls ended."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from turnout import __version__
from turnout.peers.review import prompt
from turnout.peers.review.design import Cell
from turnout.peers.review.journal import Entry
from turnout.peers.review.plan import Outcome, Plan
from turnout.peers.review.questions import Question, set_digest, types

THIN_BELOW = 0.6
"""Share of the questions planned for two models below which their mean is left out."""

Matrix = dict[str, dict[str, float | None]]
Row = list[int | None]


class Thin(Struct, frozen=True):
    """A pair with too few scores for its mean to count. `planned`: questions on which the two were to meet."""

    judge: str
    author: str
    mean: float | None
    count: int
    planned: int


class Matrices(Struct, frozen=True):
    """Mean scores over some questions. `scores[judge][author]`: 1-10; None = the diagonal, no score, or too few (`thin`)."""

    questions: int
    scores: Matrix
    counts: dict[str, dict[str, int]]
    thin: list[Thin]


class Stratum(Struct, frozen=True):
    """A question by its id, and where it belongs."""

    id: str
    type: str
    difficulty: str


class Dropped(Struct, frozen=True):
    """A question on which every score was the same, so that it tells no two models apart."""

    id: str
    type: str
    score: int


class Missing(Struct, frozen=True):
    """A cell without a score, and why."""

    question: str
    judge: str
    author: str
    status: str
    message: str


class JudgeCount(Struct, frozen=True):
    """How a judge did. `asked`: cells it has replied to; `retried`: those that took a second question; `parse_failures`: those
    whose replies could not be read in the end; `other_failures`: those it did not reply to."""

    asked: int
    scored: int
    parse_failures: int
    retried: int
    other_failures: int


class Spent(Struct, frozen=True):
    """What all calls in the journal used. `usd`: of those whose price is known; `estimated_calls`: whose use was not reported."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float
    unpriced_calls: int
    estimated_calls: int


class Scores(Struct, frozen=True):
    """The scores file. `cells[judge][author]` and `self_scores[model]` and `lengths[author]` (characters) stand beside
    `questions`, one each; None = there is none. `stripped`: answers that named their writer. `complete`: every planned cell
    has been asked for and answered, for better or worse; `stopped`: the limit that ended the review before."""

    models: list[str]
    scores: Matrix
    counts: dict[str, dict[str, int]]
    thin: list[Thin]
    by_type: dict[str, Matrices]
    by_difficulty: dict[str, Matrices]
    questions: list[Stratum]
    cells: dict[str, dict[str, Row]]
    self_scores: dict[str, Row]
    lengths: dict[str, Row]
    stripped: dict[str, int]
    dropped: list[Dropped]
    failures: list[Missing]
    judges: dict[str, JudgeCount]
    complete: bool
    stopped: str
    left_out: dict[str, str]
    spent: Spent
    manifest: dict[str, Any]


class _Gathered:
    """All outcomes of a plan by judge and author, each a table of score by question."""

    def __init__(self, plan: Plan, entries: Mapping[str, Entry]) -> None:
        self.outcomes = {cell: plan.outcome(cell, entries) for cell in plan.cells()}
        self.planned: dict[tuple[int, int], set[int]] = defaultdict(set)
        self.scored: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for cell, outcome in self.outcomes.items():
            pair = (cell.judge, cell.author)
            self.planned[pair].add(cell.question)
            if outcome.score is not None:
                self.scored[pair][cell.question] = outcome.score

    def alike(self, questions: Sequence[Question]) -> dict[int, int]:
        """The questions on which all scores are one, with that score; none of a type that would lose them all."""
        given: dict[int, list[int]] = defaultdict(list)
        for (judge, author), scores in self.scored.items():
            for question, score in scores.items() if judge != author else ():
                given[question].append(score)
        alike = {q: scores[0] for q, scores in sorted(given.items()) if len(scores) > 1 and len(set(scores)) == 1}
        left = {questions[q].type for q in given if q not in alike}
        return {q: score for q, score in alike.items() if questions[q].type in left}


def gather(
    plan: Plan, entries: Mapping[str, Entry], spent: Sequence[Entry], began: str, stopped: str = "",
    left_out: Mapping[str, str] | None = None,
) -> Scores:  # fmt: skip
    """The scores of a plan, as far as the journal has them. `spent`: all of the journal's entries."""
    found = _Gathered(plan, entries)
    dropped = found.alike(plan.questions)
    kept = [index for index in range(len(plan.questions)) if index not in dropped]
    names = [member.name for member in plan.members]
    whole = _matrices(found, names, kept)
    strata = [plan.questions[index] for index in kept]
    failures = [
        Missing(
            plan.questions[cell.question].id, names[cell.judge], names[cell.author], outcome.status, outcome.message
        )
        for cell, outcome in sorted(found.outcomes.items())
        if outcome.score is None
    ]
    answers = [[plan.answer(q, author, entries) for q in kept] for author in range(len(names))]
    return Scores(
        models=names,
        scores=whole.scores,
        counts=whole.counts,
        thin=whole.thin,
        by_type=_by(found, names, kept, [q.type for q in strata]),
        by_difficulty=_by(found, names, kept, [q.difficulty for q in strata]),
        questions=[Stratum(q.id, q.type, q.difficulty) for q in strata],
        cells={
            judge: {author: _row(found, j, a, kept) for a, author in enumerate(names) if a != j}
            for j, judge in enumerate(names)
        },
        self_scores={name: _row(found, i, i, kept) for i, name in enumerate(names)} if plan.self_scores else {},
        lengths={
            name: [None if answer is None else len(answer.text) for answer in answers[i]]
            for i, name in enumerate(names)
        },
        stripped={
            name: sum(answer is not None and answer.masked for answer in answers[i]) for i, name in enumerate(names)
        },
        dropped=[Dropped(plan.questions[q].id, plan.questions[q].type, score) for q, score in dropped.items()],
        failures=failures,
        judges={name: _judge(found.outcomes, index) for index, name in enumerate(names)},
        complete=not stopped and all(outcome.settled for outcome in found.outcomes.values()),
        stopped=stopped,
        left_out=dict(sorted((left_out or {}).items())),
        spent=_spent(spent),
        manifest=manifest(plan, entries, began),
    )


def manifest(plan: Plan, entries: Mapping[str, Entry], began: str) -> dict[str, Any]:
    """What the scores depend on, so that it can be told when they are stale."""
    served: dict[str, set[str]] = defaultdict(set)
    for entry in entries.values():
        if entry.served:
            served[entry.model].add(entry.served)
    how = plan.sampling
    return {
        "began": began,
        "models": [
            {"name": m.name, "model": m.model, "revision": m.revision, "served": sorted(served[m.name])}
            for m in plan.members
        ],
        "question_set": set_digest(plan.questions),
        "question_count": len(plan.questions),
        "types": types(plan.questions),
        "prompt": prompt.DIGEST,
        "prompt_version": prompt.VERSION,
        "scale": [prompt.LOWEST, prompt.HIGHEST],
        "sampling": {
            "temperature": how.temperature,
            "max_answer_tokens": how.answer_tokens,
            "max_score_tokens": how.score_tokens,
            "output": how.output,
        },
        "judges_per_answer": plan.judges_per_answer,
        "recorded_answers": sorted(plan.recorded),
        "turnout": __version__,
    }


def _by(found: _Gathered, names: list[str], kept: list[int], strata: list[str]) -> dict[str, Matrices]:
    """Matrices of each stratum that has a name. `strata`: of each kept question."""
    return {
        one: _matrices(found, names, [index for index, its in zip(kept, strata, strict=True) if its == one])
        for one in dict.fromkeys(strata)
        if one
    }


def _matrices(found: _Gathered, names: list[str], questions: list[int]) -> Matrices:
    """Means over some questions. Sums of whole numbers: no order of addition shows."""
    among = set(questions)
    scores: Matrix = {}
    counts: dict[str, dict[str, int]] = {}
    thin: list[Thin] = []
    for j, judge in enumerate(names):
        scores[judge], counts[judge] = {}, {}
        for a, author in enumerate(names):
            given = [] if a == j else [score for q, score in found.scored[j, a].items() if q in among]
            planned = len(found.planned[j, a] & among)
            mean = sum(given) / len(given) if given else None
            lacking = a != j and len(given) < THIN_BELOW * planned
            if lacking:
                thin.append(Thin(judge, author, mean, len(given), planned))
            scores[judge][author] = None if lacking else mean
            counts[judge][author] = len(given)
    return Matrices(len(questions), scores, counts, thin)


def _row(found: _Gathered, judge: int, author: int, questions: list[int]) -> Row:
    scores = found.scored[judge, author]
    return [scores.get(question) for question in questions]


def _judge(outcomes: Mapping[Cell, Outcome], index: int) -> JudgeCount:
    own = [outcome for cell, outcome in outcomes.items() if cell.judge == index]
    asked = [outcome for outcome in own if outcome.asked]
    scored = sum(outcome.score is not None for outcome in own)
    return JudgeCount(
        asked=len(asked),
        scored=scored,
        parse_failures=sum(outcome.settled and outcome.score is None for outcome in asked),
        retried=sum(outcome.retried for outcome in own),
        other_failures=sum(not outcome.settled and outcome.status not in ("no_answer", "not_asked") for outcome in own),
    )


def _spent(entries: Sequence[Entry]) -> Spent:
    return Spent(
        calls=sum(entry.tries for entry in entries),
        input_tokens=sum(entry.input_tokens for entry in entries),
        output_tokens=sum(entry.output_tokens for entry in entries),
        usd=math.fsum(entry.usd or 0.0 for entry in entries),
        unpriced_calls=sum(entry.usd is None for entry in entries),
        estimated_calls=sum(entry.estimated for entry in entries),
    )
