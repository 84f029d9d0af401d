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
        self._until: OrderedDict[tuple[str, str], float] = OrderedDict()

    def enter(self, key: tuple[str, str], began: float) -> bool:
        """Whether a turn that `began` then (monotonic seconds) may make the call: no turn that overlaps it has made it."""
        if began <= self._until.get(key, -math.inf):
            return False
        self._until[key] = math.inf
        self._until.move_to_end(key)
        while len(self._until) > REMEMBERED_AT_MOST:
            self._until.popitem(last=False)
        return True

    def leave(self, key: tuple[str, str], now: float, remembered: bool) -> None:
        """The turn that made the call is over. `remembered`: what came of it is known to later turns; else they may make it."""
        if remembered:
            self._until[key] = now
        else:
            self._until.pop(key, None)
