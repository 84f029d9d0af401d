"""The path by words: BM25 over the texts of facts."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from turnout.knowledge.fusion import Ints, Ranking, ranking

FOLDER = "bm25"


class Lexical:
    """An index of bm25s."""

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def build(cls, texts: Sequence[str]) -> "Lexical | None":
        """None where no text has a word."""
        tokens = _tokens(texts)
        if not any(tokens):
            return None
        index = _bm25s().BM25()
        index.index(tokens, show_progress=False)
        return cls(index)

    @classmethod
    def load(cls, folder: Path) -> "Lexical":
        """The index in a folder."""
        return cls(_bm25s().BM25.load(str(folder)))

    def save(self, folder: Path) -> list[str]:
        """Write it; the names of the files."""
        self._index.save(str(folder), show_progress=False)
        return sorted(file.name for file in folder.iterdir())

    def rank(self, queries: Sequence[str], counts: Ints) -> Ranking:
        """The facts that share words with each query, best first, as many as asked for at most."""
        found_by: list[int] = []
        found: list[int] = []
        for query, words in enumerate(_tokens(queries)):
            ids = self._index.get_tokens_ids(words)
            if not ids:
                continue
            scores = self._index.get_scores_from_ids(ids)
            count = min(int(counts[query]), len(scores))
            best = np.argpartition(-scores, count - 1)[:count] if count else np.zeros(0, np.int64)
            best = best[np.lexsort((best, -scores[best]))]
            best = best[scores[best] > 0]
            found_by += [query] * len(best)
            found += best.tolist()
        return ranking(np.array(found_by, np.int64), np.array(found, np.int64))


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = _bm25s().tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return found


def _bm25s() -> Any:
    """The package bm25s, which would log every index it makes."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s
