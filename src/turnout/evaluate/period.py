"""A period of a ledger, as `turnout report` tells it: who spent what, and its sessions. Pure but for the prices."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from turnout.evaluate.spending import KINDS, Account, RatesOf, Spending
from turnout.evaluate.timeline import Lanes, Session, Step, sessions
from turnout.ledger.trace import TurnRecord
from turnout.pricing.rates import Rates

ASSUMED = (
    "assumed: the target alone would have been sent the tokens that were served, with the cached shares that were reported, "
    "those cold after a switch read from the cache too, at today's prices; it would have taken as many turns"
)


class Period(Struct, frozen=True):
    """`source`: which ledger, for people. `first`, `last`: of the turns, ISO 8601, UTC, "" without turns. `definitions`: of the
    kinds of spend. `assumed`: behind `spending.alone`."""

    source: str
    first: str
    last: str
    spending: Spending
    sessions: tuple[Session, ...]
    switches: int
    failures: int
    definitions: dict[str, str]
    assumed: str


class Against(Struct, frozen=True):
    """The target that might have served alone, and its rates; None = unpriced."""

    target: str
    rates: Rates | None


def period(
    records: Iterable[TurnRecord],
    source: str,
    rates_of: RatesOf,
    against: Against | None = None,
    tiers: Mapping[tuple[str, str], str] | None = None,
    told: Callable[[int], None] | None = None,
) -> tuple[Period, tuple[Step, ...]]:
    """The figures of these turns, and each turn. `tiers`: for (route, target) the tier; `told`: how many turns are done."""
    account = Account(rates_of, against.target, against.rates) if against is not None else Account(rates_of)
    lanes = Lanes(tiers or {})
    ordered = sorted(records, key=lambda record: (record.at, record.id))
    steps = []
    for number, record in enumerate(ordered, 1):
        steps.append(lanes.step(record, account.add(record)))
        if told is not None and number % 500 == 0:
            told(number)
    found = Period(
        source=source,
        first=steps[0].at if steps else "",
        last=steps[-1].at if steps else "",
        spending=account.spending(),
        sessions=sessions(steps),
        switches=sum(step.switched for step in steps),
        failures=sum(step.failed for step in steps),
        definitions={str(kind): said for kind, said in KINDS.items()},
        assumed=ASSUMED,
    )
    return found, tuple(steps)
