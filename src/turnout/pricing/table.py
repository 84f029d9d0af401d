"""The price table: providers, their models, and how a model id is recognised. The structs are the form of snapshot.json."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from msgspec import Struct

from turnout.pricing.rates import Rates


class Match(Struct, frozen=True, omit_defaults=True):
    """Which ids a clause accepts: any of its lists, or all clauses of one of `every`. Lower case but for `regex`."""

    equals: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    every: tuple[tuple["Match", ...], ...] = ()

    def accepts(self, text: str) -> bool:
        """Whether this lower-case id is meant."""
        return (
            text in self.equals
            or (bool(self.starts) and text.startswith(self.starts))
            or (bool(self.ends) and text.endswith(self.ends))
            or any(part in text for part in self.contains)
            or any(re.search(pattern, text) for pattern in self.regex)
            or any(all(clause.accepts(text) for clause in clauses) for clauses in self.every)
        )


class Dated(Struct, frozen=True, omit_defaults=True):
    """Rates that hold from a UTC date (`since`, ISO) or between two UTC times of day (`start`, `end`, HH:MM:SS)."""

    rates: Rates
    since: str = ""
    start: str = ""
    end: str = ""

    def active(self, day: str, time: str) -> bool:
        """Whether these rates hold at this UTC date and time of day."""
        if self.since:
            return day >= self.since
        if self.start:
            if self.end < self.start:
                return time >= self.start or time < self.end
            return self.start <= time < self.end
        return True


class Model(Struct, frozen=True, omit_defaults=True):
    """A model of a provider. `prices`: oldest first; the last active one holds, the first when none is active."""

    id: str
    match: Match
    prices: tuple[Dated, ...]

    def rates(self, at: float) -> Rates:
        """The rates at a moment, Unix seconds."""
        if len(self.prices) == 1:
            return self.prices[0].rates
        moment = datetime.fromtimestamp(at, UTC)
        day, time = moment.strftime("%Y-%m-%d"), moment.strftime("%H:%M:%S")
        for dated in reversed(self.prices):
            if dated.active(day, time):
                return dated.rates
        return self.prices[0].rates


class Provider(Struct, frozen=True, eq=False, omit_defaults=True):
    """A provider. `api`: pattern of its base URLs. `named`: which names mean it. `owns`: which model ids are its own without
    being told. `fallback`: providers whose models it also serves at their prices. `models`: decoded on first use."""

    id: str
    models: msgspec.Raw
    api: str = ""
    owns: Match | None = None
    named: Match | None = None
    fallback: tuple[str, ...] = ()


class Table(Struct, frozen=True):
    """The whole snapshot. `source`: where it comes from; `license`: its terms."""

    source: str
    license: str
    providers: tuple[Provider, ...]

    def named(self, name: str) -> Provider | None:
        """The provider of this name."""
        name = name.lower().strip()
        for provider in self.providers:
            if provider.id == name:
                return provider
        return next((p for p in self.providers if p.named is not None and p.named.accepts(name)), None)

    def at_url(self, base_url: str) -> Provider | None:
        """The provider that answers at this base URL."""
        return next((p for p in self.providers if p.api and re.match(p.api, base_url)), None)

    def owner(self, model: str) -> Provider | None:
        """The provider a bare model id belongs to."""
        return next((p for p in self.providers if p.owns is not None and p.owns.accepts(model)), None)

    def model(self, provider: Provider, model: str) -> Model | None:
        """A provider's model by id, also with its date written without dashes; one step of fallback."""
        return self._match(provider, model) or self._match(provider, _COMPACT_DATE.sub(r"-\1-\2-\3", model))

    def _match(self, provider: Provider, model: str) -> Model | None:
        found = _find(models_of(provider), model)
        for name in provider.fallback if found is None else ():
            other = next((p for p in self.providers if p.id == name), None)
            found = _find(models_of(other), model) if other is not None else None
            if found is not None:
                break
        return found


_COMPACT_DATE = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


def _find(models: Sequence[Model], model: str) -> Model | None:
    return next((m for m in models if m.match.accepts(model)), None)


@lru_cache(maxsize=4)
def models_of(provider: Provider) -> tuple[Model, ...]:
    """The models of a provider. The newest few are kept: a gateway asks one or two providers, the table has dozens."""
    return msgspec.json.decode(provider.models, type=tuple[Model, ...])
