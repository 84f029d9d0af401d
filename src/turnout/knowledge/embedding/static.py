"""Static vectors: a text's points where the mean of its tokens' does. The package wordllama brings them as files."""

import hashlib
from collections.abc import Sequence
from functools import cache
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
        self._last = len(table) - 1
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""
        parts = [self._means(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)]
        return unit(np.concatenate(parts)) if parts else np.zeros((0, self.dimensions), np.float32)

    def _means(self, texts: Sequence[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for row, one in enumerate(encoded):
            if one.ids:
                found[row] = self._table[np.minimum(one.ids, self._last)].sum(0)  # `unit` makes a mean of it
        return found


@cache
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
