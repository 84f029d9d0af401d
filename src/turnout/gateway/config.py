"""The configuration file: upstreams, targets, routes, and how the gateway itself behaves.

`load` and `parse` raise the first mistake as a ConfigError; `read` finds them all (for `turnout check`).
"""

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
from turnout.gateway.nested import nested
from turnout.gateway.promoted import Declared, PoliciesConfig, Promoted
from turnout.gateway.routes import Route, canonical, policy_of, read_route
from turnout.gateway.shadow.tables import Shadow, ShadowTables, shown
from turnout.gateway.tables import WRONG, Finding, Tables, nearest
from turnout.policies.identity import digest
from turnout.routing import Canary, RouterConfig, TargetName
from turnout.signals import Additions
from turnout.upstream.target import Target, Upstream

Positive = Annotated[float, Meta(gt=0)]


class Tenant(Struct, frozen=True, forbid_unknown_fields=True):
    """A client of the gateway. `key_env`: environment variable that holds the key it must send."""

    key_env: str


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """How the gateway serves.

    `max_body_mib`: largest request body. `keepalive_after_s`: silence after which a buffered turn sends a sign of life.
    `deadline_s`: longest a turn may take. `shutdown_s`: how long running turns may finish after SIGTERM. `tenants`: clients
    with a key of their own. `operators`: the tenants that see everybody's turns (the others see their own). `require_keys`:
    refuse requests without a tenant's key. `log_level`: how much is logged. `reload_every_s`: how often it is looked whether this
    file or a policy has changed, which is then taken over at once; 0 = only at SIGHUP.
    """

    max_body_mib: Positive = 32
    keepalive_after_s: Positive = 10.0
    deadline_s: Positive = 600.0
    shutdown_s: Annotated[float, Meta(ge=0)] = 30.0
    tenants: dict[str, Tenant] = {}
    operators: tuple[str, ...] = ()
    require_keys: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    reload_every_s: Annotated[float, Meta(ge=0)] = 1.0

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
    policies: PoliciesConfig = PoliciesConfig()
    shadows: dict[str, Shadow] = {}
    file: str = ""
    digest: str = ""

    def by_model(self) -> dict[str, Route]:
        """Routes by every model name a client may send."""
        return {name: route for route in self.routes.values() for name in (route.name, *route.aliases)}

    def client_keys(self, env: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Tenants by the key that each must send. The keys are secrets: never log or store the result."""
        tenants = self.server.tenants.items()
        return {key: name for name, tenant in tenants if (key := secret(env, tenant.key_env))}


def load(
    path: Path | str, env: Mapping[str, str] | None = os.environ, routers: Any = None, *, promoted: bool = True
) -> Config:
    """The configuration in a file, ready to serve: its routes as their promoted versions make them, scripts found beside it,
    secrets present in `env`.

    `env` None leaves secrets unchecked, for uses that call no model. `routers`: as for `parse`. `promoted` False: the routes as
    the file has them. Raises ConfigError with file, line and key.
    """
    config, tables = load_all(path, env, routers, promoted=promoted)
    return _accepted(config, tables)


def load_all(
    path: Path | str, env: Mapping[str, str] | None = os.environ, routers: Any = None, *, promoted: bool = True
) -> tuple[Config | None, Tables]:
    """As `load`, with everything that is wrong or doubtful in the tables' `findings`. Raises ConfigError only where the file
    cannot be read at all."""
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such file; `turnout init` writes one", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    config, tables = read(text, str(path), routers, promoted=promoted)
    if config is not None and env is not None:
        config = _with_environment(config, env, tables)
    return config, tables


def parse(text: str, file: str = "turnout.toml", routers: Any = None) -> Config:
    """The configuration in `text` alone, without environment variables and promoted versions.

    `routers`: union of the router structs known."""
    return _accepted(*read(text, file, routers))


def read(text: str, file: str, routers: Any = None, *, promoted: bool = False) -> tuple[Config | None, Tables]:
    """The configuration in `text` (None when it has errors) and its tables, whose `findings` hold everything wrong with it.

    `promoted`: read the promoted versions of its routes too, from the folder beside `file`.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        tables = Tables("", file)
        line = int(at[1]) if at else len(text.splitlines())
        tables.findings.append(Finding("error", file, line, "", f"not valid TOML: {error}"))
        return None, tables
    tables = Tables(text, file, _members(RouterConfig if routers is None else routers))
    config = _Reading(document, tables, promoted).config()
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
        "routes": {name: canonical(route) for name, route in config.routes.items()},
        "server": msgspec.to_builtins(config.server),
        "ledger": msgspec.to_builtins(config.ledger),
        "sessions": msgspec.to_builtins(config.sessions),
        "signals": msgspec.to_builtins(config.signals),
        "policies": msgspec.to_builtins(config.policies),
        **({"shadows": {name: shown(shadow) for name, shadow in config.shadows.items()}} if config.shadows else {}),
    }
    for upstream in tree["upstreams"].values():
        upstream["headers"] = dict.fromkeys(upstream["headers"], "***")
        upstream["base_url"] = _without_password(upstream["base_url"])
    for store in (tree["ledger"], tree["sessions"]):
        store["url"] = f"${{{store['url_env']}}}" if store["url_env"] else _without_password(store["url"])
    return tree


class _Reading:
    """One pass over a decoded TOML document."""

    def __init__(self, document: dict[str, Any], tables: Tables, promoted: bool = False) -> None:
        self.document = document
        self.tables = tables
        self.promoted = promoted

    def config(self) -> Config:
        known = ("upstreams", "targets", "routes", "server", "ledger", "sessions", "signals", "policies", "shadows")
        for key in self.document:
            if key not in known:
                self.tables.note((key,), f"unknown table `{key}`", nearest(key, known, "known tables"))
        upstreams = self._upstreams()
        targets = self._targets()
        signals = self._single("signals", Additions)
        policies = self._single("policies", PoliciesConfig)
        declared = Declared(upstreams, targets, signals)
        routes = self._routes(declared, policies)
        folder = Path(self.tables.file).parent / policies.folder
        config = Config(
            upstreams=upstreams,
            targets=targets,
            routes=routes,
            server=self._single("server", Server),
            ledger=self._single("ledger", LedgerConfig),
            sessions=self._single("sessions", SessionsConfig),
            signals=signals,
            policies=policies,
            shadows=ShadowTables(self.tables, routes, declared, folder).read(self.document),
            file=self.tables.file,
        )
        if any(finding.severity == "error" for finding in self.tables.findings):
            return config
        return _resolved(msgspec.structs.replace(config, digest=digest(effective(config))))

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

    def _routes(self, declared: Declared, policies: PoliciesConfig) -> dict[str, Route]:
        routes: dict[str, Route] = {}
        taken: dict[str, str] = {}
        promoted = self._promoted(declared, policies)
        for name, table, path in self.tables.named(self.document, "routes"):
            route = read_route(name, table, path, self.tables, self.document.get("targets", {}))
            if route is None:
                continue
            policy = policy_of(route, declared.upstreams, declared.targets, declared.signals)
            route = msgspec.structs.replace(route, policy=policy)
            if promoted is not None:
                route = promoted.route(route)
            for position, model in enumerate((name, *route.aliases)):
                owner = taken.setdefault(model, name)
                if owner != name or (position and model == name):
                    where = (*path, *_named(table, model)) if position else path
                    self.tables.note(where, f"the model name `{model}` already belongs to route `{owner}`")
            self._check_canaries(route.router, path)
            routes[name] = route
        if promoted is not None:
            promoted.finish()
        if not self.document.get("routes"):
            self.tables.note(("routes",), "no routes", "add a table [routes.NAME]; NAME is the model name clients send")
        return routes

    def _check_canaries(self, router: Any, path: lines.Path) -> None:
        """Lanes and evidence belong to a canary by its name, so that within a route each needs its own."""
        seen: dict[str, str] = {}
        for place, found in nested(router, path):
            if isinstance(found, Canary):
                if found.name in seen:
                    message = f"the canary `{found.name}` is also that of {seen[found.name]}; their lanes could not be told apart"
                    self.tables.note((*place, "name"), message, "give this one another `name`")
                seen.setdefault(found.name, lines.dotted(place))

    def _promoted(self, declared: Declared, policies: PoliciesConfig) -> Promoted | None:
        """The promoted versions; None where they are not asked for, or could not be read into a file with mistakes."""
        if not self.promoted or any(finding.severity == "error" for finding in self.tables.findings):
            return None
        return Promoted(Path(self.tables.file).parent / policies.folder, declared, self.tables)


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
        raise errors[0].error(tables.file, len(errors) - 1)
    return config
