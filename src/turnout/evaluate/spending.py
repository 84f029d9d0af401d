"""Who spent what of recorded turns: answers, cold caches, judges, discarded replies, failed attempts, replies nobody waited
for; and what one model alone would have cost. Pure but for the prices it is given.

Every known dollar of every call is in exactly one part. What a cold cache cost is taken out of the answer it made dearer: the
tokens that were warm and could not be read, at the rates they were charged by, less the rate of a read.
"""

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from turnout.conversation import Usage
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.rates import Rates, cost
from turnout.routing.core import ANSWERING

Kind: TypeAlias = Literal[
    "answers", "cold after a switch", "cold otherwise", "judges", "discarded", "failed", "hung up"
]
KINDS: dict[Kind, str] = {
    "answers": "replies that were served, without what cold caches cost",
    "cold after a switch": "what the model had not seen because another served meanwhile, beyond the price of a cached read",
    "cold otherwise": "the same where the cache had expired, or a client, agent, gateway or provider broke the prefix",
    "judges": "calls for an opinion: judges, classifiers, reviews",
    "discarded": "replies that were made and not served, such as drafts that a judge did not pass",
    "failed": "attempts that ended in an error and were paid all the same",
    "hung up": "replies whose client did not wait for the end",
}

RatesOf: TypeAlias = Callable[[str, str], Rates | None]
"""The rates of a target and its model; None = unpriced."""


class Spent(Struct, frozen=True):
    """What a turn cost, by kind, USD. `known_usd`: their sum; `gap`: whether a part of the turn's cost is not known.
    `cold_unknown`: whether tokens were lost whose price is not known, so that they are among the answers."""

    by: dict[Kind, float]
    known_usd: float
    gap: bool
    cold_unknown: bool = False


class Part(Struct, frozen=True):
    """A part of the spend. `name`: the target of answers, the purpose of judges' calls, else "". `turns` that have it."""

    kind: Kind
    name: str
    usd: float
    turns: int


class Alone(Struct, frozen=True):
    """What one target would have cost for the same served tokens, with its cache never left: tokens that a change of model
    made cold count as read from the cache. Over the `turns` where that and what was paid (`spent_usd`) are known."""

    target: str
    turns: int
    usd: float
    spent_usd: float

    @property
    def saved(self) -> float | None:
        """The share of it that routing saved; negative when routing cost more."""
        return 1.0 - self.spent_usd / self.usd if self.usd else None


class Spending(Struct, frozen=True):
    """The spend of some turns. `known_usd`: sum of `parts`. `unknown`: turns whose cost is incomplete; `cold_unknown`: turns
    with lost tokens of unknown price."""

    turns: int
    known_usd: float
    unknown: int
    cold_unknown: int
    parts: tuple[Part, ...]
    alone: Alone | None


class Account:
    """Adds up turns. `against`: the target that might have served alone, with its rates; "" = none."""

    def __init__(self, rates_of: RatesOf, against: str = "", rates: Rates | None = None) -> None:
        self._rates_of = rates_of
        self._against = against
        self._rates = rates
        self._parts: dict[tuple[Kind, str], list[float]] = {}
        self._turns = self._unknown = self._cold_unknown = self._compared = 0
        self._known = self._alone = self._paid = 0.0

    def add(self, record: TurnRecord) -> Spent:
        """Count a turn, and say what it cost."""
        found = spent(record, self._rates_of)
        self._turns += 1
        self._unknown += found.gap
        self._cold_unknown += found.cold_unknown
        self._known += found.known_usd
        for kind, name, usd in _named(record, found):
            part = self._parts.setdefault((kind, name), [0.0, 0])
            part[0] += usd
            part[1] += 1
        alone = alone_usd(record, self._rates)
        if alone is not None and record.cost_usd is not None:
            self._compared += 1
            self._alone += alone
            self._paid += record.cost_usd
        return found

    def spending(self) -> Spending:
        """What was added so far."""
        order = list(KINDS)
        parts = [Part(kind, name, usd, int(turns)) for (kind, name), (usd, turns) in self._parts.items()]
        parts.sort(key=lambda part: (order.index(part.kind), -part.usd, part.name))
        alone = Alone(self._against, self._compared, self._alone, self._paid) if self._compared else None
        return Spending(self._turns, self._known, self._unknown, self._cold_unknown, tuple(parts), alone)


def spending(
    records: Iterable[TurnRecord], rates_of: RatesOf, against: str = "", rates: Rates | None = None
) -> Spending:
    """Who spent what of these turns."""
    account = Account(rates_of, against, rates)
    for record in records:
        account.add(record)
    return account.spending()


def spent(record: TurnRecord, rates_of: RatesOf) -> Spent:
    """What a turn cost, by kind."""
    by: dict[Kind, float] = {}
    cold_unknown = False
    for call in record.calls:
        usd = call.cost_usd
        if not usd:
            continue
        kind = kind_of(call, record)
        if kind == "answers" and _lost(record, call):
            extra = _cold(record, call, rates_of(call.target, call.model))
            cold_unknown = extra is None
            if extra:
                # The ledger charged by the rates of its day; what was lost cannot have cost more than the call did.
                extra = min(extra, usd)
                cold: Kind = "cold after a switch" if _switched(record) else "cold otherwise"
                by[cold] = by.get(cold, 0.0) + extra
                usd -= extra
        by[kind] = by.get(kind, 0.0) + usd
    return Spent(by, sum(by.values()), record.cost_usd is None, cold_unknown)


def kind_of(call: Call, record: TurnRecord) -> Kind:
    """What a call's money was spent on."""
    if call.purpose not in ANSWERING:
        return "judges"
    if call.served:
        return "hung up" if record.ended == "client_gone" else "answers"
    return "failed" if call.error else "discarded"


def alone_usd(record: TurnRecord, rates: Rates | None) -> float | None:
    """What the served tokens of a turn would have cost at a target's rates, had it served the turns before as well; None where
    that is not known."""
    served = next((call for call in record.calls if call.served), None)
    if served is None or served.usage is None or rates is None:
        return None
    usage = served.usage
    if _lost(record, served) and _switched(record):
        usage = _read(usage, _lost(record, served))
    return cost(usage, rates).usd


def _named(record: TurnRecord, found: Spent) -> Iterable[tuple[Kind, str, float]]:
    """The parts of a turn with their names."""
    judged: dict[str, float] = {}
    for call in record.calls:
        if call.cost_usd and call.purpose not in ANSWERING:
            judged[call.purpose] = judged.get(call.purpose, 0.0) + call.cost_usd
    for kind, usd in found.by.items():
        if kind == "judges":
            yield from ((kind, name, part) for name, part in judged.items())
        elif usd:
            yield kind, record.target if kind == "answers" else "", usd


def _lost(record: TurnRecord, call: Call) -> int:
    """Tokens that were warm and that this call could not read."""
    use = record.cache
    return use.lost_tokens if use is not None and call.served and use.target == call.target and use.broke else 0


def _switched(record: TurnRecord) -> bool:
    return record.cache is not None and record.cache.cause == "switch"


def _cold(record: TurnRecord, call: Call, rates: Rates | None) -> float | None:
    """What the lost tokens cost beyond a read from the cache; None where that is not known."""
    if call.usage is None:
        return None
    paid, warm = cost(call.usage, rates).usd, cost(_read(call.usage, _lost(record, call)), rates).usd
    return None if paid is None or warm is None else max(paid - warm, 0.0)


def _read(usage: Usage, tokens: int) -> Usage:
    """The same prompt with so many more of its tokens read from the cache: those that were written first, then the others."""
    write, plain = usage.cache_write_tokens or 0, usage.input_tokens or 0
    written = min(tokens, write)
    sent = min(tokens - written, plain)
    long = usage.cache_write_1h_tokens
    return replace(
        usage,
        input_tokens=None if usage.input_tokens is None else plain - sent,
        cache_read_tokens=(usage.cache_read_tokens or 0) + written + sent,
        cache_write_tokens=None if usage.cache_write_tokens is None else write - written,
        cache_write_1h_tokens=None if long is None else min(long, write - written),
    )
