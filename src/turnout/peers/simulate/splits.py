"""One split of the questions: a graph from one half, every strategy on the other. Needs numpy.

What is chosen (graph, first models, best single) is chosen from the calibration half; nothing of the test half is looked at
but by playing. Splits share questions, so their spread is no error of the mean.
"""

import random
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from turnout.peers.graph.measure import ENOUGH_QUESTIONS, KAPPA, shrunk
from turnout.peers.graph.relations import Settings, relate
from turnout.peers.simulate.arms import First
from turnout.peers.simulate.playing import CallPrices
from turnout.peers.simulate.recorded import Question, Table
from turnout.routing.collaboration.chain import dice
from turnout.routing.collaboration.electorate import Electorate
from turnout.routing.collaboration.graph import Relations, Scores
from turnout.statistics.bootstrap import Matrix


class Split:
    """A table parted into calibration and test, and what follows from the calibration half."""

    def __init__(self, table: Table, prices: CallPrices, seed: int) -> None:
        self.table = table
        self.prices = prices
        self.seed = seed
        self.calibration, self.test = halves(len(table.questions), seed)
        self._electorates: dict[tuple[Settings, str], Electorate] = {}

    @cached_property
    def _scores(self) -> Matrix:
        """Scores of every question of the calibration half, NaN where there is none."""
        return np.array([self.table.questions[at].scores for at in self.calibration], dtype=float)

    def _means(self, of: Sequence[int] | None = None) -> tuple[Scores, dict[str, dict[str, int]]]:
        """Mean scores over the calibration half, or some of it, and how many are behind each."""
        scores = self._scores if of is None else self._scores[np.asarray(of, int)]
        there = ~np.isnan(scores)
        total, count = np.where(there, scores, 0.0).sum(axis=0), there.sum(axis=0)
        names = self.table.models
        means: Scores = {
            judge: {i: float(total[a, b] / count[a, b]) if count[a, b] else None for b, i in enumerate(names)}
            for a, judge in enumerate(names)
        }
        return means, {j: {i: int(count[a, b]) for b, i in enumerate(names)} for a, j in enumerate(names)}

    @cached_property
    def _everywhere(self) -> Scores:
        return self._means()[0]

    def relations(self, settings: Settings, category: str = "") -> Relations:
        """The graph of the calibration half; of a category where one is named and has enough questions."""
        of = [at for at, q in enumerate(self.calibration) if self.table.questions[q].category == category]
        scores, questions = self._everywhere, len(self.calibration)
        if category and len(of) >= ENOUGH_QUESTIONS:
            own, counts = self._means(of)
            scores, questions = shrunk(own, counts, self._everywhere, KAPPA), len(of)
        return relate(self.table.models, scores, settings, questions=questions)

    def electorate(self, settings: Settings, category: str = "") -> Electorate:
        """Who votes on whose answers by the graph of the calibration half."""
        key = (settings, category)
        if key not in self._electorates:
            found, models = self.relations(settings, category), self.table.models
            prices = dict(zip(models, self.prices.models, strict=True))
            self._electorates[key] = Electorate(
                models, found.known_received, found.anchors, found.voters, found.others, prices
            )
        return self._electorates[key]

    @cached_property
    def by_labels(self) -> int:
        """The model with the highest value over the calibration half."""
        values = np.array([self.table.questions[at].values for at in self.calibration]).sum(axis=0)
        return int(values.argmax())

    def first(self, rule: First, electorate: Electorate, question: Question) -> int:
        """Who answers a question first."""
        models, best = self.table.models, electorate.best()
        match rule:
            case "best":
                return models.index(best[0])
            case "worst":
                return models.index(best[-1])
            case "cheapest":
                return models.index(min(best, key=electorate.price))
        return int(dice(f"first {question.id}", self.seed)(0, 0) * len(models))


def halves(questions: int, seed: int) -> tuple[list[int], list[int]]:
    """The questions of the calibration half and those of the test half, by their places in the table."""
    order = list(range(questions))
    random.Random(seed).shuffle(order)
    return sorted(order[: questions // 2]), sorted(order[questions // 2 :])
