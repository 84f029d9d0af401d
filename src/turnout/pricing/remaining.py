"""How many turns a session still has, by how many it has had: a life table over recorded sessions.

For every turn number, the chance of ending there is the sessions that ended at it over those that reached it (the product
of what is left is the Kaplan-Meier estimate). Sessions that were cut off, or go on still, count as long as they were seen.
Turn numbers are pooled into bands, since single turns see few ends.
"""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

BANDS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90)
"""First turn of each band; the last one goes on for ever."""
HORIZON = 200
"""Turns ahead that are looked at."""


class Band(Struct, frozen=True):
    """Turns from `first` up to the next band: how often a session was at one of them, and how often it ended there."""

    first: int
    reached: int
    ended: int


class Remaining(Struct, frozen=True):
    """How sessions go on. `bands`: by turn number, ascending, the first at turn 1; empty = nothing is known."""

    bands: tuple[Band, ...] = ()

    @property
    def sessions(self) -> int:
        """How many sessions that ended it rests on."""
        return sum(band.ended for band in self.bands)

    def ends_at(self, turn: int) -> float:
        """The chance that a session which has come to this turn (from 1) has no further one. Unknown counts as never."""
        found = next((band for band in reversed(self.bands) if band.first <= turn and band.reached), None)
        return found.ended / found.reached if found is not None else 0.0

    def stays(self, turn: int, at_most: int = HORIZON) -> tuple[float, ...]:
        """For i = 0, 1, ...: the chance that more than i turns come, the one with this number (from 1) included."""
        return _stays(self, max(turn, 1), at_most)

    def expected(self, turn: int, at_most: int = HORIZON) -> float:
        """How many turns are to be expected, the one with this number included; no more than `at_most` are counted."""
        return sum(self.stays(turn, at_most))


@lru_cache(maxsize=1024)
def _stays(remaining: Remaining, turn: int, at_most: int) -> tuple[float, ...]:
    chances, chance = [], 1.0
    for number in range(turn, turn + at_most):
        chances.append(chance)
        chance *= 1.0 - remaining.ends_at(number)
        if chance < 1e-4:
            break
    return tuple(chances)


def fit(sessions: Iterable[tuple[int, bool]], bands: tuple[int, ...] = BANDS) -> Remaining:
    """The table of recorded sessions: of each its turns, and whether it ended there (False: it was cut off or goes on)."""
    reached, ended = [0] * len(bands), [0] * len(bands)
    following = (*bands[1:], None)
    for turns, over in sessions:
        if turns < 1:
            continue
        for index, (first, after) in enumerate(zip(bands, following, strict=True)):
            if turns < first:
                break
            last = turns if after is None else min(turns, after - 1)
            reached[index] += last - first + 1
            ended[index] += over and last == turns
    return Remaining(tuple(Band(*row) for row in zip(bands, reached, ended, strict=True)))


CODING = Remaining(
    (
        Band(1, 286, 0),
        Band(2, 286, 0),
        Band(3, 571, 0),
        Band(5, 847, 7),
        Band(8, 1094, 5),
        Band(12, 1592, 9),
        Band(18, 2127, 50),
        Band(27, 2103, 102),
        Band(40, 1200, 74),
        Band(60, 485, 25),
        Band(90, 131, 6),
    )
)
"""Coding agents: 251 runs of mini-swe-agent on SWE-bench Verified (github.com/gruckion/mini-swe-agent, MIT), 23 aider
histories (Aider-AI/aider, Apache-2.0) and 12 sessions of Claude Code, Codex and opencode (link-assistant/hive-mind and agent,
Unlicense). A turn is a call of the model. Sessions whose end is not in the recording count as cut off."""

SERVICE = Remaining(
    (
        Band(1, 100, 0),
        Band(2, 100, 0),
        Band(3, 198, 4),
        Band(5, 257, 24),
        Band(8, 266, 16),
        Band(12, 250, 34),
        Band(18, 88, 18),
        Band(27, 11, 4),
        Band(40, 0, 0),
        Band(60, 0, 0),
        Band(90, 0, 0),
    )
)
"""Agents that serve a customer by calling business functions: 100 runs of tau-bench, airline (sierra-research/tau-bench,
MIT)."""

SINGLE = Remaining((Band(1, 1, 1),))
"""Titles, summaries and other calls that nothing follows."""


def usual(kind: str) -> Remaining:
    """What to expect of an agent of this kind (`AgentInfo.kind`) before own sessions have been counted."""
    return SINGLE if kind == "background" else CODING
