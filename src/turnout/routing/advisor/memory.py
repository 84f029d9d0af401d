"""What an advisor gate remembers of an agent: reviews given, the checkpoint spent, consults that failed."""

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from turnout.routing.core import State

Occasion: TypeAlias = Literal["done", "stall"]
REFUNDS = 3
"""How many failed consults are given back before nothing is reviewed any more."""


class Reviewed(Struct, frozen=True, tag="reviewed", tag_field="event"):
    """The advisor was consulted. `occasion`: a claim to be done, or a stall. `failed` gives the consult back."""

    turn: str
    occasion: Occasion
    outcome: Literal["approved", "redo", "failed"]


class AdvisorBudget(State, frozen=True):
    """`reviews`: claims reviewed. `stalled`: the checkpoint for stalls is spent. `refunds`: consults that failed."""

    events: ClassVar[tuple[type[Struct], ...]] = (Reviewed,)

    reviews: int = 0
    stalled: bool = False
    refunds: int = 0

    def after(self, event: Any) -> "AdvisorBudget":
        """The budget after a consult."""
        if event.outcome == "failed":
            return AdvisorBudget(self.reviews, self.stalled, self.refunds + 1)
        if event.occasion == "stall":
            return AdvisorBudget(self.reviews, True, self.refunds)
        return AdvisorBudget(self.reviews + 1, self.stalled, self.refunds)

    @property
    def closed(self) -> bool:
        """Whether so many consults failed that no more are tried."""
        return self.refunds >= REFUNDS
