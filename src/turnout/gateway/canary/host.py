"""Keeps watch over all canaries of a gateway: reads what the ledger has got, and stops those whose candidate does worse."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from turnout.gateway.canary.watch import CanaryStatus, Key, Watch
from turnout.gateway.config import Config
from turnout.ledger.canaries import AT_ONCE, Stop
from turnout.ledger.metrics import CanaryCounts
from turnout.ledger.outcome import Reported
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.routing.canary.router import Canary
from turnout.routing.stacks import nested_in
from turnout.routing.subagents import ByAgent

LOOK_EVERY_S = 2.0
NONE: frozenset[str] = frozenset()


class Canaries:
    """The canaries of a configuration. `stopped`: the names of those that were stopped, by route; routers are told by it."""

    def __init__(self, config: Config, ledger: Ledger, wrong: Callable[[Exception], None] | None = None) -> None:
        self._ledger = ledger
        self._wrong = wrong
        self._watches = [Watch(name, canary) for name, canary in canaries_of(config)]
        self._turns = {watch.route: 0 for watch in self._watches}
        self._outcomes = 0
        self._stops: Mapping[tuple[str, str], Stop] = {}
        self._task: asyncio.Task[None] | None = None
        self._looking = threading.Lock()
        self.stopped: dict[str, frozenset[str]] = {}
        if self._watches:
            self._heed()

    def start(self) -> None:
        """Begin to watch; needs a running loop."""
        if self._watches:
            self._task = asyncio.create_task(self._for_ever(), name="canaries")

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

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
        self._fold()
        for watch in self._watches:
            watch.pass_to(now)
            if keep and watch.stop is not None and (watch.route, watch.canary.name) not in self._stops:
                self._ledger.stop_canary(watch.stop)
                said = "canary %s of route %s stopped, new lanes go to the incumbent: %s"
                logging.getLogger("turnout").warning(said, watch.canary.name, watch.route, watch.stop.reason)
        self._heed()

    def _fold(self) -> None:
        # Outcomes are fetched before turns, so that the lane of each one is known by the time it counts.
        outcomes = list(self._new_outcomes())
        for route in self._turns:
            for record in self._new_turns(route):
                for watch in self._watches:
                    if watch.route == route:
                        watch.turn(record)
        for reported in outcomes:
            for watch in self._watches:
                watch.outcome(reported, self._lane_of)

    def _new_outcomes(self) -> Iterator[Reported]:
        while True:
            batch = self._ledger.outcomes_after(self._outcomes)
            self._outcomes = batch.seq
            yield from batch.outcomes
            if len(batch.outcomes) < AT_ONCE:
                return

    def _new_turns(self, route: str) -> Iterator[TurnRecord]:
        while True:
            batch = self._ledger.turns_after(self._turns[route], route)
            self._turns[route] = batch.seq
            yield from batch.turns
            if len(batch.turns) < AT_ONCE:
                return

    def _lane_of(self, turn: str) -> Key | None:
        found = self._ledger.turn(turn)
        return None if found is None else (found.tenant, found.session, found.agent)

    def _heed(self) -> None:
        """Take over the stops that the ledger keeps, other processes' too."""
        stops = {(stop.route, stop.name): stop for stop in self._ledger.stopped_canaries()}
        by_route: dict[str, frozenset[str]] = {}
        for route, name in stops:
            by_route[route] = by_route.get(route, NONE) | {name}
        self._stops, self.stopped = stops, by_route

    def statuses(self) -> list[CanaryStatus]:
        """How each canary does."""
        return [watch.status(self._stops.get((watch.route, watch.canary.name))) for watch in self._watches]

    def counts(self) -> Iterator[CanaryCounts]:
        """Numbers for a scrape."""
        for status in self.statuses():
            evidence = {str(metric): figures.evidence / figures.limit for metric, figures in status.metrics.items()}
            yield CanaryCounts(status.route, status.name, status.state == "stopped", status.lanes, evidence)


def canaries_of(config: Config) -> Iterator[tuple[str, Canary]]:
    """All canaries with the routes they stand in."""
    for name, route in config.routes.items():
        for router in _all(route.router):
            if isinstance(router, Canary):
                yield name, router


def _all(router: object) -> Iterator[object]:
    yield router
    if isinstance(router, ByAgent):
        for policy in (router.main, router.subagents, router.background):
            if policy is not None:
                yield from _all(policy)
        return
    for inner, _ in nested_in(router):
        yield from _all(inner)
