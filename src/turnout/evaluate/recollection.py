"""What a router would remember of a lane, folded from its own decisions, turn after turn of a ledger."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from turnout.ledger.trace import TurnRecord
from turnout.routing.core import Decision, State
from turnout.routing.spending import KEY as SPENDING
from turnout.routing.spending import Spending
from turnout.sessions.store import folded, revived
from turnout.signals import Signals

KEPT_AT_MOST = 32
"""Turns of a lane that a conversation may be taken back to."""
States: TypeAlias = Mapping[str, State]
Position: TypeAlias = tuple[int, int, int]


def position(signals: Signals) -> Position:
    """Where in its conversation a turn stands: the user's newest words, steps since, results in all. Later turns stand higher."""
    return (-1 if signals.said_at is None else signals.said_at, signals.depth, signals.results)


def _goes_on(before: Position, after: Position) -> bool:
    """Whether a conversation at `after` may have been at `before`: no results were taken away on the way."""
    return before < after and before[2] <= after[2]


class Recollection:
    """The states of one lane after each of its turns, the newest `KEPT_AT_MOST`.

    A turn goes on from the newest one that stands before it in the conversation: one that is sent again counts once, and one that
    goes back takes up what was remembered there. That the conversation up to there says the same is taken for granted: a ledger
    need not hold it. A summary in place of the history goes on from the last turn before it.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Position, States | Callable[[], States]]] = []
        self._base: States | Callable[[], States] = {}
        self._since: int | None = None

    @property
    def fresh(self) -> bool:
        """Whether no turn of the lane was seen yet."""
        return not self._kept and self._since is None

    def before(self, signals: Signals) -> States:
        """The states that a turn with these signals reads."""
        since = (signals.since_compaction or 0) if signals.compacted else None
        if since is not None and (self._since is None or since < self._since):
            self._base = self._kept[-1][1] if self._kept else {}
            self._kept.clear()
        self._since = since
        at = position(signals)
        # What stood further on has been taken back, whether or not this turn comes to remember anything.
        self._kept = [one for one in self._kept if one[0] == at or _goes_on(one[0], at)]
        found = next((states for stood, states in reversed(self._kept) if _goes_on(stood, at)), None)
        if found is None:
            found = self._base if signals.compacted else {}
        return found() if callable(found) else found

    def keep(self, signals: Signals, states: States | Callable[[], States]) -> None:
        """The states after that turn, or what makes them."""
        self._kept.append((position(signals), states))
        if len(self._kept) > KEPT_AT_MOST:
            del self._kept[0]


def as_recorded(record: TurnRecord, decision: Decision, spending: Spending) -> Callable[[], States]:
    """The lane's states after a turn of the router's own, made when they are wanted. `spending`: what caches hold by then."""
    return lambda: {**folded(revived(record.memory), decision.remember), SPENDING: spending}
