"""What a provider's prompt cache would have held, for scripted models: so that their usage looks like the real thing.

The rules are the vendors' published ones, kept coarse: a prefix is a number of whole messages (tools and instructions before
them), token counts are estimates, and nothing is evicted before its lifetime ends.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from turnout.conversation import Format, Usage
from turnout.pricing.tokens import estimate_tokens

LIFETIME_S = 300.0
LEAST = 1024
"""Tokens a prefix must have to be cached."""
STEP = 128
"""OpenAI counts cached tokens in steps of this many."""
ENTRIES_AT_MOST = 4096

_HEADS: dict[Format, tuple[str, ...]] = {
    "openai_chat": ("tools", "messages"),
    "openai_responses": ("tools", "instructions", "input"),
    "anthropic_messages": ("tools", "system", "messages"),
}
"""The fields of a body that make up the prompt, in the order in which providers put them."""


class PromptCache:
    """The cache of one upstream. `clock`: seconds, monotonic."""

    def __init__(
        self, format: Format, lifetime_s: float = LIFETIME_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._format = format
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def usage(self, body: bytes, output_tokens: int) -> Usage:
        """The usage a request would be reported with; its prefixes are in the cache afterwards."""
        prefixes = list(self._prefixes(body))
        total = max(1, prefixes[-1][1]) if prefixes else 1
        now = self._clock()
        held = next((p for p in reversed(prefixes) if self._until.get(p[0], 0.0) > now and p[1] >= LEAST), None)
        if self._format == "anthropic_messages":
            return self._marked(prefixes, held, total, output_tokens, now)
        self._keep(prefixes, now)
        read = held[1] // STEP * STEP if held is not None else 0
        return Usage(input_tokens=total - read, output_tokens=output_tokens, cache_read_tokens=read)

    def _marked(
        self,
        prefixes: list[tuple[bytes, int, bool]],
        held: tuple[bytes, int, bool] | None,
        total: int,
        output_tokens: int,
        now: float,
    ) -> Usage:
        """Anthropic reads and writes only up to where the client marked."""
        marked = [prefix for prefix in prefixes if prefix[2] and prefix[1] >= LEAST]
        if not marked:
            return Usage(total, output_tokens, 0, 0, 0)
        end = marked[-1][1]
        read = held[1] if held is not None and held[1] <= end else 0
        self._keep(marked if held is None else [*marked, held], now)
        return Usage(total - end, output_tokens, read, end - read, 0)

    def _keep(self, prefixes: list[tuple[bytes, int, bool]], now: float) -> None:
        for name, tokens, _ in prefixes:
            if tokens >= LEAST:
                self._until[name] = now + self._lifetime_s
                self._until.move_to_end(name)
        while len(self._until) > ENTRIES_AT_MOST:
            self._until.popitem(last=False)

    def _prefixes(self, body: bytes) -> Iterator[tuple[bytes, int, bool]]:
        """Growing prefixes of the prompt: digest, tokens, whether a cache mark ends it."""
        fields = msgspec.json.decode(body)
        digest = hashlib.blake2b(str(fields.get("model", "")).encode(), digest_size=16)
        tokens = 0
        for head in _HEADS[self._format]:
            value = fields.get(head)
            units = value if isinstance(value, list) and head not in ("tools", "system") else [value]
            for unit in units:
                if unit is None:
                    continue
                plain, marked = _unmarked(unit)
                text = msgspec.json.encode(plain)
                digest.update(text)
                tokens += estimate_tokens(text.decode())
                yield digest.digest(), tokens, marked


def _unmarked(value: Any) -> tuple[Any, bool]:
    """`value` without cache marks, which move along with a conversation, and whether there was one."""
    if isinstance(value, dict):
        marked = bool(value.get("cache_control"))
        plain: dict[str, Any] = {}
        for key, inner in value.items():
            if key != "cache_control":
                plain[key], found = _unmarked(inner)
                marked = marked or found
        match plain.get("content"):
            # A single text is the same prompt whether it is written as one or as a list.
            case [{"type": "text", "text": str(text), **more}] if not more:
                plain["content"] = text
        return plain, marked
    if isinstance(value, list):
        pairs = [_unmarked(inner) for inner in value]
        return [plain for plain, _ in pairs], any(found for _, found in pairs)
    return value, False
