"""The targets as judges: asked over connections of their own, once, and not while that is useless or too dear.

Nothing here touches the calls that answer: a judge that is down leaves its target's answers alone, and the other way round.
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterable, Mapping

import msgspec

from turnout.gateway.accounts import Account
from turnout.gateway.routes import Route
from turnout.pricing.prices import Prices
from turnout.routing.core import Failure, TargetName
from turnout.upstream.health import OF_JUDGES, Health
from turnout.upstream.http import Client
from turnout.upstream.models import Model, Models, Transport

_LOG_EVERY_S = 60.0
_DAY_S = 86_400.0


def judges_of(
    answering: Iterable[Model], keys: Mapping[str, str | None], prices: Prices | None, before: Models | None = None
) -> Models:
    """Every target once more, for judging. `keys`: of the upstreams. Scripts are shared: they play by what they are asked.
    `before`: those of the configuration that this one replaces."""
    transports: dict[str, Transport] = {}
    models: dict[TargetName, Model] = {}
    kept = {} if before is None else {model.target.upstream: model.transport for model in before}
    for model in answering:
        name, upstream = model.target.upstream, model.upstream
        if name not in transports:
            limit = upstream.judge_connections
            old = kept.get(name)
            own = old if isinstance(old, Client) else Client(limit_per_host=limit)
            transports[name] = model.transport if upstream.script else own
        once = msgspec.structs.replace(upstream, max_retries=0)
        judge = Model(model.name, model.target, once, keys[name], transports[name], prices, Health(OF_JUDGES))
        models[model.name] = judge if before is None else judge.like(before)
    return Models(models, tuple(t for t in transports.values() if isinstance(t, Client)))


class Budget:
    """What a route has spent since midnight (UTC) in this process, on judges and on all else, and whether that leaves money for
    another judgement.

    `share`: the most of the route's spend that goes to judges; `usd_per_day`: the most in USD; None = no such limit. A call in
    flight counts as much as the dearest one before it, so limits are exceeded at most by what calls cost more than that, and
    the excess is made up for by asking less afterwards.
    """

    __slots__ = ("_answers", "_day", "_dearest", "_held", "_judges", "share", "usd_per_day")

    def __init__(self, share: float | None = None, usd_per_day: float | None = None) -> None:
        self.share = share
        self.usd_per_day = usd_per_day
        self._answers = self._judges = self._held = self._dearest = 0.0
        self._day = 0

    def limited(self, share: float | None, usd_per_day: float | None) -> "Budget":
        """The same budget, with these limits from now on."""
        self.share, self.usd_per_day = share, usd_per_day
        return self

    def refuses(self, now: float) -> str:
        """Why there is no money for a judgement at `now` (Unix seconds), "" when there is."""
        self._turn(now)
        judges = self._judges + self._held + self._dearest
        if self.usd_per_day is not None and judges > self.usd_per_day:
            return (
                f"the route's judges have cost ${self._judges:.4f} of ${self.usd_per_day:g} since midnight UTC, and the "
                f"next may cost ${self._dearest:.4f}"
            )
        if self.share is not None and judges > self.share * (self._answers + judges) + 1e-12:
            return (
                f"the route's judges have cost ${self._judges:.4f} of ${self._answers + self._judges:.4f} since midnight "
                f"UTC; another would exceed their share of {self.share:.0%}"
            )
        return ""

    def hold(self) -> float:
        """Set money aside for a call that begins; give the amount back with `settle`."""
        held = self._dearest
        self._held += held
        return held

    def settle(self, held: float, usd: float | None) -> None:
        """A call is over. `usd`: what it cost; None = nobody knows, so it counts as the dearest."""
        self._held = max(self._held - held, 0.0)
        spent = self._dearest if usd is None else usd
        self._judges += spent
        self._dearest = max(self._dearest, spent)

    def answered(self, usd: float, now: float) -> None:
        """`usd` were spent on calls that do not judge, by `now`."""
        self._turn(now)
        self._answers += usd

    def _turn(self, now: float) -> None:
        day = int(now // _DAY_S)
        if day > self._day:
            self._day, self._answers, self._judges = day, 0.0, 0.0


class Judges:
    """The judging side of all targets, the routes' budgets, and what went wrong. `slots`: places of each target's upstream."""

    def __init__(self, models: Models, routes: Mapping[str, Route], before: "Judges | None" = None) -> None:
        """`before`: those of the configuration that this one replaces; places that are taken and money that is spent stay so."""
        self.models = models
        kept = before.places if before is not None else {}
        self.places: dict[tuple[str, int], asyncio.Semaphore] = {}
        for model in models:
            place = (model.target.upstream, max(model.upstream.judge_connections, 1))
            self.places[place] = kept.get(place) or self.places.get(place) or asyncio.Semaphore(place[1])
        self.slots = {
            model.name: self.places[model.target.upstream, max(model.upstream.judge_connections, 1)] for model in models
        }
        spent = before.budgets if before is not None else {}
        self.budgets: dict[str, Budget] = {
            name: spent.get(name, Budget()).limited(route.judge_budget, route.judge_usd_per_day)
            for name, route in routes.items()
            if route.judge_budget is not None or route.judge_usd_per_day is not None
        }
        self._logged: dict[tuple[str, str, str], tuple[float, int]] = before._logged if before is not None else {}

    def refusal(self, route: str, target: TargetName) -> Failure | None:
        """Why `target` is not to be asked for a judgement now; None when it is."""
        model = self.models[target]
        wait_s = model.health.wait_s(time.monotonic()) if model.health.cooling_until else 0.0
        if wait_s:
            message = f"{target} failed as a judge too often of late; it is tried again in {math.ceil(wait_s)} s"
            kind = model.health.rate_limited
            return Failure("rate_limit" if kind else "unavailable", message, retry_after_s=wait_s, reason="breaker")
        budget = self.budgets.get(route)
        if budget is None:
            return None
        now = time.time()
        if model.rates(now) is None:
            return Failure("unavailable", f"no price is known for {target}, so its share has no end", reason="budget")
        refused = budget.refuses(now)
        return Failure("unavailable", refused, reason="budget") if refused else None

    def hold(self, route: str) -> float:
        """Set money aside for a judgement that begins."""
        budget = self.budgets.get(route)
        return budget.hold() if budget is not None else 0.0

    def settle(self, route: str, held: float, account: Account) -> None:
        """A judgement is over, however it ended."""
        budget = self.budgets.get(route)
        if budget is not None:
            budget.settle(held, account.call(time.time()).cost_usd)

    def unheard(self, route: str, target: str, reason: str) -> None:
        """Log that there was no judgement: a line a minute for each reason."""
        key, now = (route, target, reason), time.monotonic()
        at, before = self._logged.get(key, (-math.inf, 0))
        if now - at < _LOG_EVERY_S:
            self._logged[key] = (at, before + 1)
            return
        self._logged[key] = (now, 0)
        more = f" ({before} more since the last line)" if before else ""
        logging.getLogger("turnout").warning(
            "route %s: no verdict of the judge %s: %s%s; turns go on without", route, target, reason, more
        )
