"""What routing a turn saved, against sending it straight to the route's best target. It may be less than nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from turnout.cli import output

if TYPE_CHECKING:
    from turnout.cli.why import Option
    from turnout.gateway.config import Config
    from turnout.ledger.trace import TurnRecord


class Saving(Struct, frozen=True):
    """`against`: the target that turns of the route fall to. `usd`: what the served tokens cost there, less all that the turn
    cost, discarded replies and judges included; negative when routing cost more than it saved."""

    against: str
    usd: float

    @property
    def sentence(self) -> str:
        """The saving for people."""
        if self.usd < 0:
            said = f"saving: -{output.usd(-self.usd)}; {self.against} alone would have been cheaper"
        else:
            said = f"saving: {output.usd(self.usd)} against {self.against} alone"
        return f"{said} (assumed: the same tokens, cached as reported, at today's prices)"


def saving(record: "TurnRecord", prices: Sequence["Option"], config: "Config | None") -> Saving | None:
    """The saving of a turn; None where its cost or the other price is not known, or nothing was routed."""
    route = config.routes.get(record.route) if config is not None else None
    if route is None or record.cost_usd is None or not any(call.served for call in record.calls):
        return None
    alone = next((option for option in prices if option.target == route.falls_to), None)
    if alone is None or alone.as_cached is None or (alone.served and len(record.calls) == 1):
        return None
    return Saving(alone.target, alone.as_cached - record.cost_usd)
