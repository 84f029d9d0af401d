"""The gateway, opened from its configuration: everything its turns share."""

import asyncio
import copy
import difflib
import fnmatch
import logging
import os
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from turnout.conversation import Format
from turnout.errors import ClientError, ConfigError
from turnout.gateway.artefacts import same_account
from turnout.gateway.attend import Attendant
from turnout.gateway.canary.host import Canaries
from turnout.gateway.config import Config, secret
from turnout.gateway.judges import Judges, judges_of
from turnout.gateway.knowledges import shelves_of
from turnout.gateway.library import Library, Shelved
from turnout.gateway.once import Once
from turnout.gateway.routes import Route
from turnout.gateway.shadow.host import Shadows
from turnout.ledger.metrics import Metrics
from turnout.ledger.otel import exporter
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.pricing.prices import Prices
from turnout.routing.core import ANSWERING, TargetName
from turnout.sessions import address
from turnout.sessions.responses import MemoryResponses, ResponseStore
from turnout.sessions.store import MemoryStore, SessionStore
from turnout.signals import Vocabulary
from turnout.upstream.credentials import Redactor, header_text
from turnout.upstream.http import Client
from turnout.upstream.models import Model, Models, Transport
from turnout.upstream.scripted import Script

R = TypeVar("R")


_CREDENTIALS = (b"authorization", b"x-api-key")


def credential(value: bytes) -> str:
    """The credential that a header's value holds, without its scheme."""
    if value[:7].lower() == b"bearer ":
        value = value[7:]
    return value.strip().decode("latin-1")


class Called(Struct, frozen=True):
    """What a configuration says about calling models, opened. `client_keys`: tenants by key. The keys are secrets. `shelves`: the
    knowledges that its routes look facts up in."""

    models: Models
    judges: Models
    redactor: Redactor
    client_keys: Mapping[str, str]
    shelves: Mapping[str, Shelved] = {}


def called(config: Config, env: Mapping[str, str], before: "Gateway | None" = None) -> Called:
    """Open targets, judges and knowledges, without a connection yet. Blocks. Raises ConfigError.

    `before`: the gateway of the configuration that this one replaces. Targets that were there before keep what is known of their
    health, upstreams their connections, scripts their place.
    """
    prices = Prices.load()
    keys = {name: secret(env, u.api_key_env) or None for name, u in config.upstreams.items()}
    client_keys = config.client_keys(env)
    transports, client = _transports(config, before)
    models: dict[TargetName, Model] = {}
    for name, target in config.targets.items():
        transport, key = transports[target.upstream], keys[target.upstream]
        model = Model(name, target, config.upstreams[target.upstream], key, transport, prices)
        models[name] = model if before is None else model.like(before.models)
    judges = judges_of(models.values(), keys, prices, before.judges.models if before is not None else None)
    opened = Models(models, tuple({id(t): t for t in (*transports.values(), client)}.values()))
    shelves = shelves_of(config, before.library.shelves if before is not None else {})
    return Called(opened, judges, Redactor([k for k in (*keys.values(), *client_keys) if k]), client_keys, shelves)


def _transports(config: Config, before: "Gateway | None") -> tuple[dict[str, Transport], Transport]:
    """How each upstream is reached, and the client that all servers are reached by."""
    client: Transport = Client(limit_per_host=max((u.max_connections for u in config.upstreams.values()), default=1024))
    scripts: dict[str, Transport] = {}
    for model in before.models if before is not None else ():
        if not isinstance(model.transport, Script):
            client = model.transport
        elif model.upstream == config.upstreams.get(model.target.upstream):
            scripts[model.target.upstream] = model.transport
    transports = {
        name: (scripts.get(name) or Script.load(upstream)) if upstream.script else client
        for name, upstream in config.upstreams.items()
    }
    return transports, client


class Gateway:
    """Shared by all turns of one process that one configuration serves. `open` inside the event loop that will serve, `close`
    when done; `reopened` gives the gateway of another configuration."""

    def __init__(
        self, config: Config, called: Called, ledger: Ledger, sessions: SessionStore, responses: ResponseStore
    ) -> None:
        self.ledger = ledger
        self.sessions = sessions
        self.responses = responses
        self.canaries = Canaries(config, ledger, self.internal_error)
        self.shadows = Shadows(config, ledger, sessions, self.internal_error)
        self.metrics = Metrics(
            ledger.health, sessions.trouble, lambda: sessions.reachable, self.canaries.counts, self.shadows.counts
        )
        self.exporter = exporter()
        self.once = Once()
        self.attendant = Attendant(config.server.keepalive_after_s)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.began = time.time()
        self.closing = False
        self.judges = Judges(called.judges, config.routes)
        self.library = Library(called.shelves, self.internal_error)
        self._configure(config, called)

    def _configure(self, config: Config, called: Called) -> None:
        """Set all that depends on the configuration, but the judges."""
        self.config = config
        self.models = models = called.models
        self.redactor = called.redactor
        self.client_keys = called.client_keys
        self.vocabulary = Vocabulary(config.signals)
        self.keeps_signals = config.ledger.capture != "none"
        self.keeps_bodies = config.ledger.capture == "full"
        self.route_headers = {
            name: ((b"x-turnout-route", header_text(name)), (b"x-turnout-policy", route.policy.encode()))
            for name, route in config.routes.items()
        }
        self.spread = frozenset(
            name
            for name, route in config.routes.items()
            if any(not same_account(models[route.targets[0]], models[other]) for other in route.targets)
        )
        self.deadline_s = config.server.deadline_s
        self.max_body = int(config.server.max_body_mib * 1024 * 1024)
        self._routes = config.by_model()
        self._patterns = [(name, route) for name, route in self._routes.items() if any(c in name for c in "*?[")]

    @classmethod
    def open(cls, config: Config, env: Mapping[str, str] = os.environ) -> "Gateway":
        """Open stores and connections. Raises ConfigError."""
        opened = called(config, env)
        ledger = Ledger.open(config.ledger.url, config.ledger.capture, config.ledger.flush_interval_s)
        return cls(config, opened, ledger, *sessions(config))

    def reopened(self, config: Config, opened: Called) -> "Gateway":
        """The gateway that serves new turns by `config` instead of this one; running turns go on with this one.

        Everything else is shared: stores, memory, counts, canaries, and what is known of targets that stay. `opened`: by
        `called`, with this one as `before`. Call it on the event loop.
        """
        after = copy.copy(self)
        after.judges = Judges(opened.judges, config.routes, self.judges)
        after.library = Library(opened.shelves, self.internal_error, self.library)
        after._configure(config, opened)
        after.attendant.keepalive_after_s = config.server.keepalive_after_s
        after.models.succeed(self.models, lambda upstream: upstream.max_connections)
        after.judges.models.succeed(self.judges.models, lambda upstream: upstream.judge_connections)
        return after

    def start(self) -> None:
        """Begin the background work; needs a running loop."""
        self.loop = asyncio.get_running_loop()
        self.attendant.start()
        self.canaries.start()
        self.shadows.start()

    async def close(self) -> None:
        """Flush and close everything; running turns are over by now."""
        self.closing = True
        await self.attendant.stop()
        await self.canaries.close()
        await self.shadows.close()
        await self.models.close()
        await self.judges.models.close()
        self.library.close()
        await self.sessions.close()
        await asyncio.to_thread(self.ledger.close)
        if self.exporter is not None:
            await asyncio.to_thread(self.exporter.close)

    def finished(self, record: TurnRecord) -> None:
        """A turn is over: record, count and export it."""
        self.ledger.append(record)
        metrics = self.metrics
        metrics.in_flight -= 1
        metrics.request(record.format, record.status)
        metrics.observe(record)
        budgets = self.judges.budgets
        if budgets and record.route in budgets:
            spent = sum(call.cost_usd or 0.0 for call in record.calls if call.purpose in ANSWERING)
            budgets[record.route].answered(spent, time.time())
        if self.exporter is not None:
            self.exporter.export(record)

    def internal_error(self, error: Exception) -> None:
        """Count a fault of our own, and log where it happened (never what it was working on)."""
        self.metrics.internal_error(type(error).__name__)
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
        logging.getLogger("turnout").error("internal error %s at %s", type(error).__name__, where)

    def route(self, model: str) -> Route:
        """The route a client means by `model`. Raises ClientError (404) naming the nearest routes."""
        route = self._routes.get(model)
        if route is not None:
            return route
        for pattern, matched in self._patterns:
            if fnmatch.fnmatchcase(model, pattern):
                return matched
        names = self.models_offered()
        if not model:
            raise ClientError(
                f"`model` is missing: it names a route, such as {', '.join(names[:5])}",
                status=400,
                code="invalid_request",
                param="model",
            )
        near = difflib.get_close_matches(model, names, n=3, cutoff=0.4) or names[:5]
        raise ClientError(
            f"no route or alias is called {model!r}; nearest: {', '.join(near)}. A route's table name in the "
            "configuration is the model name that clients send",
            status=404,
            code="model_not_found",
            param="model",
        )

    def tenant(self, headers: Mapping[bytes, bytes], came_as: Format) -> str:
        """The tenant whose key the client sent; "" when keys are not used. Raises ClientError (401)."""
        if not self.client_keys:
            return ""
        name = None
        for header in _CREDENTIALS:
            name = name or self.client_keys.get(credential(headers.get(header, b"")))
        if name is None and self.config.server.require_keys:
            raise ClientError(
                "this gateway asks for a key: send a tenant's key as `Authorization: Bearer` or `x-api-key`",
                status=401,
                code="invalid_api_key",
            )
        return name or ""

    def without_keys(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """`headers` without the tenants' keys: they are for this gateway alone, even where a client's credentials pass."""
        keys = self.client_keys
        return [h for h in headers if h[0] not in _CREDENTIALS or credential(h[1]) not in keys]

    def models_offered(self) -> list[str]:
        """Model names clients may send, patterns left out."""
        return [name for name in self._routes if not any(c in name for c in "*?[")]

    async def read_ledger(self, read: Callable[[Ledger], R]) -> R:
        """What `read` finds in the ledger, looked up off the event loop."""
        return await asyncio.to_thread(read, self.ledger)

    def readiness(self) -> dict[str, Any]:
        """Whether this process can serve, and what stands in the way."""
        health = self.ledger.health()
        facts = self.models.facts()
        cooling = sorted(name for name, fact in facts.items() if not fact.healthy)
        stuck = [
            name
            for name, route in self.config.routes.items()
            if route.targets and all(not facts[target].healthy for target in route.targets)
        ]
        ready = health.ok and not stuck and not self.closing
        return {
            "ready": ready,
            "ledger": health,
            "sessions": {"reachable": self.sessions.reachable},
            "cooling_targets": cooling,
            "stuck_routes": stuck,
            "configuration": {"digest": self.config.digest, **msgspec.to_builtins(self.metrics.reloads)},
            "policies": {name: {"digest": r.policy, "version": r.version} for name, r in self.config.routes.items()},
        }


def sessions(config: Config) -> tuple[SessionStore, ResponseStore]:
    """The stores of lanes and of responses that the configuration names. Raises ConfigError."""
    url, ttl_s = config.sessions.url, config.sessions.ttl_s
    if url in ("memory:", "memory://", ""):
        responses = MemoryResponses(ttl_s=ttl_s, max_count=config.sessions.max_responses)
        return MemoryStore(ttl_s=ttl_s, max_lanes=config.sessions.max_lanes), responses
    if url.split(":", 1)[0] not in ("redis", "rediss"):
        raise ConfigError("expected `memory:`, redis://... or rediss://...", file=config.file, key="sessions.url")
    try:
        where = address.parse(url)
    except ConfigError as error:
        raise ConfigError(error.message, file=config.file, key=error.key) from None
    try:
        from turnout.sessions.redis import RedisStore
        from turnout.sessions.redis_responses import RedisResponses
    except ModuleNotFoundError:
        raise ConfigError(
            "the Redis client is not installed; run: pip install 'turnout[redis]'", file=config.file, key="sessions.url"
        ) from None
    lanes = RedisStore(where, ttl_s=ttl_s, within_s=config.sessions.within_s)
    return lanes, RedisResponses(lanes.link, ttl_s=ttl_s)
