"""The configuration file: upstreams, targets, routes, and how the gateway itself behaves.

`load` and `parse` raise the first mistake as a ConfigError; `read` finds them all (for `turnout check`).
"""

import hashlib
import os
import re
import tomllib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from turnout.errors import ConfigError
from turnout.gateway import lines
from turnout.gateway.references import targets_of
from turnout.gateway.tables import WRONG, Finding, Tables, nearest
from turnout.routing import Router, RouterConfig, TargetName
from turnout.routing.core import Forward, Why
from turnout.routing.stacks import refusals, tag_of
from turnout.routing.subagents import ByAgent
from turnout.signals import Additions
from turnout.upstream.target import Target, Upstream

Positive = Annotated[float, Meta(gt=0)]


class Route(Struct, frozen=True):
    """A model name that clients may send, and the router that decides its turns.

    `strict`: refuse a request that a translation would lose part of. `aliases`: further model names. `otherwise`: where a
    turn goes when the router raises; None = the router's own choice. `handover_note`: see `RouteKeys`. `policy`: digest of
    everything that shapes a decision. `targets`: all that its routers name; `answering`: those of them that are not only judges.
    `judge_budget`, `judge_usd_per_day`: the most that judges may cost, as a share of the spend and in USD; None = no limit.
    """

    name: str
    router: Router
    strict: bool = False
    aliases: tuple[str, ...] = ()
    otherwise: TargetName | None = None
    description: str = ""
    handover_note: bool = False
    policy: str = ""
    targets: tuple[TargetName, ...] = ()
    answering: tuple[TargetName, ...] = ()
    judge_budget: float | None = None
    judge_usd_per_day: float | None = None

    @property
    def kind(self) -> str:
        """The `type` of the router that decides the agent's own work."""
        router = self.router.main if isinstance(self.router, ByAgent) else self.router
        return tag_of(router)

    @property
    def falls_to(self) -> TargetName:
        """The target of a turn whose router raised."""
        return self.otherwise or self.router.otherwise

    def fault(self, error: Exception) -> Forward:
        """The decision for a turn whose router raised `error`."""
        kind = type(error).__name__
        sentence = f"The router failed ({kind}), so the turn went to {self.falls_to}."
        return Forward(self.falls_to, Why("fault", sentence, rule=kind))


class RouteKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys every route may have beside those of its router.

    `strict`: refuse a request that a translation to another format would lose part of. `aliases`: further model names for the
    route. `otherwise`: the target of a turn whose router raised. `description`: for people. `handover_note`: put a short note
    of what the conversation shows at the end of a turn that another model serves than the one before. `subagents`: who decides
    delegated work, a table with a `type` of its own or a target's name (default: the route itself, with a memory apart for each
    child).
    `background`: who decides titles, summaries and the like (default: the route itself). `small_models`: further model names for
    the route, by which an agent asks for its small model; such turns are `background`'s. `judge_budget`: the most of the
    route's spend that may go to judges, such as 0.1 (default none: no limit); a turn whose judge would exceed it goes on without.
    `judge_usd_per_day`: the most that judges may cost a day (UTC), USD (default none: no limit). Both are counted by each process
    for itself, from midnight or its start.
    """

    strict: bool = False
    aliases: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    otherwise: TargetName | None = None
    description: str = ""
    handover_note: bool = False
    subagents: Router | None = None
    background: Router | None = None
    small_models: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    judge_budget: Annotated[float, Meta(gt=0, lt=1)] | None = None
    judge_usd_per_day: Positive | None = None

    def __post_init__(self) -> None:
        if self.small_models and self.background is None:
            raise ValueError("small_models: name the target for them as `background`")


class Tenant(Struct, frozen=True, forbid_unknown_fields=True):
    """A client of the gateway. `key_env`: environment variable that holds the key it must send."""

    key_env: str


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """How the gateway serves.

    `max_body_mib`: largest request body. `keepalive_after_s`: silence after which a buffered turn sends a sign of life.
    `deadline_s`: longest a turn may take. `shutdown_s`: how long running turns may finish after SIGTERM. `tenants`: clients
    with a key of their own. `operators`: the tenants that see everybody's turns (the others see their own). `require_keys`:
    refuse requests without a tenant's key. `log_level`: how much is logged.
    """

    max_body_mib: Positive = 32
    keepalive_after_s: Positive = 10.0
    deadline_s: Positive = 600.0
    shutdown_s: Annotated[float, Meta(ge=0)] = 30.0
    tenants: dict[str, Tenant] = {}
    operators: tuple[str, ...] = ()
    require_keys: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __post_init__(self) -> None:
        if self.require_keys and not self.tenants:
            raise ValueError("require_keys refuses every request while there is no [server.tenants.NAME]")
        if unknown := [name for name in self.operators if name not in self.tenants]:
            raise ValueError(f"operators: there is no [server.tenants.{unknown[0]}]")


class LedgerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where turns are recorded.

    `url`: SQLAlchemy URL (`sqlite:///FILE`, `postgresql+psycopg://...`); `url_env`: environment variable that holds it
    instead, for URLs with a password. `capture`: `none` (no signals), `signals`, `full` (with bodies). `flush_interval_s`: the
    most that a killed process loses.
    """

    url: str = "sqlite:///turnout.db"
    url_env: str = ""
    capture: Literal["none", "signals", "full"] = "signals"
    flush_interval_s: Positive = 0.25


class SessionsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where routers keep what they remember of a lane.

    `url`: `memory:`, or `redis://HOST:6379/0` (`rediss://` with TLS) for several gateways; `url_env`: environment variable that
    holds it instead, for URLs with a password. `ttl_s`: how long an idle lane or response is remembered. `within_s`:
    longest that a turn waits for one answer of the Redis server, connecting included, before it goes on without. `max_lanes`: how
    many are kept at once in memory; the longest idle go first. `max_responses`: how many responses are kept in memory for
    clients that continue by id (`previous_response_id`), within 16 MiB; the longest unused go first.
    """

    url: str = "memory:"
    url_env: str = ""
    ttl_s: Positive = 21_600.0
    within_s: Annotated[float, Meta(gt=0, le=60)] = 0.5
    max_lanes: Annotated[int, Meta(ge=1)] = 20_000
    max_responses: Annotated[int, Meta(ge=1)] = 10_000


class Config(Struct, frozen=True):
    """A whole configuration file. `digest`: of the effective configuration, secrets and addresses of stores left out."""

    upstreams: dict[str, Upstream]
    targets: dict[TargetName, Target]
    routes: dict[str, Route]
    server: Server = Server()
    ledger: LedgerConfig = LedgerConfig()
    sessions: SessionsConfig = SessionsConfig()
    signals: Additions = Additions()
    file: str = ""
    digest: str = ""

    def by_model(self) -> dict[str, Route]:
        """Routes by every model name a client may send."""
        return {name: route for route in self.routes.values() for name in (route.name, *route.aliases)}

    def client_keys(self, env: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Tenants by the key that each must send. The keys are secrets: never log or store the result."""
        tenants = self.server.tenants.items()
        return {key: name for name, tenant in tenants if (key := secret(env, tenant.key_env))}


def load(path: Path | str, env: Mapping[str, str] | None = os.environ, routers: Any = None) -> Config:
    """The configuration in a file, ready to serve: scripts found beside it, secrets present in `env`.

    `env` None leaves secrets unchecked, for uses that call no model. `routers`: as for `parse`. Raises ConfigError with
    file, line and key.
    """
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such file; `turnout init` writes one", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    config, tables = read(text, str(path), routers)
    if config is not None and env is not None:
        config = _with_environment(config, env, tables)
    return _accepted(config, tables)


def parse(text: str, file: str = "turnout.toml", routers: Any = None) -> Config:
    """The configuration in `text`; environment variables are not looked at. `routers`: union of the router structs known."""
    return _accepted(*read(text, file, routers))


def read(text: str, file: str, routers: Any = None) -> tuple[Config | None, Tables]:
    """The configuration in `text` (None when it has errors) and its tables, whose `findings` hold everything wrong with it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        tables = Tables("", file)
        line = int(at[1]) if at else len(text.splitlines())
        tables.findings.append(Finding("error", file, line, "", f"not valid TOML: {error}"))
        return None, tables
    tables = Tables(text, file, _members(RouterConfig if routers is None else routers))
    config = _Reading(document, tables).config()
    return (None if any(f.severity == "error" for f in tables.findings) else config), tables


def secret(env: Mapping[str, str], variable: str) -> str:
    """The secret that an environment variable holds, without the white space that a file or a shell left around it."""
    return env.get(variable, "").strip() if variable else ""


def wrong_secrets(config: Config, env: Mapping[str, str]) -> list[tuple[lines.Path, str, str]]:
    """What is wrong with the environment variables that the configuration names: TOML path, message and hint."""
    wanted: list[tuple[lines.Path, str]] = []
    for name, upstream in config.upstreams.items():
        wanted.append((("upstreams", name, "api_key_env"), upstream.api_key_env))
    for name, tenant in config.server.tenants.items():
        wanted.append((("server", "tenants", name, "key_env"), tenant.key_env))
    wanted.append((("ledger", "url_env"), config.ledger.url_env))
    wanted.append((("sessions", "url_env"), config.sessions.url_env))
    found = [(path, *unset(variable)) for path, variable in wanted if variable and not secret(env, variable)]
    for path, variable in wanted:
        if _CONTROL.search(secret(env, variable)):
            message = f"the environment variable {variable} holds a line break or another control character"
            found.append((path, message, "export the key alone"))
    return found


def unset(variable: str) -> tuple[str, str]:
    """What to say of a missing environment variable: message and hint."""
    if variable != variable.upper():
        # A key put where its variable's name belongs must not be printed; names of variables are upper case.
        return "the environment variable named here is not set", "expected a name such as VENDOR_API_KEY, never a key"
    return f"the environment variable {variable} is not set", f"export {variable}=... first, or remove this key"


def effective(config: Config) -> dict[str, Any]:
    """The configuration with every default filled in, safe to show: no secret, no password, no header value."""
    tree: dict[str, Any] = {
        "upstreams": msgspec.to_builtins(config.upstreams),
        "targets": msgspec.to_builtins(config.targets),
        "routes": {name: _canonical(route) for name, route in config.routes.items()},
        "server": msgspec.to_builtins(config.server),
        "ledger": msgspec.to_builtins(config.ledger),
        "sessions": msgspec.to_builtins(config.sessions),
        "signals": msgspec.to_builtins(config.signals),
    }
    for upstream in tree["upstreams"].values():
        upstream["headers"] = dict.fromkeys(upstream["headers"], "***")
        upstream["base_url"] = _without_password(upstream["base_url"])
    for store in (tree["ledger"], tree["sessions"]):
        store["url"] = f"${{{store['url_env']}}}" if store["url_env"] else _without_password(store["url"])
    return tree


class _Reading:
    """One pass over a decoded TOML document."""

    def __init__(self, document: dict[str, Any], tables: Tables) -> None:
        self.document = document
        self.tables = tables

    def config(self) -> Config:
        known = ("upstreams", "targets", "routes", "server", "ledger", "sessions", "signals")
        for key in self.document:
            if key not in known:
                self.tables.note((key,), f"unknown table `{key}`", nearest(key, known, "known tables"))
        upstreams = self._upstreams()
        targets = self._targets()
        signals = self._single("signals", Additions)
        routes = self._routes(upstreams, targets, signals)
        config = Config(
            upstreams=upstreams,
            targets=targets,
            routes=routes,
            server=self._single("server", Server),
            ledger=self._single("ledger", LedgerConfig),
            sessions=self._single("sessions", SessionsConfig),
            signals=signals,
            file=self.tables.file,
        )
        if any(finding.severity == "error" for finding in self.tables.findings):
            return config
        return _resolved(msgspec.structs.replace(config, digest=_digest(effective(config))))

    def _single(self, name: str, kind: type[Any]) -> Any:
        table = self.document.get(name, {})
        if isinstance(table, dict):
            made = self.tables.struct(kind, table, (name,))
            return kind() if made is WRONG else made
        self.tables.note((name,), f"expected a table [{name}]")
        return kind()

    def _upstreams(self) -> dict[str, Upstream]:
        upstreams = {}
        for name, table, path in self.tables.named(self.document, "upstreams"):
            upstream = self.tables.struct(Upstream, table, path)
            if upstream is not WRONG:
                _judge_upstream(upstream, path, self.tables)
                upstreams[name] = msgspec.structs.replace(upstream, base_url=upstream.base_url.rstrip("/"))
        return upstreams

    def _targets(self) -> dict[TargetName, Target]:
        targets = {}
        for name, table, path in self.tables.named(self.document, "targets"):
            target = self.tables.struct(Target, table, path)
            if target is WRONG:
                continue
            upstreams = self.document.get("upstreams", {})
            if target.upstream not in upstreams:
                hint = nearest(target.upstream, upstreams, "upstreams") or "there is no [upstreams.NAME] yet"
                self.tables.note((*path, "upstream"), f"unknown upstream `{target.upstream}`", hint)
            if not target.model.strip():
                self.tables.note((*path, "model"), "expected the name of a model, got a blank string")
            targets[TargetName(name)] = target
        return targets

    def _routes(
        self, upstreams: dict[str, Upstream], targets: dict[TargetName, Target], signals: Additions
    ) -> dict[str, Route]:
        routes: dict[str, Route] = {}
        taken: dict[str, str] = {}
        for name, table, path in self.tables.named(self.document, "routes"):
            route = self._route(name, table, path)
            if route is None:
                continue
            for position, model in enumerate((name, *route.aliases)):
                owner = taken.setdefault(model, name)
                if owner != name or (position and model == name):
                    where = (*path, *_named(table, model)) if position else path
                    self.tables.note(where, f"the model name `{model}` already belongs to route `{owner}`")
            routes[name] = msgspec.structs.replace(route, policy=_policy(route, upstreams, targets, signals))
        if not self.document.get("routes"):
            self.tables.note(("routes",), "no routes", "add a table [routes.NAME]; NAME is the model name clients send")
        return routes

    def _route(self, name: str, table: dict[str, Any], path: lines.Path) -> Route | None:
        kinds = self.tables.routers
        kind = next((k for k in kinds if k.__struct_config__.tag == table.get("type")), None)
        own = {field.encode_name for field in msgspec.structs.fields(kind)} if kind else set()
        shared = {field.name for field in msgspec.structs.fields(RouteKeys)}
        common = self.tables.struct(RouteKeys, {k: v for k, v in table.items() if k in shared}, path)
        rest = {k: v for k, v in table.items() if k not in shared or k in own}
        if kind is not None:
            rest = self._known_keys(kind, own | shared | {kind.__struct_config__.tag_field or "type"}, rest, path)
        router = self.tables.tagged(kinds, rest, path)
        if router is WRONG or common is WRONG:
            return None
        named = [*targets_of(router), *targets_of(common)]
        if common.subagents is not None or common.background is not None:
            router = ByAgent(router, common.subagents, common.background, common.small_models)
        for where, reason in refusals(router):
            self.tables.note((*path, *where), reason)
        declared = self.document.get("targets", {})
        for where, target in named:
            if target not in declared:
                hint = nearest(target, declared, "targets") or "there is no [targets.NAME] yet"
                self.tables.note((*path, *where), f"unknown target `{target}`", hint)
        return Route(
            name=name,
            router=router,
            strict=common.strict,
            aliases=tuple(dict.fromkeys((*common.aliases, *common.small_models))),
            otherwise=common.otherwise,
            description=common.description,
            handover_note=common.handover_note,
            targets=tuple(dict.fromkeys(target for _, target in named)),
            answering=tuple(dict.fromkeys(target for where, target in named if where[-1] != "judge")),
            judge_budget=common.judge_budget,
            judge_usd_per_day=common.judge_usd_per_day,
        )

    def _known_keys(
        self, kind: type[Struct], known: set[str], table: dict[str, Any], path: lines.Path
    ) -> dict[str, Any]:
        """`table` without the keys that neither a route nor its router has; they are noted with the nearest of both."""
        for key in set(table) - known:
            hint = nearest(key, known, f"keys of a {kind.__struct_config__.tag} route")
            self.tables.note((*path, key), f"unknown key `{key}`", hint)
        return {key: raw for key, raw in table.items() if key in known}


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_AUTHENTICATES = ("authorization", "x-api-key", "api-key", "proxy-authorization", "cookie")


def _named(table: Mapping[str, Any], model: str) -> tuple[str | int, ...]:
    """Where a route's table names `model`."""
    for key in ("aliases", "small_models"):
        if model in table.get(key, ()):
            return key, table[key].index(model)
    return ()


def _judge_upstream(upstream: Upstream, path: lines.Path, tables: Tables) -> None:
    """Note what makes an upstream unusable beyond the types of its fields."""
    if bool(upstream.base_url) == bool(upstream.script):
        got = "both" if upstream.script else "neither"
        tables.note(path, f"expected either `base_url` or `script`, got {got}")
    if upstream.api_key_env and upstream.forward_auth:
        tables.note((*path, "forward_auth"), "expected either `api_key_env` or `forward_auth`, got both")
    if upstream.api_key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", upstream.api_key_env):
        # The value is not repeated: what stands here by mistake is often the key itself.
        tables.note((*path, "api_key_env"), "expected the name of an environment variable, not a key")
    for header, text in upstream.headers.items():
        if not _HEADER_NAME.fullmatch(header):
            tables.note((*path, "headers", header), "not the name of a header")
        elif _CONTROL.search(text):
            tables.note(
                (*path, "headers", header), "a header's value may hold no line break or other control character"
            )
        if header.lower() in _AUTHENTICATES:
            hint = "put the key into an environment variable and name that in `api_key_env`"
            tables.note(
                (*path, "headers", header), f"`{header}` may not be set here: a file never holds a secret", hint
            )
    for name in ("max_retries", "connect_s", "first_byte_s", "idle_s", "max_connections", "judge_connections"):
        least = 0 if name == "max_retries" else 1e-9
        if getattr(upstream, name) < least:
            tables.note((*path, name), f"expected {'0 or more' if least == 0 else 'a number above 0'}")
    if upstream.base_url:
        _judge_url(upstream.base_url, (*path, "base_url"), tables)


def _judge_url(url: str, path: lines.Path, tables: Tables) -> None:
    example = "such as https://api.example.com/v1"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        tables.note(path, "not a URL", f"expected one {example}")
        return
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        tables.note(path, "expected an http or https URL with a host", example)
    elif parts.username or parts.password:
        tables.note(path, "a URL may not hold credentials", "name an environment variable in `api_key_env`")
    elif parts.query or parts.fragment:
        tables.note(path, "a base URL has no query and no fragment", example)


def _members(union: Any) -> tuple[type[Struct], ...]:
    return typing.get_args(union) or (union,)


def _canonical(route: Route) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(route.router, order="deterministic")
    limits = {"judge_budget": route.judge_budget, "judge_usd_per_day": route.judge_usd_per_day}
    return {
        **tree,
        **{key: limit for key, limit in limits.items() if limit is not None},
        "strict": route.strict,
        "aliases": list(route.aliases),
        "otherwise": route.falls_to,
        "description": route.description,
        **({"handover_note": True} if route.handover_note else {}),
    }


def _policy(route: Route, upstreams: dict[str, Upstream], targets: dict[TargetName, Target], signals: Additions) -> str:
    """Digest of what shapes the route's decisions and the models behind them; names for people are left out."""
    canonical = _canonical(route)
    for key in ("aliases", "description"):
        del canonical[key]
    models = {}
    for name in {*route.targets, route.falls_to}:
        target = targets.get(name)
        if target is not None:
            upstream = upstreams.get(target.upstream)
            models[name] = (target.model, upstream.format if upstream else "", target.prompt, target.effort)
    added = (msgspec.to_builtins(signals),) if signals != Additions() else ()
    return _digest((canonical, models, *added))


def _digest(value: Any) -> str:
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=6).hexdigest()


def _without_password(url: str) -> str:
    # To the last @: what was not percent-encoded in a password as it should have been must not show either.
    return re.sub(r"(?s)(://[^/@:]*):.*@", r"\1:***@", url)


def _resolved(config: Config) -> Config:
    """Scripts are found beside the file, wherever the gateway is started."""
    folder = Path(config.file).parent
    upstreams = {
        name: msgspec.structs.replace(u, script=str(folder / u.script)) if u.script else u
        for name, u in config.upstreams.items()
    }
    return msgspec.structs.replace(config, upstreams=upstreams)


def _with_environment(config: Config, env: Mapping[str, str], tables: Tables) -> Config:
    for path, message, hint in wrong_secrets(config, env):
        tables.note(path, message, hint)
    replace = msgspec.structs.replace
    if config.ledger.url_env:
        config = replace(config, ledger=replace(config.ledger, url=env.get(config.ledger.url_env, "")))
    if config.sessions.url_env:
        config = replace(config, sessions=replace(config.sessions, url=env.get(config.sessions.url_env, "")))
    return config


def _accepted(config: Config | None, tables: Tables) -> Config:
    errors = [finding for finding in tables.findings if finding.severity == "error"]
    if errors or config is None:
        raise errors[0].error(more=len(errors) - 1)
    return config
