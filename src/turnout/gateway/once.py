"""Calls that only one of several concurrent turns of a lane may make."""

import math
from collections import OrderedDict

REMEMBERED_AT_MOST = 4096


class Once:
    """Who makes such a call now, and until when it was made last.

    Nobody waits here: a turn that comes second goes on without the call. Known to this process only: replicas do not hold one
    another back.
    """

    def __init__(self) -> None:
        self._making: set[tuple[str, str]] = set()
        self._made: OrderedDict[tuple[str, str], float] = OrderedDict()

    def enter(self, key: tuple[str, str], began: float) -> bool:
        """Whether a turn that `began` then (monotonic seconds) may make the call: no turn that overlaps it has made it."""
        if key in self._making or began <= self._made.get(key, -math.inf):
            return False
        self._making.add(key)
        return True

    def leave(self, key: tuple[str, str], now: float, remembered: bool) -> None:
        """The turn that made the call is over. `remembered`: what came of it is known to later turns; else they may make it."""
        self._making.discard(key)
        if remembered:
            self._made[key] = now
            self._made.move_to_end(key)
            while len(self._made) > REMEMBERED_AT_MOST:
                self._made.popitem(last=False)
