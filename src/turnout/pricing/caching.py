"""How providers cache prompts: from what size, in which steps, for how long, and whether only where the client marks it.

The vendors' published rules, kept coarse. Caches are per model and per account or host, never shared between models.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.conversation import Format
from turnout.pricing.rates import Rates

Lifetime: TypeAlias = Literal["5m", "1h", "memory", "24h"]
"""How long a written prefix lives after its last use. `memory`: five minutes surely, an hour at most. `24h`: a day at most."""

_SPANS: dict[Lifetime, tuple[float, float]] = {
    "5m": (300.0, 300.0),
    "1h": (3600.0, 3600.0),
    "memory": (300.0, 3600.0),
    "24h": (3600.0, 86_400.0),
}


class Caching(Struct, frozen=True):
    """The rules of one target's cache.

    `least_tokens`: a shorter prefix is not cached. `step_tokens`: cached prefixes are multiples of it. `lifetime`: of a prefix,
    unless the request asks for another. `marked`: only what the client marks is written.
    """

    least_tokens: int = 1024
    step_tokens: int = 1
    lifetime: Lifetime = "memory"
    marked: bool = False

    def whole(self, tokens: float) -> int:
        """How much of a prefix of this many tokens can be in the cache."""
        if tokens < self.least_tokens:
            return 0
        return int(tokens // self.step_tokens) * self.step_tokens

    def held(self, tokens: float, idle_s: float, lifetime: Lifetime | None = None) -> float:
        """How much of such a prefix the cache is expected to hold when it was last used `idle_s` seconds ago."""
        return self.whole(tokens) * survival(idle_s, lifetime or self.lifetime)


def survival(idle_s: float, lifetime: Lifetime) -> float:
    """The chance that a prefix last used `idle_s` seconds ago is still there: 1 while its provider promises it, falling
    evenly to 0 at the longest it may live."""
    sure_s, gone_s = _SPANS[lifetime]
    if idle_s <= sure_s:
        return 1.0
    return 0.0 if idle_s >= gone_s else (gone_s - idle_s) / (gone_s - sure_s)


_ANTHROPIC_LEAST = (("haiku-4", 4096), ("opus-4-5", 4096), ("opus-4.5", 4096), ("haiku", 2048), ("", 1024))


def caching_of(model: str, format: Format, rates: Rates | None) -> Caching | None:
    """The rules for a model at a server that speaks `format`; None when it has no price for cached tokens, so that nothing is
    known of a cache."""
    if rates is None or rates.cache_read is None:
        return None
    name = model.lower()
    if "claude" in name:
        least = next(tokens for part, tokens in _ANTHROPIC_LEAST if part in name)
        return Caching(least, 1, "5m", marked=True)
    if format == "anthropic_messages" and rates.cache_write_5m is not None:
        return Caching(1024, 1, "5m", marked=True)
    if "deepseek" in name:
        return Caching(64, 64, "24h")
    if "gemini" in name:  # as seen in what it reports: hits are near multiples of 2,048
        return Caching(2048, 2048, "memory")
    last = name.rsplit("/", 1)[-1]
    if last.startswith(("gpt-", "o1", "o3", "o4", "codex", "chatgpt")):
        return Caching(1024, 128, "memory")
    return Caching(1024, 1, "memory")
