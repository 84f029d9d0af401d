"""Vectors of hashed words and letter triples: no model at all. Finds spellings, not meanings."""

import re
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from turnout.knowledge.embedding.embedder import Vectors, unit

_WORD = re.compile(r"\w+")


class Hashed:
    """Every word, and every three letters in a row, adds 1 or -1 to one of 256 numbers."""

    name = "hashed"
    model = "hashed-1"
    dimensions = 256

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for part, weight in _parts(text):
                code = crc32(part.encode("utf-8", "replace"))
                found[row, code % self.dimensions] += weight if code & 0x80000000 else -weight
        return unit(found)


def _parts(text: str) -> Iterator[tuple[str, float]]:
    for word in _WORD.findall(text.casefold()):
        yield word, 1.0
        padded = f"<{word}>"
        for start in range(len(padded) - 2):
            yield padded[start : start + 3], 0.25
