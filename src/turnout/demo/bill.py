"""What the sessions cost as routed, and with one model only: from the ledger, turn by turn."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from turnout.ledger.trace import TurnRecord

CAPTION = (
    "All three runs were really sent through the gateway and are priced from its ledger at the snapshot's list prices of "
    "{efficient} and {capable}; token counts are estimates of the scripted models. Each run has prompt caches of its own that "
    "begin cold and are never left long enough to expire. All runs play the same recorded replies: whether the efficient "
    "model alone would have solved the tasks, this cannot show."
)


class Line(Struct, frozen=True):
    """One run. Tokens: over all turns; `cached`, `written`: the part of the prompt read from and written to a cache.
    `cost_usd`: None when the cost of any turn is not known. `capable_turns`: turns the capable model served."""

    label: str
    turns: int
    capable_turns: int
    prompt: int
    cached: int
    written: int
    output: int
    cost_usd: float | None


class Bill(Struct, frozen=True):
    """The run as routed beside the two with one model. `saved_usd`, `saved_share`: against all-capable; negative when
    routing cost more."""

    routed: Line
    all_capable: Line
    all_efficient: Line
    saved_usd: float | None
    saved_share: float | None
    caption: str


def line(label: str, records: Iterable[TurnRecord], capable: Sequence[str]) -> Line:
    """A run's line. `capable`: names of the capable targets."""
    turns = list(records)
    usages = [record.usage for record in turns if record.usage is not None]
    costs = [record.cost_usd for record in turns]
    return Line(
        label=label,
        turns=len(turns),
        capable_turns=sum(record.target in capable for record in turns),
        prompt=sum(usage.prompt_tokens or 0 for usage in usages),
        cached=sum(usage.cache_read_tokens or 0 for usage in usages),
        written=sum(usage.cache_write_tokens or 0 for usage in usages),
        output=sum(usage.output_tokens or 0 for usage in usages),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def bill(routed: Line, all_capable: Line, all_efficient: Line, *, efficient: str, capable: str) -> Bill:
    """The bill. `efficient`, `capable`: the models whose prices were charged."""
    saved = share = None
    if routed.cost_usd is not None and all_capable.cost_usd is not None:
        saved = all_capable.cost_usd - routed.cost_usd
        share = saved / all_capable.cost_usd if all_capable.cost_usd else None
    caption = CAPTION.format(efficient=efficient, capable=capable)
    return Bill(routed, all_capable, all_efficient, saved, share, caption)
