"""The knowledges that the routes of a configuration look facts up in: opened once, searched in threads beside the event loop."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from msgspec import Struct

from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Lookup, LookupOutcome

AT_ONCE = 4
"""Look-ups that are searched at once; others wait, within their own time."""


class Searched(Protocol):
    """A knowledge that is open."""

    def look_up(self, lookups: Sequence[Lookup]) -> Sequence[LookupOutcome]:
        """The outcome of each look-up, in order. Blocks; may be called from several threads at once."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class Shelved(Struct, frozen=True):
    """An open knowledge. `place`: its folder or URL; `identity`: the digest of what it held when the configuration was read."""

    place: str
    identity: str
    knowledge: Searched


class Library:
    """Open knowledges by the name that routes have for them. `wrong`: told of a search's own faults.

    A library made `after` another searches in its threads; `close` ends them for both.
    """

    def __init__(
        self,
        shelves: Mapping[str, Shelved],
        wrong: Callable[[Exception], None] = lambda error: None,
        after: "Library | None" = None,
    ) -> None:
        self.shelves = shelves
        self.wrong: Callable[[Exception], None] = wrong if after is None else after.wrong
        self._threads: ThreadPoolExecutor = ThreadPoolExecutor(AT_ONCE, "look-up") if after is None else after._threads

    async def look_up(self, lookup: Lookup, until: float | None) -> LookupOutcome:
        """The outcome of one look-up: what was found, or why nothing could be. `until`: when the turn's own time is up, on the
        monotonic clock."""
        shelved = self.shelves.get(lookup.knowledge)
        if shelved is None:
            return Failure("request", f"no knowledge {lookup.knowledge!r} is open")
        within_s = lookup.within_s if until is None else min(lookup.within_s, until - time.monotonic())
        if within_s <= 0:
            return Failure("timeout", "no time was left for a look-up", reason="deadline")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(within_s):
                (outcome,) = await loop.run_in_executor(self._threads, shelved.knowledge.look_up, (lookup,))
                return outcome
        except TimeoutError:
            return Failure("timeout", f"a look-up took longer than {within_s:.3g} s")
        except Exception as error:
            # Whatever a search does, the turn goes on: the model may ask again, or say that it does not know.
            self.wrong(error)
            return Failure("unavailable", f"the search failed ({type(error).__name__})")

    def close(self) -> None:
        """End the threads as soon as they are done, and let the knowledges go; what waits is not searched."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for shelved in self.shelves.values():
            shelved.knowledge.close()
