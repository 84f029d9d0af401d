"""Which rates hold for a model at a provider: the price snapshot and the operator's overrides, memoised."""

import re
import time
from pathlib import Path

import msgspec

from turnout.pricing.rates import Price, Rates, rates_of
from turnout.pricing.table import Model, Provider, Table

SNAPSHOT = Path(__file__).with_name("snapshot.json")
MEMO_AT_MOST = 4096
"""Remembered look-ups. Model names may come from clients, so the memory is bounded; it is emptied when full."""

_ALIASES = {
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "vertex_ai": "google",
    "gemini": "google",
    "xai": "x-ai",
    "fireworks_ai": "fireworks",
    "together_ai": "together",
    "azure_ai": "azure",
    "moonshot": "moonshotai",
    "mistralai": "mistral",
    "meta-llama": "meta",
    "z-ai": "zai",
}
_BEDROCK = re.compile(
    r"^(?:[a-z]{2,6}(?:-[a-z]+)?\.)?(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen)\.[a-z]"
)
_BEDROCK_TAIL = re.compile(r"-v\d+(?::\d+)?$")
_LAST = re.compile(r"(?:-latest|-20\d{6}|-20\d\d-\d\d-\d\d|@20\d{6}|@latest|@default)$")


class Prices:
    """The price table. Look-ups touch no network and no file after the first."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._memo: dict[tuple[str, str, str], Model | None] = {}
        self._stated: dict[Price, Rates] = {}

    @classmethod
    def load(cls, path: Path = SNAPSHOT) -> "Prices":
        """Read a snapshot, by default the one shipped. Raises OSError or msgspec.DecodeError."""
        return cls(msgspec.json.decode(path.read_bytes(), type=Table))

    def rates(
        self,
        model: str,
        *,
        provider: str = "",
        base_url: str = "",
        override: Price | None = None,
        at: float | None = None,
    ) -> Rates | None:
        """The rates of a model, None when unpriced.

        `provider`: its name where known; else `base_url` tells it; else the model id. `override`: the operator's own price,
        which wins. `at`: Unix seconds, None = now (prices have a history, some vary by the hour).
        """
        if override is not None:
            stated = self._stated.get(override)
            if stated is None:
                stated = self._stated[override] = rates_of(override)
            return stated
        key = (model, provider, base_url)
        try:
            found = self._memo[key]
        except KeyError:
            found = self._remember(key)
        if found is None:
            return None
        if len(found.prices) == 1:
            return found.prices[0].rates
        return found.rates(time.time() if at is None else at)

    def _remember(self, key: tuple[str, str, str]) -> Model | None:
        if len(self._memo) >= MEMO_AT_MOST:
            self._memo.clear()
        found = self._memo[key] = self._find(*key)
        return found

    def _find(self, model: str, provider_name: str, base_url: str) -> Model | None:
        model = model.strip().lower().rsplit("/", 1)[-1] if model.startswith("arn:") else model.strip().lower()
        provider = self.table.named(_ALIASES.get(provider_name.lower(), provider_name)) if provider_name else None
        if provider is None and base_url:
            provider = self.table.at_url(base_url)
        if provider is not None:
            return self._at(provider, model)
        return self._anywhere(model)

    def _at(self, provider: Provider, model: str) -> Model | None:
        """A model at a known provider, trying the spellings of the field."""
        for spelling in _spellings(model):
            found = self.table.model(provider, spelling)
            if found is not None:
                return found
        prefix, _, rest = model.partition("/")
        if rest and (self.table.named(_ALIASES.get(prefix, prefix)) is provider or prefix == "models"):
            return self._at(provider, rest)
        return None

    def _anywhere(self, model: str) -> Model | None:
        """A model whose provider only its id can tell."""
        if _BEDROCK.match(model):
            provider = self.table.named("aws")
            return self._at(provider, model) if provider is not None else None
        prefix, _, rest = model.partition("/")
        if rest:
            named = self.table.named(_ALIASES.get(prefix, prefix))
            return self._at(named, rest) if named is not None else None
        if ":" in model:  # `llama3:8b`: a tag of a local model server, whatever vendor's name it begins with
            return None
        owner = self.table.owner(model)
        return self._at(owner, model) if owner is not None else None


def _spellings(model: str) -> list[str]:
    """The id as given, then without what gateways and clouds add: a bracketed mark (`[1m]`), a date, `-latest`."""
    plain = re.sub(r"\[[^\]]*\]$", "", model)
    spellings = [model, plain, _LAST.sub("", plain), _LAST.sub("", _BEDROCK_TAIL.sub("", plain))]
    return list(dict.fromkeys(spellings))
