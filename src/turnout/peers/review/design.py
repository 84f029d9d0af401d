"""Who scores whose answer to which question."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnout.peers.review.questions import Question


class Cell(NamedTuple):
    """One score to be had: indices of the question, the judge and the author."""

    question: int
    judge: int
    author: int


def order(questions: Sequence[Question]) -> list[int]:
    """The questions in the order in which they are worked on: by hash, so that a review that ends early has a sample of all."""
    return sorted(range(len(questions)), key=lambda i: hashlib.sha256(questions[i].id.encode()).digest())


def cells(
    questions: Sequence[Question], models: int, judges_per_answer: int = 0, self_scores: bool = False
) -> Iterator[Cell]:
    """All cells of a review, question after question.

    `judges_per_answer`: how many of the others score each answer; 0 = all. Fewer are dealt in turns: on every question each
    model scores and is scored equally often, and over the questions of a type the numbers of questions on which any two
    models meet differ by one at most. `self_scores`: each model scores its own answer too.
    """
    others = models - 1
    share = others if not 0 < judges_per_answer < others else judges_per_answer
    dealt: dict[str, int] = {}
    for index in order(questions):
        turn = dealt[questions[index].type] = dealt.get(questions[index].type, -1) + 1
        steps = [1 + (turn * share + k) % others for k in range(share)]
        for author in range(models):
            for step in sorted(steps):
                yield Cell(index, (author + step) % models, author)
            if self_scores:
                yield Cell(index, author, author)
