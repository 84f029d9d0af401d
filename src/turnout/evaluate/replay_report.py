"""What a replay found: how many turns came out the same, where another target was chosen, and what that would have cost."""

from collections import Counter

from msgspec import Struct

from turnout.evaluate.replaying import REASONS, Replayed
from turnout.ledger.answered import decided_target
from turnout.routing.beside import Flip
from turnout.routing.spending import ASSUMED

SHOWN_AT_MOST = 20
"""Differences that are kept whole."""


class Differing(Struct, frozen=True):
    """A turn that its own router decides otherwise now, and in what."""

    turn: str
    session: str
    differences: tuple[str, ...]


class Own(Struct, frozen=True):
    """Turns that the replayed router decided itself. `exact`: those that came out the same. `different`: the first others."""

    turns: int
    exact: int
    different: tuple[Differing, ...]


class FlipCount(Struct, frozen=True):
    """How many turns would have gone from one target to another."""

    was: str
    now: str
    turns: int


class Predicted(Struct, frozen=True):
    """What the turns would have cost. USD; `turns`: those of which both sides are known.

    `recorded_usd`: what was charged for them. `live_usd`: what their answers are reckoned to cost the way they went, calls made
    to decide included, and `candidate_usd` the same for the replayed router; compare these two. `live_aside_usd`,
    `candidate_aside_usd`: of that, the calls made to decide. `saved_usd`, `saved_share`: of the one against the other, negative
    where it would have cost more; None of no turns. `unpriced`: replayed turns left out because a price or a usage is not known.
    """

    turns: int
    unpriced: int
    recorded_usd: float | None
    live_usd: float | None
    candidate_usd: float | None
    live_aside_usd: float | None
    candidate_aside_usd: float | None
    saved_usd: float | None
    saved_share: float | None
    assumptions: tuple[str, ...] = ASSUMED


class ReplayReport(Struct, frozen=True):
    """A replay. `replayed`: turns that could be decided; `unsupported`: the others, by reason. `agreed`: same target as was
    chosen. `was`, `now`: turns by target. `flips`: the first ones, as many as were wanted."""

    turns: int
    replayed: int
    unsupported: dict[str, int]
    own: Own
    agreed: int
    agreement: float | None
    flipped: tuple[FlipCount, ...]
    was: dict[str, int]
    now: dict[str, int]
    cost: Predicted
    flips: tuple[Flip, ...]


class Tally:
    """Adds up a replay. `flips`: how many flips to keep."""

    def __init__(self, flips: int = SHOWN_AT_MOST) -> None:
        self._most = flips
        self._turns = self._own = self._exact = self._agreed = self._compared = self._unpriced = 0
        self._unsupported: Counter[str] = Counter()
        self._different: list[Differing] = []
        self._flipped: Counter[tuple[str, str]] = Counter()
        self._was: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        self._usd = [0.0] * 5
        self._flips: list[Flip] = []

    def add(self, one: Replayed) -> None:
        """One turn."""
        self._turns += 1
        if one.decision is None:
            self._unsupported[one.reason or "call"] += 1
            return
        was, now = decided_target(one.record), str(one.decision.target)
        self._was[was] += 1
        self._now[now] += 1
        self._agreed += one.agrees
        if one.own:
            self._own += 1
            self._exact += not one.different
            if one.different and len(self._different) < SHOWN_AT_MOST:
                self._different.append(Differing(one.record.id, one.record.session, one.different))
        if not one.agrees:
            self._flipped[was, now] += 1
            if len(self._flips) < self._most and one.flip is not None:
                self._flips.append(one.flip)
        self._charge(one)

    def _charge(self, one: Replayed) -> None:
        price, aside, live_aside = one.price, one.aside_usd, one.live_aside_usd
        if price is None or price.live_usd is None or price.own_usd is None or aside is None or live_aside is None:
            self._unpriced += 1
            return
        self._compared += 1
        recorded = sum(call.cost_usd or 0.0 for call in one.record.calls)
        sums = (recorded, price.live_usd + live_aside, price.own_usd + aside, live_aside, aside)
        self._usd = [total + usd for total, usd in zip(self._usd, sums, strict=True)]

    def report(self) -> ReplayReport:
        """What was added so far."""
        recorded, live, own, live_aside, aside = self._usd
        replayed = self._turns - self._unsupported.total()
        cost = Predicted(self._compared, self._unpriced, None, None, None, None, None, None, None)
        if self._compared:
            saved = live - own
            share = saved / live if live else None
            cost = Predicted(self._compared, self._unpriced, recorded, live, own, live_aside, aside, saved, share)
        return ReplayReport(
            self._turns,
            replayed,
            {reason: n for reason in REASONS if (n := self._unsupported[reason])},
            Own(self._own, self._exact, tuple(self._different)),
            self._agreed,
            self._agreed / replayed if replayed else None,
            tuple(FlipCount(*pair, n) for pair, n in self._flipped.most_common()),
            dict(self._was.most_common()),
            dict(self._now.most_common()),
            cost,
            tuple(self._flips),
        )
