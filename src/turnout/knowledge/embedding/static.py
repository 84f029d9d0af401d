"""Static vectors: a text's is the mean of its tokens'. Read from files of the package wordllama, which brings its own."""

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from turnout.errors import ConfigError
from turnout.knowledge.embedding.embedder import Vectors, unit

_AT_ONCE = 1024
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class Static:
    """`table`: the vector of each token. `tokenizer`: of the package tokenizers, with neither padding nor truncation."""

    def __init__(self, name: str, model: str, table: Vectors, tokenizer: Any) -> None:
        self.name = name
        self.model = model
        self.dimensions = int(table.shape[1])
        self._table = table
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""
        parts = [self._means(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)]
        return unit(np.concatenate(parts)) if parts else np.zeros((0, self.dimensions), np.float32)

    def _means(self, texts: Sequence[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        counts = np.array([len(one.ids) for one in encoded])
        found = np.zeros((len(texts), self.dimensions), np.float32)
        if some := np.flatnonzero(counts).tolist():
            tokens = np.concatenate([encoded[row].ids for row in some]).clip(0, len(self._table) - 1)
            starts = np.concatenate([[0], np.cumsum(counts[some])[:-1]])
            found[some] = np.add.reduceat(self._table[tokens], starts, axis=0) / counts[some, None]
        return found


def wordllama() -> Static:
    """The vectors of 256 numbers that the package wordllama holds; it is not imported, and nothing is downloaded."""
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
    folder = Path(package.origin).parent
    try:
        weights = (folder / _WEIGHTS).read_bytes()
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        table = load(weights)["embedding.weight"].astype(np.float32)
    except (OSError, KeyError) as error:
        raise ConfigError(
            f"the package wordllama lacks its vectors ({error}); install the version that is pinned"
        ) from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Static("wordllama", hashlib.sha256(weights).hexdigest()[:16], table, tokenizer)
