"""How well an agent answers, and by what path: each question's scores, and their means with intervals. Needs no torch."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from turnout.statistics.bootstrap import draws, resampled_mean
from turnout.statistics.interval import Estimate
from turnout.train.credit import Episode, Route, Thresholds, route_of
from turnout.train.data.question import Question
from turnout.train.rollout import Rollout
from turnout.train.scores import best_f1, coverage, exact_match, path_score, unsupported_answer_ratio


class Scored(Struct, frozen=True):
    """One question's scores. `p`: SF-F1; `coverage`: recall of the gold; `uar`: answer tokens found in no evidence; `lookups`;
    `turns` of the model. `p` and `coverage` are None without gold passages; `route` then too."""

    question: str
    answer: str | None
    f1: float
    em: float
    p: float | None
    coverage: float | None
    uar: float
    lookups: int
    turns: int
    route: Route | None


Mean: TypeAlias = Estimate
"""A mean with its 95 % bootstrap interval over questions."""


class Summary(Struct, frozen=True):
    """Means over `n` questions. `routes`: the share of each."""

    n: int
    f1: Mean
    em: Mean
    p: Mean | None
    coverage: Mean | None
    uar: Mean
    lookups: Mean
    turns: Mean
    shortcut_share: Mean | None
    routes: dict[Route, float]


def scored(
    question: Question, done: Rollout, thresholds: Thresholds, episode: Callable[[Rollout, Question], Episode]
) -> Scored:
    """The scores of one rollout."""
    told = episode(done, question)
    answer = told.answer or ""
    f1 = best_f1(answer, question.answers) if told.answer is not None else 0.0
    exact = told.answer is not None and exact_match(answer, question.answers)
    p = path_score(told.retrieved, told.gold_passages) if told.gold_passages else None
    route = None if p is None else route_of(exact or f1 >= thresholds.correct, p >= thresholds.path)
    return Scored(
        question.id,
        told.answer,
        f1,
        float(exact),
        p,
        coverage(told.retrieved, told.gold_passages) if told.gold_passages else None,
        unsupported_answer_ratio(answer, told.retrieved),
        len(told.lookups),
        told.steps,
        route,
    )


def summary(rows: Sequence[Scored], seed: int = 0, resamples: int = 1000) -> Summary:
    """Means and intervals. Raises ValueError without rows."""
    if not rows:
        raise ValueError("no question was answered, so there is nothing to average")
    times = np.array(list(draws(len(rows), resamples, seed)), float)

    def mean(values: Sequence[float]) -> Mean:
        return resampled_mean(values, times)

    paths = [row.p for row in rows if row.p is not None]
    whole = len(paths) == len(rows)
    return Summary(
        n=len(rows),
        f1=mean([row.f1 for row in rows]),
        em=mean([row.em for row in rows]),
        p=mean(paths) if whole else None,
        coverage=mean([row.coverage or 0.0 for row in rows]) if whole else None,
        uar=mean([row.uar for row in rows]),
        lookups=mean([float(row.lookups) for row in rows]),
        turns=mean([float(row.turns) for row in rows]),
        shortcut_share=mean([float(row.route is Route.SHORTCUT) for row in rows]) if whole else None,
        routes={route: sum(row.route is route for row in rows) / len(rows) for route in Route} if whole else {},
    )
