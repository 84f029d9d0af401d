"""All that a review has to go by, and the part of it that belongs to a period. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.review import evidence
from turnout.evaluate.review.conditions import Conditions, Source
from turnout.evaluate.review.evidence import Evidence, Lane, Row
from turnout.evaluate.review.measures import between


class Told(Struct, frozen=True):
    """Outcomes of two arms: the one model, and the router or the other model. `reason`: why there are none."""

    outcomes: Sequence[Outcome] = ()
    arms: tuple[Arm, Arm] | None = None
    reason: str = ""


class Material(Struct, frozen=True):
    """`turns`: of the route. `lanes`: of its canary. `trials`, `logged`: outcomes."""

    conditions: Conditions
    turns: Sequence[Row] = ()
    lanes: Sequence[Lane] = ()
    trials: Told = Told()
    logged: Told = Told()

    @property
    def first(self) -> float | None:
        """When the oldest record was made; None where none says."""
        moments = [row.at for row in self.turns if row.at is not None]
        moments += [one.at for told in (self.trials, self.logged) for one in told.outcomes if one.at is not None]
        return min(moments, default=None)

    def evidence(self, source: Source, start: float, end: float) -> Evidence:
        """What there is of a source in a period (Unix seconds). Outcomes that do not say when are in every one."""
        if source == "turns":
            return evidence.turns(between(self.turns, start, end))
        if source == "canary":
            assert self.conditions.canary is not None  # the file has no such condition otherwise
            return evidence.canary([one for one in self.lanes if start <= one.at < end], self.conditions.canary)
        told = self.trials if source == "trials" else self.logged
        if told.arms is None:
            return Evidence(source, "run", evidence.COMPARED, (), told.reason or "no outcome is recorded")
        outcomes = [one for one in told.outcomes if one.at is None or start <= one.at < end]
        if source == "trials":
            return evidence.trials(outcomes, *told.arms)
        assert self.conditions.logged is not None
        return evidence.logged(outcomes, *told.arms, self.conditions.logged)
