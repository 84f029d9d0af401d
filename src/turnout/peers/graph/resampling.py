"""Bootstrap over the questions of a review, seeded. A question is drawn with all its scores, so that cells move together.

Needs numpy.
"""

from collections.abc import Sequence

import numpy as np

from turnout.peers.graph.scored import Cells
from turnout.peers.graph.stability import Means
from turnout.statistics.bootstrap import Matrix, draws


class Resampled:
    """Resamples of the questions of a review, and the mean scores in each."""

    def __init__(self, models: Sequence[str], cells: Cells, questions: int, resamples: int, seed: int) -> None:
        self.resamples = resamples
        self._pairs = [(judge, author) for judge in models for author in models if judge != author]
        self._scores = np.zeros((questions, len(self._pairs)))
        self._there = np.zeros((questions, len(self._pairs)))
        for column, (judge, author) in enumerate(self._pairs):
            row = cells.get(judge, {}).get(author)
            if row is not None:
                scores = np.array([np.nan if value is None else value for value in row], float)
                self._there[:, column] = ~np.isnan(scores)
                self._scores[:, column] = np.nan_to_num(scores)
        self._times: Matrix = np.array(list(draws(questions, resamples, seed)), float)
        self._everywhere = self._mean(range(questions))[0]

    def means(self) -> Means:
        """Mean scores over all questions."""
        return self._named(self._everywhere)

    def shrunk(self, of: Sequence[int], kappa: float) -> Means:
        """Mean scores over the questions with these indices, drawn towards those over all questions of the same resample."""
        own, count = self._mean(of)
        pulled = (np.nan_to_num(own) * count + kappa * self._everywhere) / np.maximum(count + kappa, 1e-12)
        unknown = np.where(count > 0, own, self._everywhere)
        return self._named(np.where(np.isnan(pulled) | (count + kappa == 0), unknown, pulled))

    def _mean(self, of: Sequence[int]) -> tuple[Matrix, Matrix]:
        chosen = np.asarray(of, int)
        times = self._times[:, chosen]
        # Scores are whole numbers, so that these sums are exact whatever the order in which they are made.
        total, count = times @ self._scores[chosen], times @ self._there[chosen]
        return np.where(count > 0, total / np.maximum(count, 1), np.nan), count

    def _named(self, means: Matrix) -> Means:
        return {pair: means[:, column].tolist() for column, pair in enumerate(self._pairs)}
