"""A lane of a canary while it runs, and what it amounts to when it is over."""

from msgspec import Struct

from turnout.ledger.trace import TurnRecord
from turnout.routing.canary.watching import Metric


class Drawn(Struct, frozen=True, array_like=True):
    """The arm of a lane, and the share with which it was drawn."""

    candidate: bool
    share: float


class LaneSoFar(Struct):
    """The turns of one lane, folded. `at`: of its newest turn. `cost` None once it is unknown, `read` likewise (tokens read from
    the cache of `prompt`). `seconds` of `timed` turns. `uncleared`, `repeated`: None while no signals are known."""

    drawn: Drawn
    at: float = 0.0
    errors: bool = False
    unheard: bool = False
    uncleared: bool | None = None
    repeated: bool | None = None
    cost: float | None = 0.0
    seconds: float = 0.0
    timed: int = 0
    read: int | None = 0
    prompt: int = 0

    def add(self, record: TurnRecord) -> None:
        """One more turn."""
        self.at = max(self.at, record.at)
        self.errors = self.errors or record.ended in ("error", "cut")
        self.unheard = self.unheard or any(call.unheard for call in record.calls)
        if record.signals is not None:
            course = record.signals.course
            self.uncleared = course is not None and course.troubled
            self.repeated = bool(self.repeated) or (course is not None and bool(course.failing))
        if self.cost is not None:
            # What a lane costs is known only when all of it is.
            self.cost = None if record.cost_usd is None else self.cost + record.cost_usd
        if record.ended == "ok":
            self.seconds += record.total_s
            self.timed += 1
        usage = record.usage
        if usage is not None and usage.prompt_tokens is not None:
            self.prompt += usage.prompt_tokens
            if self.read is not None:
                self.read = None if usage.cache_read_tokens is None else self.read + usage.cache_read_tokens

    def values(self) -> dict[Metric, float]:
        """What the lane shows, by metric: 1 or 0 for a failure or none, USD, seconds, a share. What is unknown is left out."""
        found: dict[Metric, float] = {"errors": float(self.errors), "judges": float(self.unheard)}
        if self.uncleared is not None and self.repeated is not None:
            found["uncleared"], found["repeated"] = float(self.uncleared), float(self.repeated)
        if self.cost is not None:
            found["cost"] = self.cost
        if self.timed:
            found["latency"] = self.seconds / self.timed
        if self.read is not None and self.prompt:
            found["cache"] = min(1.0, self.read / self.prompt)
        return found
