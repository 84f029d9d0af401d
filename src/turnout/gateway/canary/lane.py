"""A lane of a canary while it runs, and what it amounts to when it is over."""

from turnout.ledger.trace import TurnRecord
from turnout.routing.canary.watching import Metric


class LaneSoFar:
    """The turns of one lane, folded. `candidate`: its arm. `share`: with which it was drawn. `at`: of its newest turn."""

    __slots__ = (
        "_cost",
        "_errors",
        "_prompt",
        "_read",
        "_repeated",
        "_seconds",
        "_timed",
        "_uncleared",
        "_unheard",
        "at",
        "candidate",
        "share",
    )

    def __init__(self, candidate: bool, share: float) -> None:
        self.candidate = candidate
        self.share = share
        self.at = 0.0
        self._errors = False
        self._unheard = False
        self._uncleared: bool | None = None
        self._repeated: bool | None = None
        self._cost: float | None = 0.0
        self._seconds = 0.0
        self._timed = 0
        self._read: int | None = 0
        self._prompt = 0

    def add(self, record: TurnRecord) -> None:
        """One more turn."""
        self.at = max(self.at, record.at)
        self._errors = self._errors or record.ended in ("error", "cut")
        self._unheard = self._unheard or any(call.unheard for call in record.calls)
        if record.signals is not None:
            course = record.signals.course
            self._uncleared = course is not None and course.troubled
            self._repeated = bool(self._repeated) or (course is not None and bool(course.failing))
        if self._cost is not None:
            # What a lane costs is known only when all of it is.
            self._cost = None if record.cost_usd is None else self._cost + record.cost_usd
        if record.ended == "ok":
            self._seconds += record.total_s
            self._timed += 1
        usage = record.usage
        if usage is not None and usage.prompt_tokens is not None:
            self._prompt += usage.prompt_tokens
            if self._read is not None:
                self._read = None if usage.cache_read_tokens is None else self._read + usage.cache_read_tokens

    def values(self) -> dict[Metric, float]:
        """What the lane shows, by metric: 1 or 0 for a failure or none, USD, seconds, a share. What is unknown is left out."""
        found: dict[Metric, float] = {"errors": float(self._errors), "judges": float(self._unheard)}
        if self._uncleared is not None and self._repeated is not None:
            found["uncleared"], found["repeated"] = float(self._uncleared), float(self._repeated)
        if self._cost is not None:
            found["cost"] = self._cost
        if self._timed:
            found["latency"] = self._seconds / self._timed
        if self._read is not None and self._prompt:
            found["cache"] = min(1.0, self._read / self._prompt)
        return found
