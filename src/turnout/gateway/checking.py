"""Everything an operator should know of a configuration before serving it: errors, and warnings about what will surprise.

`turnout check` prints what `check` finds. Serving needs only that there is no error.
"""

import importlib.util
import ipaddress
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.gateway import lines
from turnout.gateway.config import Config, read, wrong_secrets
from turnout.gateway.facts import rates_of
from turnout.gateway.graphs import graph_concerns
from turnout.gateway.nested import nested
from turnout.gateway.routes import Route
from turnout.gateway.tables import Finding, Tables
from turnout.pricing import Prices, Rates
from turnout.routing.collaboration.router import Collaboration
from turnout.routing.core import TargetName
from turnout.sessions import address
from turnout.upstream.scripted import Script
from turnout.upstream.target import Upstream

_VENDORS = ("anthropic.com", "openai.com", "chatgpt.com")
_JUDGES = ("judge", "advisor")
"""Fields of routers that name a target for opinions."""
_EXTRAS = {"postgresql": ("psycopg", "postgres"), "redis": ("redis", "redis"), "rediss": ("redis", "redis")}


def check(
    text: str, file: str, env: Mapping[str, str], routers: Any = None, prices: Prices | None = None
) -> tuple[Config | None, list[Finding]]:
    """The configuration (None if it has errors that keep it from being built) and all findings, in the order of the file;
    those of promoted versions stand last.

    `prices`: where to look prices up; None = the shipped snapshot. `routers`: as for `config.parse`.
    """
    config, tables = read(text, file, routers, promoted=True)
    if config is not None:
        _Checks(config, tables, prices or Prices.load()).run(env)
    order = sorted(tables.findings, key=lambda f: (f.file != file, f.file, f.line or 0, f.key, f.message))
    return config, order


class _Checks:
    def __init__(self, config: Config, tables: Tables, prices: Prices) -> None:
        self.config = config
        self.tables = tables
        self.rates = {name: rates_of(target, config, prices) for name, target in config.targets.items()}

    def run(self, env: Mapping[str, str]) -> None:
        for path, message, hint in wrong_secrets(self.config, env):
            self.tables.note(path, message, hint)
        self._upstreams()
        self._targets()
        for route in self.config.routes.values():
            for path, router in nested(route.router, ("routes", route.name)):
                self._router(path, router)
            self._budget(route)
        self._stores(env)

    def warn(self, path: lines.Path, message: str, hint: str = "") -> None:
        self.tables.note(path, message, hint, "warning")

    def _upstreams(self) -> None:
        used = {target.upstream for target in self.config.targets.values()}
        for name, upstream in self.config.upstreams.items():
            path = ("upstreams", name)
            if name not in used:
                self.warn(path, "no target uses this upstream")
            if upstream.script:
                self._script(upstream, (*path, "script"))
            parts = urlsplit(upstream.base_url)
            host = parts.hostname or ""
            secret = upstream.api_key_env or upstream.forward_auth
            if parts.scheme == "http" and secret and not _local(host):
                self.warn((*path, "base_url"), f"keys travel unencrypted to {host}", "use https")
            if upstream.forward_auth and not _local(host) and not host.endswith(_VENDORS):
                self.warn(
                    (*path, "forward_auth"),
                    f"the clients' own credentials go to {host}",
                    "forward them only to the vendor that issued them",
                )

    def _script(self, upstream: Upstream, path: lines.Path) -> None:
        if not Path(upstream.script).is_file():
            self.tables.note(path, f"no such file: {upstream.script}", "the path starts at this file's folder")
            return
        try:
            Script.load(upstream)
        except ConfigError as error:
            self.tables.note(path, str(error))

    def _targets(self) -> None:
        routes = [*self.config.routes.values(), *(shadow.by for shadow in self.config.shadows.values())]
        used = {name for route in routes for name in (*route.targets, route.falls_to)}
        seen: dict[bytes, str] = {}
        for name, target in self.config.targets.items():
            path = ("targets", name)
            if name not in used:
                self.warn(path, "no route uses this target", "remove it, or name it in a route")
            twin = seen.setdefault(msgspec.json.encode(target, order="sorted"), name)
            if twin != name:
                self.warn((*path, "model"), f"the same model with the same settings as target `{twin}`")
            price = target.price
            if price is not None:
                for key in price.__struct_fields__:
                    if (getattr(price, key) or 0) < 0:
                        self.tables.note((*path, "price", key), "a price may not be negative")
            if self.config.upstreams[target.upstream].script:
                continue
            if self.rates[name] is None:
                hint = "add price = { input = ..., output = ... } (USD per million tokens) or price_id"
                self.warn(path, f"no price is known for `{target.model}`: its turns count as unpriced", hint)
            if target.context_window is None:
                hint = "add context_window = TOKENS, so that a prompt too long for it goes elsewhere at once"
                self.warn(path, f"the context window of `{target.model}` is not stated", hint)

    def _router(self, path: lines.Path, router: Struct) -> None:
        fields = {field: getattr(router, field) for field in router.__struct_fields__}
        self._tiers(path, fields)
        weights = fields.get("weights")
        if isinstance(weights, (tuple, list)):
            weights = dict(enumerate(weights))
        for key, weight in weights.items() if isinstance(weights, dict) else ():
            if weight == 0:
                which = (
                    fields["targets"][key] if isinstance(key, int) and len(fields.get("targets") or ()) > key else key
                )
                self.warn((*path, "weights", key), f"weight 0: `{which}` is never chosen")
        self._fallbacks(path, fields)
        if fields.get("picker") == "capable_first":
            self.warn(
                (*path, "picker"),
                "capable_first is uncalibrated, and its threshold does not mean the same risk as that of efficient_first",
                "carry no threshold over from one picker to the other; measure both on your own turns",
            )
        for field, message in _concerns(router):
            self.warn((*path, field), message)
        if isinstance(router, Collaboration):
            for field, message, hint in graph_concerns(router, self.config.targets, time.time()):
                self.warn((*path, field), message, hint)
            if router.caps.usd is not None:
                self._unpriced((*path, "caps", "usd"), router)

    def _unpriced(self, path: lines.Path, router: Collaboration) -> None:
        """A cap on money needs prices."""
        for name in dict.fromkeys(router.models.values()):
            if name in self.config.targets and self.rates[name] is None:
                model = self.config.targets[name].model
                message = f"no price is known for `{model}`: its calls count as much as the dearest others"
                self.warn(path, message, f"add price = {{ input = ..., output = ... }} to [targets.{name}]")

    def _budget(self, route: Route) -> None:
        """A limit on judges needs judges, and their prices."""
        limits = [key for key in ("judge_budget", "judge_usd_per_day") if getattr(route, key) is not None]
        if not limits:
            return
        path = ("routes", route.name, limits[0])
        routers = [router for _, router in nested(route.router, ())]
        judges = {name for router in routers for key in _JUDGES if isinstance(name := getattr(router, key, None), str)}
        judges |= {name for router in routers for name in getattr(router, "voters", ())}
        if not judges:
            self.warn(path, "no router of this route asks a judge")
        for name in sorted(judges):
            target = self.config.targets[TargetName(name)]
            if self.rates[TargetName(name)] is None:
                hint = f"add price = {{ input = ..., output = ... }} to [targets.{name}]"
                self.warn(path, f"no price is known for the judge `{target.model}`: it will never be asked", hint)

    def _fallbacks(self, path: lines.Path, fields: dict[str, Any]) -> None:
        """A fallback must be another target than the one that failed, and be named once."""
        for field, names in fields.items():
            if not field.endswith("fallbacks") or not isinstance(names, (tuple, list)):
                continue
            first = fields.get(field.removesuffix("fallbacks").rstrip("_") or "target")
            for i, name in enumerate(names):
                if name == first or name in names[:i]:
                    self.warn(
                        (*path, field, i), f"`{name}` has failed already when this fallback's turn comes", "remove it"
                    )

    def _tiers(self, path: lines.Path, fields: dict[str, Any]) -> None:
        """A pair of tiers must be two models, the dearer one on top."""
        for low, high in (("efficient", "capable"), ("weak", "strong")):
            below, above = fields.get(low), fields.get(high)
            if not isinstance(below, str) or not isinstance(above, str):
                continue
            a, b = self.config.targets[TargetName(below)], self.config.targets[TargetName(above)]
            if below == above:
                self.warn((*path, high), f"{low} and {high} are the same target: every turn goes to `{below}`")
            elif (a.upstream, a.model, a.effort) == (b.upstream, b.model, b.effort):
                self.warn((*path, high), f"{low} and {high} are the same model, `{a.model}`")
            elif _dearer(self.rates[TargetName(below)], self.rates[TargetName(above)]):
                hint = f"swap them, or check the prices of `{below}` and `{above}`"
                self.warn((*path, low), f"the {low} tier `{below}` is dearer than the {high} tier `{above}`", hint)
            judge = self.config.targets.get(TargetName(str(fields.get("judge", ""))))
            if judge is not None and (judge.upstream, judge.model) == (a.upstream, a.model):
                self.warn((*path, "judge"), f"the judge is the {low} model itself, and shares its rate limit")

    def _stores(self, env: Mapping[str, str]) -> None:
        sessions = self.config.sessions
        self._sessions(env.get(sessions.url_env, "") if sessions.url_env else sessions.url, sessions.url_env)
        for name, store in (("ledger", self.config.ledger), ("sessions", sessions)):
            if store.url_env:
                continue
            path = (name, "url")
            scheme = store.url.split(":", 1)[0].split("+")[0]
            known = ("sqlite", "postgresql") if name == "ledger" else ("memory", "redis", "rediss")
            if scheme not in known:
                self.tables.note(path, f"unknown kind of store `{scheme}`", f"one of: {', '.join(known)}")
            elif scheme in _EXTRAS and importlib.util.find_spec(_EXTRAS[scheme][0]) is None:
                extra = _EXTRAS[scheme][1]
                self.tables.note(path, f"{scheme} needs an extra", f"pip install 'turnout[{extra}]'")
            if _has_password(store.url):
                self.warn(
                    path, "a password stands in the file", "put the URL into a variable and name that in `url_env`"
                )
            folder = Path(store.url.removeprefix("sqlite:///").split("?")[0]).parent
            if scheme == "sqlite" and not folder.is_dir():
                self.tables.note(path, f"no such folder: {folder}", "create it first")

    def _sessions(self, url: str, variable: str) -> None:
        """Note what is wrong with the URL of a Redis server, in the file or in the environment; never the URL itself."""
        redis = url.split(":", 1)[0] in ("redis", "rediss")
        path = ("sessions", "url_env" if variable else "url")
        if redis:
            try:
                address.parse(url)
            except ConfigError as error:
                self.tables.note(path, error.message)
        elif not variable and url.startswith("memory") and url not in ("memory:", "memory://"):
            self.tables.note(path, "not a session store", "expected memory: or redis://HOST:6379/0")
        elif variable and url and not url.startswith("memory:"):
            self.tables.note(path, "the variable holds no URL of a session store", "expected redis://HOST:6379/0")
        if redis and variable and importlib.util.find_spec("redis") is None:
            self.tables.note(path, "redis needs an extra", "pip install 'turnout[redis]'")


def _has_password(url: str) -> bool:
    try:
        return "@" in url and bool(urlsplit(url).password)
    except ValueError:
        return False


def concerns(config: Config) -> Iterator[tuple[str, str]]:
    """What the routers themselves say will surprise an operator: TOML key and message."""
    for route in config.routes.values():
        for path, router in nested(route.router, ("routes", route.name)):
            for field, message in _concerns(router):
                yield lines.dotted((*path, field)), message


def _concerns(router: Any) -> list[tuple[str, str]]:
    found = getattr(router, "concerns", None)
    return list(found()) if callable(found) else []


def _dearer(below: Rates | None, above: Rates | None) -> bool:
    """Whether the lower tier costs more, for input and output alike or for one of them at equal other."""
    if below is None or above is None:
        return False
    pairs = ((below.input, above.input), (below.output, above.output))
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return bool(known) and all(a >= b for a, b in known) and any(a > b for a, b in known)


def _local(host: str) -> bool:
    """Whether a host is this machine or a private network."""
    if (
        host == "localhost"
        or host.endswith((".localhost", ".local", ".internal"))
        or ("." not in host and ":" not in host)
    ):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def summary(config: Config) -> list[tuple[str, str, str]]:
    """The routes as (name, router type, targets) for people; targets that are only asked for verdicts stand last."""
    return [(route.name, route.kind, _over(route)) for route in config.routes.values()]


def _over(route: Route) -> str:
    judges = [name for name in route.targets if name not in route.answering]
    return ", ".join(route.answering) + (f"; asks {', '.join(judges)}" if judges else "")
