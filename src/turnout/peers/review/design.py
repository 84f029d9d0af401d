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
    return sorted(range(len(questions)), key=lambda i: _hash(questions[i].id))


def cells(
    questions: Sequence[Question], models: Sequence[str], judges_per_answer: int = 0, self_scores: bool = False
) -> Iterator[Cell]:
    """All cells of a review, question after question. `models`: names.

    `judges_per_answer`: how many of the others score each answer; 0 = all. `self_scores`: each model scores its own answer too.
    """
    fewer = 0 < judges_per_answer < len(models) - 1
    for index in order(questions):
        judges = dealt(questions[index].id, models, judges_per_answer) if fewer else None
        for author in range(len(models)):
            those = sorted(judges[author]) if judges is not None else range(len(models))
            for judge in those:
                if judge != author:
                    yield Cell(index, judge, author)
            if self_scores:
                yield Cell(index, author, author)


def dealt(question: str, models: Sequence[str], each: int) -> list[set[int]]:
    """The judges of each author's answer to a question: `each` of the others (fewer than there are), dealt by hash.

    Every author has so many judges and every judge so many authors. Models join one after the other: whoever joins takes one
    author each from as many judges, who score it in return, so all that the others do besides stays as it was.
    """
    judges = [set(range(each + 1)) - {author} for author in range(each + 1)]
    for new in range(each + 1, len(models)):
        taken = _taken(judges, each, f"{question}\x1f{models[new]}", models)
        judges.append(set(taken.values()))
        for author, judge in taken.items():
            judges[author].remove(judge)
            judges[author].add(new)
    return judges


def _taken(judges: list[set[int]], count: int, salt: str, models: Sequence[str]) -> dict[int, int]:
    """So many authors with one judge each, no judge twice, by hash. There are always that many: each author has `count` judges
    and each judge as many authors."""
    of_judge: dict[int, int] = {}
    ranked = [
        [
            judge
            for _, judge in sorted((_hash(f"{salt}\x1f{models[author]}\x1f{models[judge]}"), judge) for judge in those)
        ]
        for author, those in enumerate(judges)
    ]

    def place(author: int, seen: set[int]) -> bool:
        """Give an author a judge, others being given another where they must."""
        for judge in ranked[author]:
            if judge not in seen:
                seen.add(judge)
                if judge not in of_judge or place(of_judge[judge], seen):
                    of_judge[judge] = author
                    return True
        return False

    for author in sorted(range(len(judges)), key=lambda author: _hash(f"{salt}\x1f{models[author]}")):
        if len(of_judge) < count:
            place(author, set())
    return {author: judge for judge, author in of_judge.items()}


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
