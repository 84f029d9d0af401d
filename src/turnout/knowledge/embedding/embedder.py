"""The protocol of embedders, and which there are."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from turnout.errors import ConfigError

Vectors = NDArray[np.float32]

EMBEDDERS = ("wordllama", "hashed")


class Embedder(Protocol):
    """`name`: by which `embedder` finds it again. `model`: digest of what it computes with; vectors of two of them are not to
    be compared. A text's vector does not depend on what else is embedded with it."""

    name: str
    model: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text; zeros for a text that holds nothing it knows."""
        ...


def embedder(name: str) -> Embedder:
    """An embedder by its name. Raises ConfigError for an unknown one, ModuleNotFoundError where its package is missing."""
    if name == "wordllama":
        from turnout.knowledge.embedding.static import wordllama

        return wordllama()
    if name == "hashed":
        from turnout.knowledge.embedding.hashed import Hashed

        return Hashed()
    raise ConfigError(f"no embedder `{name}`; there are {', '.join(EMBEDDERS)}")


def unit(vectors: Vectors) -> Vectors:
    """The same rows with length 1; zeros stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    found: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return found
