"""Build snapshot.json from the installed genai-prices package: `python -m turnout.pricing.snapshot`.

Run by hand when the pinned package moves, and by `turnout prices update`. Nothing that serves imports this module: the
package costs a third of a second and an HTTP client to import.
"""

import sys
from collections.abc import Iterable, Iterator
from datetime import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import types as source
from genai_prices.data import providers

from turnout.pricing.rates import Rates
from turnout.pricing.table import Dated, Match, Model, Provider, Table

PATH = Path(__file__).with_name("snapshot.json")
FREE = Rates(input=0.0, output=0.0, cache_read=0.0, cache_write_5m=0.0, cache_write_1h=0.0)
_FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "reasoning": "output_reasoning_mtok",
}


def build() -> bytes:
    """The snapshot as JSON, one provider a line."""
    package = distribution("genai-prices")
    terms = " ".join((package.read_text("licenses/LICENSE") or "").split())
    table = Table(f"genai-prices {package.version}", terms, tuple(_providers(providers)))
    head = msgspec.json.encode({"source": table.source, "license": table.license})
    return head[:-1] + b',"providers":[\n' + b",\n".join(map(msgspec.json.encode, table.providers)) + b"\n]}\n"


def _providers(found: Iterable[Any]) -> Iterator[Provider]:
    for provider in found:
        models = tuple(m for m in (_model(provider.id, each) for each in provider.models) if m is not None)
        if models:
            yield Provider(
                id=provider.id,
                models=msgspec.Raw(msgspec.json.encode(models)),
                api=provider.api_pattern,
                owns=_match(provider.model_match) if provider.model_match else None,
                named=_match(provider.provider_match) if provider.provider_match else None,
                fallback=tuple(provider.fallback_model_providers or ()),
            )


def _model(provider: str, model: Any) -> Model | None:
    """A model priced by text tokens; None for those priced by the minute, image or page only."""
    if provider == "openrouter" and model.id.endswith(":free"):
        return Model(model.id, _match(model.match), (Dated(FREE),))
    prices = model.prices if isinstance(model.prices, list) else [source.ConditionalPrice(prices=model.prices)]
    dated = tuple(_dated(price) for price in prices)
    if not any(d.rates.input is not None for d in dated):
        return None
    return Model(model.id, _match(model.match), dated)


def _dated(price: Any) -> Dated:
    rates, when = _rates(price.prices), price.constraint
    if isinstance(when, source.StartDateConstraint):
        return Dated(rates, since=when.start_date.isoformat())
    if isinstance(when, source.TimeOfDateConstraint):
        return Dated(rates, start=_utc(when.start_time), end=_utc(when.end_time))
    return Dated(rates)


def _utc(moment: time) -> str:
    if moment.utcoffset():
        raise ValueError(f"a time of day that is not in UTC: {moment}")
    return moment.strftime("%H:%M:%S")


def _rates(prices: Any) -> Rates:
    """Rates with whole-request tiers: genai-prices tiers each rate by itself, so the starts are united."""
    found = {ours: getattr(prices, theirs) for ours, theirs in _FIELDS.items()}
    found = {name: price for name, price in found.items() if price is not None}
    starts = sorted({tier.start for p in found.values() if isinstance(p, source.TieredPrices) for tier in p.tiers})
    fee = float(prices.requests_kcount or 0) / 1000
    tiers = tuple(_flat(found, fee, start) for start in starts)
    return msgspec.structs.replace(_flat(found, fee, -1), above_tokens=0, tiers=tiers)


def _flat(found: dict[str, Any], fee: float, start: int) -> Rates:
    rates: dict[str, Any] = {name: _at(price, start) for name, price in found.items()}
    return Rates(**rates, request_usd=fee, above_tokens=start)


def _at(price: Any, start: int) -> float:
    if not isinstance(price, source.TieredPrices):
        return float(price)
    return float(next((t.price for t in reversed(price.tiers) if t.start <= start), price.base))


def _match(clause: Any) -> Match:
    lists: dict[str, list[Any]] = {"equals": [], "starts": [], "ends": [], "contains": [], "regex": [], "every": []}
    _collect(clause, lists)
    return Match(**{name: tuple(values) for name, values in lists.items()})


def _collect(clause: Any, lists: dict[str, list[Any]]) -> None:
    match clause:
        case source.ClauseOr():
            for inner in clause.or_:
                _collect(inner, lists)
        case source.ClauseAnd():
            lists["every"].append(tuple(_match(inner) for inner in clause.and_))
        case source.ClauseEquals():
            lists["equals"].append(clause.equals.lower())
        case source.ClauseStartsWith():
            lists["starts"].append(clause.starts_with.lower())
        case source.ClauseEndsWith():
            lists["ends"].append(clause.ends_with.lower())
        case source.ClauseContains():
            lists["contains"].append(clause.contains.lower())
        case source.ClauseRegex():
            lists["regex"].append(clause.regex)
        case _:
            raise TypeError(f"genai-prices has a new kind of match: {type(clause).__name__}")


def main(arguments: list[str]) -> int:
    """Write the snapshot to the given path, or in place."""
    path = Path(arguments[0]) if arguments else PATH
    path.write_bytes(build())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
