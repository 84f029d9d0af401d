"""What prompt caches did to the cost of recorded runs, where every call's tokens were recorded. Pure.

Each run is priced three times from its calls: as recorded (the cached tokens the provider reported), cold (nothing cached),
and warm (every call reads what the call before it sent, writes the rest). Warm is the least that caching can make of the run
when no prefix breaks or expires; cold is what a run pays that changes its model at every call. The cold start of a switch in
mid-run is in no record of whole runs.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from turnout.conversation import Usage
from turnout.evaluate.outcomes import Call, Outcome
from turnout.pricing import Rates, cost

CANNOT = "cannot be said with and without cold caches: {missing} of {runs} runs have no record of each call's tokens"
UNPRICED = "cannot be said with and without cold caches: no price is known for {model}, or not for cached tokens"


class CacheEffect(Struct, frozen=True):
    """USD of all `runs` of an arm. `recorded`, `warm`, `cold`: at the price table's rates; None with a `reason`."""

    runs: int
    recorded: float | None = None
    warm: float | None = None
    cold: float | None = None
    reason: str = ""


def cache_effect(runs: Sequence[Outcome], rates_of: Callable[[str], Rates | None]) -> CacheEffect:
    """Price an arm's runs as recorded, with caches always warm, and without any. `rates_of`: the rates of a model."""
    missing = sum(not run.calls for run in runs)
    if missing or not runs:
        return CacheEffect(len(runs), reason=CANNOT.format(missing=missing, runs=len(runs)))
    recorded = warm = cold = 0.0
    for run in runs:
        rates = rates_of(run.arm.model)
        priced = None if rates is None else _priced(run.calls, rates)
        if priced is None:
            return CacheEffect(len(runs), reason=UNPRICED.format(model=run.arm.model))
        recorded, warm, cold = recorded + priced[0], warm + priced[1], cold + priced[2]
    return CacheEffect(len(runs), recorded, warm, cold)


def _priced(calls: Sequence[Call], rates: Rates) -> tuple[float, float, float] | None:
    totals = [0.0, 0.0, 0.0]
    sent = 0
    for call in calls:
        prompt, readable = call.prompt_tokens, min(sent, call.prompt_tokens)
        written = prompt - readable if rates.cache_write_5m is not None else 0
        usages = (
            Usage(prompt - call.cached_tokens, call.output_tokens, call.cached_tokens),
            Usage(prompt - readable - written, call.output_tokens, readable, written),
            Usage(prompt, call.output_tokens),
        )
        for index, usage in enumerate(usages):
            usd = cost(usage, rates).usd
            if usd is None:
                return None
            totals[index] += usd
        sent = prompt
    return totals[0], totals[1], totals[2]
