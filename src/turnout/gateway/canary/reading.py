"""Reads the ledger for the watch of a canary, and keeps how far it is, so that a restart goes on from there."""

import logging
import time
from collections.abc import Iterator

from turnout.gateway.canary.watch import Key, Watch
from turnout.ledger.canaries import AT_ONCE, Checkpoint, Place
from turnout.ledger.outcome import Reported
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord


class Reading:
    """A watch and how far it has read."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._place = Place()
        self._kept = Place()

    def resume(self, ledger: Ledger) -> None:
        """Go on from what was kept, unless the settings have changed since: then the evidence is another, and all is read."""
        watch = self.watch
        found = ledger.kept_watch(watch.route, watch.canary.name)
        if found is None or found.settings != watch.settings:
            return
        try:
            watch.resume(found.state)
        except ValueError as error:
            said = "canary %s of route %s: the ledger is read from its beginning: %s"
            logging.getLogger("turnout").warning(said, watch.canary.name, watch.route, error)
            return
        self._place = self._kept = found.place

    def on(self, ledger: Ledger, until: Place) -> None:
        """Fold what is stored up to `until`. Every turn of an outcome up to there must be up to there too."""
        outcomes = list(self._outcomes(ledger, until.outcomes))
        for record in self._turns(ledger, until.turns):
            self.watch.turn(record)
        for reported in outcomes:
            self.watch.outcome(reported, lambda turn: _lane_of(ledger, turn))
        self._place = Place(max(until.turns, self._place.turns), max(until.outcomes, self._place.outcomes))

    def keep(self, ledger: Ledger) -> None:
        """Keep what is known, where that is more than was kept."""
        if self._place != self._kept:
            watch = self.watch
            name, settings = watch.canary.name, watch.settings
            ledger.keep_watch(Checkpoint(watch.route, name, settings, time.time(), self._place, watch.kept()))
            self._kept = self._place

    def _outcomes(self, ledger: Ledger, until: int) -> Iterator[Reported]:
        seq = self._place.outcomes
        while True:
            batch = ledger.outcomes_after(seq, until)
            seq = batch.seq
            yield from batch.outcomes
            if len(batch.outcomes) < AT_ONCE:
                return

    def _turns(self, ledger: Ledger, until: int) -> Iterator[TurnRecord]:
        while True:
            batch = ledger.turns_after(self._place.turns, self.watch.route, until)
            yield from batch.turns
            # Should the next batch not come, these are not to be folded again. Outcomes are: one counts once.
            self._place = Place(batch.seq, self._place.outcomes)
            if len(batch.turns) < AT_ONCE:
                return


def _lane_of(ledger: Ledger, turn: str) -> Key | None:
    found = ledger.turn(turn)
    return None if found is None else (found.tenant, found.session, found.agent)
