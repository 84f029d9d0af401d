"""The configured targets, opened: each knows its wire format, its address and credentials, its health."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from turnout.conversation import Edit, Format, Instruction
from turnout.conversation.edits import Effort
from turnout.errors import UpstreamError, afresh
from turnout.pricing.caching import caching_of
from turnout.pricing.prices import Prices
from turnout.pricing.rates import Rates
from turnout.routing.core import TargetFacts, TargetName
from turnout.upstream.credentials import Headers, Redactor, fixed_headers, header_text, passed_headers
from turnout.upstream.health import Health
from turnout.upstream.http import Client, Timeouts, Url
from turnout.upstream.retry import delay_s
from turnout.upstream.target import Target, Upstream
from turnout.wire import CODECS
from turnout.wire.anthropic import MESSAGES
from turnout.wire.anthropic.thinking import fit_thinking
from turnout.wire.chat import CHAT
from turnout.wire.codec import Codec, Request, Written
from turnout.wire.drops import Drop

_HOUR_MARK = re.compile(rb'("cache_control"\s*:\s*\{[^{}]*?"ttl"\s*:\s*)"1h"')
BYTES_A_TOKEN = 2
"""A body of fewer bytes for each token of the least that is cached holds too short a prompt to be cached."""
_NEVER = 1 << 62
ERROR_BODY_LIMIT = 256 * 1024
_PATHS: Mapping[Format, str] = {
    "openai_chat": "/chat/completions",
    "openai_responses": "/responses",
    "anthropic_messages": "/messages",
}


class Answering(Protocol):
    """A response on its way: what transports give."""

    status: int
    headers: list[tuple[bytes, bytes]]

    async def next(self) -> bytes | None:
        """All bytes received so far; None at the clean end. Raises UpstreamError on a cut or a stall."""
        ...

    def header(self, name: bytes) -> bytes | None: ...

    async def read(self, limit: int) -> bytes: ...

    def abort(self) -> None: ...


class Transport(Protocol):
    """Sends a request and gives the response once its head is in."""

    async def send(
        self, method: str, url: Url, headers: Sequence[tuple[bytes, bytes]], body: bytes, timeouts: Timeouts
    ) -> Answering: ...

    async def close(self) -> None: ...


class Model:
    """One target, ready to be called. `watched_from`: bytes of a request from which its prompt may be cached."""

    __slots__ = (
        "_prices",
        "codec",
        "edits",
        "extra_body",
        "facts",
        "fits",
        "fixed",
        "format",
        "headers",
        "health",
        "keeps_responses",
        "model_json",
        "name",
        "target",
        "timeouts",
        "transport",
        "upstream",
        "url",
        "watched_from",
    )

    def __init__(
        self,
        name: str,
        target: Target,
        upstream: Upstream,
        key: str | None,
        transport: Transport,
        prices: Prices | None = None,
        health: Health | None = None,
    ) -> None:
        self.name = TargetName(name)
        self.target = target
        self.upstream = upstream
        self.format: Format = upstream.format
        self.keeps_responses = (
            upstream.format == "openai_responses" and upstream.keeps_responses and not upstream.script
        )
        self.codec: Codec = CODECS[upstream.format]
        self.transport = transport
        self.url = Url(address(upstream))
        self.fixed: Headers = fixed_headers(upstream, key)
        self.fits = upstream.format == "anthropic_messages" and (target.thinking or target.cache_ttl) is not None
        self.timeouts = Timeouts(
            connect_s=upstream.connect_s, first_byte_s=upstream.first_byte_s, idle_s=upstream.idle_s
        )
        self.model_json = msgspec.json.encode(target.model)
        self.extra_body: dict[str, object] = {**upstream.body, **target.extra_body}
        edits: list[Edit] = []
        if target.prompt:
            edits.append(Instruction(target.prompt))
        if target.effort:
            edits.append(Effort(target.effort))
        self.edits: tuple[Edit, ...] = tuple(edits)
        self.headers = ((b"x-turnout-target", header_text(name)), (b"x-turnout-model", header_text(target.model)))
        self.health = health or Health()
        self._prices = prices
        priced = self.rates(time.time())
        rates = priced or Rates()
        self.facts = TargetFacts(
            name=self.name,
            model=target.model,
            format=upstream.format,
            context_window=target.context_window,
            capabilities=None if target.capabilities is None else frozenset(target.capabilities),
            input_price=rates.input,
            output_price=rates.output,
            cache_read_price=rates.cache_read,
            cache_write_price=rates.cache_write_5m,
            rates=priced,
            caching=caching_of(target.price_id or target.model, upstream.format, priced),
        )
        least = self.facts.caching.least_tokens if self.facts.caching is not None else None
        self.watched_from = _NEVER if least is None else least * BYTES_A_TOKEN

    def like(self, before: "Models") -> "Model":
        """This model, as well as it was in `before`: what is known of the health of the same one there holds for it too."""
        if self.name in before:
            old = before[self.name]
            if old.target.model == self.target.model and old.place == self.place:
                self.health = old.health
        return self

    @property
    def place(self) -> tuple[str, str, Headers]:
        """Where and as whom it is called."""
        return address(self.upstream), self.upstream.script, self.fixed

    def rates(self, at: float) -> Rates | None:
        """The prices of this target at `at` (Unix seconds); None when unpriced."""
        if self._prices is None:
            return None
        target = self.target
        return self._prices.rates(
            target.price_id or target.model, base_url=self.upstream.base_url, override=target.price, at=at
        )

    def write_request(self, request: Request) -> Written:
        """`request` in this target's format."""
        target = self.target
        if self.format == "openai_chat":
            return CHAT.write_request(
                request, reasoning_content=target.reasoning_content, developer_role=target.developer_role
            )
        if self.format == "anthropic_messages":
            return MESSAGES.write_request(request, default_max_tokens=target.max_tokens, cache_marks=target.cache_marks)
        return self.codec.write_request(request, default_max_tokens=target.max_tokens)

    def fit(self, body: bytes) -> tuple[bytes, tuple[Drop, ...]]:
        """A Messages body as this target takes it: its way of thinking, its cache lifetimes; and what that changed."""
        target = self.target
        drops: tuple[Drop, ...] = ()
        if target.thinking is not None:
            body, drops = fit_thinking(body, target.thinking)
        if target.cache_ttl == "5m" and b'"1h"' in body:
            body, times = _HOUR_MARK.subn(rb'\1"5m"', body)
            if times:
                drops += (Drop("cache_control.ttl", "downgraded", "the target caches for 5 minutes only"),)
        return body, drops

    async def open(
        self,
        body: bytes,
        came_as: Format,
        client_headers: Sequence[tuple[bytes, bytes]],
        redactor: Redactor,
        until: float | None = None,
        retried: Callable[[UpstreamError], None] | None = None,
    ) -> "Opened":
        """Call the model; the response once a 2xx head is in. Same-target retries happen here.

        `until`: the turn's deadline on the monotonic clock. `retried` is told of every failure that is tried again.
        Raises UpstreamError (`target` set, texts without secrets) once this target has finally failed, ClientError when
        credentials cannot be forwarded.
        """
        headers = passed_headers(self.upstream, self.fixed, came_as, client_headers)
        health, attempt = self.health, 0
        while True:
            waiting = health.wait_s(time.monotonic()) if health.cooling_until else 0.0
            if waiting:
                raise self._cooling(waiting)
            health.begin()
            try:
                response = await self.transport.send("POST", self.url, headers, body, self.timeouts)
                if 200 <= response.status < 300:
                    return Opened(self, response)
                error = await self._refusal(response, redactor.with_credentials(headers))
            except UpstreamError as failed:
                error = self.own(failed.with_traceback(None))
            except BaseException:
                health.abandoned()
                raise
            wait = None
            # A probe of a target that is cooling down is one call: whether it fails is all that is asked.
            if attempt < self.upstream.max_retries and not health.cooling_until:
                wait = delay_s(error, attempt, None if until is None else until - time.monotonic())
            if wait is None:
                health.failed(error, time.monotonic())
                raise afresh(error)
            attempt += 1
            if retried is not None:
                retried(error)
            await asyncio.sleep(wait)

    def own(self, error: UpstreamError) -> UpstreamError:
        """`error` as a failure of this target: by its name, since addresses of upstreams are not for clients."""
        error.target = error.target or self.name
        error.message = error.message.replace(self.url.origin, f"target {self.name}")
        return error

    async def _refusal(self, response: Answering, redactor: Redactor) -> UpstreamError:
        body = redactor.clean_bytes(await response.read(ERROR_BODY_LIMIT))
        error = self.codec.read_error(response.status, response.headers, body)
        error.target = self.name
        if isinstance(error.body, dict) and isinstance(error.body.get("error"), dict):
            error.answer, error.answer_format = body, self.format
        return error

    def _cooling(self, wait_s: float) -> UpstreamError:
        if self.health.rate_limited:
            return UpstreamError(
                "rate_limit",
                f"target {self.name} is rate limited; try again in {math.ceil(wait_s)} s",
                status=429,
                retry_after_s=wait_s,
                target=self.name,
            )
        return UpstreamError(
            "unavailable",
            f"target {self.name} is cooling down after repeated failures; try again in {math.ceil(wait_s)} s",
            status=503,
            retry_after_s=wait_s,
            target=self.name,
        )


class Opened:
    """A 2xx response of a model. Report how it ended with `succeeded` or `failed`, or `abort` it."""

    __slots__ = ("model", "response")

    def __init__(self, model: Model, response: Answering) -> None:
        self.model = model
        self.response = response

    def succeeded(self) -> None:
        """The whole reply came."""
        if self.model.health.cooling_until or self.model.health.failures:
            self.model.health.succeeded()

    def failed(self, error: UpstreamError) -> None:
        """The reply broke or carried a failure."""
        self.model.own(error)
        self.model.health.failed(error, time.monotonic())
        self.response.abort()

    def abort(self) -> None:
        """Close the connection at once: nobody wants the rest."""
        self.model.health.abandoned()
        self.response.abort()


class Models:
    """All targets by name, and the snapshot of them that routers see."""

    def __init__(self, models: Mapping[TargetName, Model], transports: Sequence[Transport]) -> None:
        self._models = dict(models)
        self._transports = tuple(transports)
        self._all_well: dict[TargetName, TargetFacts] = {name: model.facts for name, model in models.items()}

    def __getitem__(self, name: TargetName) -> Model:
        return self._models[name]

    def __contains__(self, name: object) -> bool:
        return name in self._models

    def __iter__(self) -> Iterator[Model]:
        return iter(self._models.values())

    def facts(self) -> Mapping[TargetName, TargetFacts]:
        """The targets as routers may see them now."""
        cooling = [m for m in self._models.values() if m.health.cooling_until]
        if not cooling:
            return self._all_well
        now = time.monotonic()
        facts = dict(self._all_well)
        for model in cooling:
            if model.health.wait_s(now):
                facts[model.name] = msgspec.structs.replace(model.facts, healthy=False)
        return facts

    def succeed(self, before: "Models", limit: Callable[[Upstream], int]) -> None:
        """From now on new turns are served by these models instead of `before`.

        Connections to upstreams that these do not have are closed, busy ones when what they do is over. `limit`: how many may be
        open at once to an upstream. Call it on the event loop.
        """
        for client in self._clients():
            used = [model for model in self if model.transport is client]
            client.keep({model.url.origin for model in used}, max((limit(m.upstream) for m in used), default=1))
        for old in before._clients():
            if old not in self._transports:
                old.keep((), 1)
                if old.connections:
                    self._transports = (*self._transports, old)

    def _clients(self) -> list[Client]:
        return [transport for transport in self._transports if isinstance(transport, Client)]

    async def close(self) -> None:
        """Close every connection."""
        for transport in self._transports:
            await transport.close()


def address(upstream: Upstream) -> str:
    """The URL requests go to; `base_url` may come with or without `/v1`."""
    base = (upstream.base_url or "http://scripted.invalid").rstrip("/")
    path = _PATHS[upstream.format]
    if base.endswith(path):
        return base
    tail = base.rsplit("/", 1)[-1]
    versioned = len(tail) > 1 and tail[0] == "v" and tail[1].isdigit()
    return base + path if versioned else f"{base}/v1{path}"
