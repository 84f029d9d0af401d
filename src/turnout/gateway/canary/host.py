"""Keeps watch over all canaries of a gateway: reads what the ledger has got, and stops those whose candidate does worse."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from turnout.gateway.canary.reading import Reading
from turnout.gateway.canary.watch import CanaryStatus, Watch
from turnout.gateway.config import Config
from turnout.gateway.nested import nested
from turnout.ledger.canaries import Place, Stop
from turnout.ledger.metrics import CanaryCounts
from turnout.ledger.store import Ledger
from turnout.routing.canary.router import Canary

LOOK_EVERY_S = 2.0
KEEP_EVERY_S = 60.0
"""After so long what is known is kept; a process that is killed reads again what came after."""
NONE: frozenset[str] = frozenset()


class Canaries:
    """The canaries of a configuration. `stopped`: the names of those that were stopped, by route; routers are told by it."""

    def __init__(self, config: Config, ledger: Ledger, wrong: Callable[[Exception], None] | None = None) -> None:
        self._ledger = ledger
        self._wrong = wrong
        self._readings: list[Reading] = []
        self._fresh: list[Reading] = []
        self._settled = Place()
        self._kept_at = time.monotonic()
        self._stops: Mapping[tuple[str, str], Stop] = {}
        self._task: asyncio.Task[None] | None = None
        self._looking = threading.Lock()
        self.stopped: dict[str, frozenset[str]] = {}
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Watch the canaries of `config` from now on; those that stay as they are keep what they have seen. Blocks."""
        with self._looking:
            wanted = list(canaries_of(config))
            stay = [reading for reading in self._readings if (reading.watch.route, reading.watch.canary) in wanted]
            for gone in self._readings:
                if gone not in stay:
                    gone.keep(self._ledger)
            seen = [(reading.watch.route, reading.watch.canary) for reading in stay]
            new = [Reading(Watch(route, canary)) for route, canary in wanted if (route, canary) not in seen]
            self._fresh = [reading for reading in self._fresh if reading in stay] + new
            self._readings = stay + new
            if self._readings:
                self._heed()

    def start(self) -> None:
        """Begin to watch, where there is something to watch that is not watched yet; needs a running loop."""
        if self._readings and self._task is None:
            self._task = asyncio.create_task(self._for_ever(), name="canaries")

    async def close(self) -> None:
        """Stop watching, and keep what is known by now."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            try:
                await asyncio.to_thread(self.keep)
            except Exception as error:
                # Without it the next start reads more.
                if self._wrong is not None:
                    self._wrong(error)

    async def _for_ever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await asyncio.to_thread(self.look, time.time())
            except Exception as error:
                # Without a ledger there is nothing to see; turns go on.
                if self._wrong is not None:
                    self._wrong(error)

    def look(self, now: float, keep: bool = True) -> None:
        """Fold what is new in the ledger, and keep the stops that follow from it. Blocks.

        `keep`: False only looks, and stores no stop."""
        with self._looking:
            self._look(now, keep)

    def _look(self, now: float, keep: bool) -> None:
        self._resume()
        self._fold(keep)
        for reading in self._readings:
            watch = reading.watch
            watch.pass_to(now)
            if keep and watch.stop is not None and (watch.route, watch.canary.name) not in self._stops:
                self._ledger.stop_canary(watch.stop)
                said = "canary %s of route %s stopped, new lanes go to the incumbent: %s"
                logging.getLogger("turnout").warning(said, watch.canary.name, watch.route, watch.stop.reason)
        self._heed()
        if keep and time.monotonic() - self._kept_at >= KEEP_EVERY_S:
            self._keep()

    def keep(self) -> None:
        """Keep what is known in the ledger, for the next start. Blocks."""
        with self._looking:
            self._keep()

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        for reading in self._readings:
            reading.keep(self._ledger)

    def _resume(self) -> None:
        while self._fresh:
            self._fresh[-1].resume(self._ledger)
            self._fresh.pop()

    def _fold(self, keep: bool) -> None:
        newest = self._ledger.newest()
        # What other writers have begun to store may be seen only after what has a higher number: one look later it is there.
        until = newest if self._ledger.stores_in_order or not keep else self._settled
        self._settled = newest
        for reading in self._readings:
            reading.on(self._ledger, until)

    def _heed(self) -> None:
        """Take over the stops that the ledger keeps, other processes' too."""
        stops = {(stop.route, stop.name): stop for stop in self._ledger.stopped_canaries()}
        by_route: dict[str, frozenset[str]] = {}
        for route, name in stops:
            by_route[route] = by_route.get(route, NONE) | {name}
        self._stops, self.stopped = stops, by_route

    def statuses(self) -> list[CanaryStatus]:
        """How each canary does."""
        watches = [reading.watch for reading in self._readings]
        return [watch.status(self._stops.get((watch.route, watch.canary.name))) for watch in watches]

    def counts(self) -> Iterator[CanaryCounts]:
        """Numbers for a scrape."""
        for status in self.statuses():
            evidence = {str(metric): figures.evidence / figures.limit for metric, figures in status.metrics.items()}
            yield CanaryCounts(status.route, status.name, status.state == "stopped", status.lanes, evidence)


def canaries_of(config: Config) -> Iterator[tuple[str, Canary]]:
    """All canaries with the routes they stand in."""
    for name, route in config.routes.items():
        for _, router in nested(route.router, ("routes", name)):
            if isinstance(router, Canary):
                yield name, router
