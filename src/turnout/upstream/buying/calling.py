"""Makes the calls of a piece of work: patiently, since nobody waits at the other end, and each within its budget."""

import asyncio
import random
import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from turnout.conversation import Reply, Settings, Usage
from turnout.errors import ClientError, ConfigError, UpstreamError
from turnout.pricing import Prices, cost
from turnout.routing.core import Ask, Failure, Outcome, TargetName
from turnout.upstream.buying.budget import Budget, Held, Size
from turnout.upstream.credentials import Redactor
from turnout.upstream.health import LONGEST_RETRY_AFTER_S, Health
from turnout.upstream.http import Client
from turnout.upstream.models import Model, Models, Opened, Transport
from turnout.upstream.prepare import prepare
from turnout.upstream.retry import delay_s
from turnout.upstream.scripted import Script
from turnout.upstream.target import Target, Upstream
from turnout.wire.codec import Request

TRIES = 8
"""Requests that one call is worth while its server says that it has no time."""
LONGEST_DELAY_S = 30.0
REPLY_AT_MOST = 8 << 20
"""Bytes of a reply."""


class Called(Struct, frozen=True):
    """How a call ended and what it used. `usd` None: no price is known. `estimated`: what it used was not reported."""

    outcome: Outcome
    tries: int
    at: float
    took_s: float
    input_tokens: int
    output_tokens: int
    usd: float | None
    estimated: bool = False


def open_models(
    targets: Mapping[TargetName, Target],
    upstreams: Mapping[str, Upstream],
    keys: Mapping[str, str | None],
    prices: Prices,
    connections: int,
) -> Models:
    """The targets that take part, ready to be called; needs a running loop. `keys`: of the upstreams. Raises ConfigError."""
    client = Client(limit_per_host=connections)
    transports: dict[str, Transport] = {}
    models = {}
    for name, target in targets.items():
        upstream = upstreams[target.upstream]
        if upstream.forward_auth:
            message = "its upstream forwards a client's own credentials, and there is none here; give it an api_key_env"
            raise ConfigError(message, key=f"targets.{name}")
        if target.upstream not in transports:
            transports[target.upstream] = Script.load(upstream) if upstream.script else client
        once = msgspec.structs.replace(upstream, max_retries=0)
        transport = transports[target.upstream]
        # Only a stated pause closes a target for a while: other failures are retried here, call by call.
        models[name] = Model(name, target, once, keys.get(target.upstream), transport, prices, Health(()))
    return Models(models, (client,))


class Caller:
    """Makes calls whose size the budget already holds, and settles them there."""

    def __init__(self, models: Models, redactor: Redactor, budget: Budget, tries: int = TRIES) -> None:
        self._models = models
        self._redactor = redactor
        self._budget = budget
        self._tries = tries
        self._took_s: dict[str, float] = {}
        self._longer_by: dict[str, float] = {}

    def expected_s(self, target: str) -> float:
        """Seconds that a call to this target is likely to take, from those before; 0 before the first."""
        return self._took_s.get(target, 0.0)

    def sized(self, target: str, size: Size) -> Size:
        """The size of a call, enlarged where this target has reported longer prompts than they were taken for: its tokens are
        other than those of the estimate."""
        factor = self._longer_by.get(target, 1.0)
        if factor == 1.0:
            return size
        return Size(
            int(size.input_tokens * factor) + 1, size.output_tokens, None if size.usd is None else size.usd * factor
        )

    async def call(self, ask: Ask, held: Held) -> Called:
        """Make one call; a failure that may pass is waited for, as long as its server asks within reason."""
        try:
            called = await self._call(ask, held)
        except BaseException:
            held.settle(0, 0.0)
            raise
        held.settle(called.input_tokens + called.output_tokens, called.usd or 0.0)
        return called

    async def _call(self, ask: Ask, held: Held) -> Called:
        model, began = self._models[ask.target], time.monotonic()
        while True:
            sent_at = await self._pause(model)
            if not sent_at:
                return self._over(model, _OUT_OF_TIME, held, began)
            held.sent += 1
            try:
                reply = await self._reply(model, ask)
                self._took_s[ask.target] = _smoothed(self._took_s.get(ask.target), time.monotonic() - sent_at)
                return self._over(model, reply, held, began)
            except ClientError as error:
                return self._over(model, Failure("request", error.message), held, began)
            except UpstreamError as error:
                # A server that turned a request away charges nothing; one that broke off may.
                held.broken += error.sent and error.status is None
                wait_s = delay_s(error, held.sent - 1, self._budget.left_s(), LONGEST_DELAY_S, LONGEST_RETRY_AFTER_S)
                if wait_s is None or held.sent >= self._tries:
                    failure = Failure(error.kind, self._redactor.clean(error.message), error.status)
                    return self._over(model, failure, held, began)
                if limit := held.again():
                    failure = Failure(
                        error.kind,
                        f"no {limit} left to ask again: {self._redactor.clean(error.message)}",
                        reason="budget",
                    )
                    return self._over(model, failure, held, began)
            await asyncio.sleep(wait_s)

    async def _pause(self, model: Model) -> float:
        """Wait until the target may be called. Gives the monotonic time; 0 when the time is over first."""
        while wait_s := model.health.wait_s(time.monotonic()):
            left_s = self._budget.left_s()
            if left_s is not None and wait_s >= left_s:
                return 0.0
            await asyncio.sleep(wait_s + 0.05 * random.random())
        return time.monotonic()

    async def _reply(self, model: Model, ask: Ask) -> Reply:
        """One request and its whole reply. Raises UpstreamError, or ClientError for what the format cannot say."""
        request = Request(model.format, ask.conversation, ask.settings or Settings())
        prepared = prepare(request, model, stream=False)
        opened: Opened | None = None
        try:
            async with asyncio.timeout(ask.within_s):
                opened = await model.open(prepared.body, model.format, (), self._redactor)
                body = await opened.response.read(REPLY_AT_MOST)
                reply = model.codec.read_reply(body, request)
        except TimeoutError:
            error = UpstreamError("timeout", f"{ask.target} took longer than {ask.within_s:.3g} s", target=ask.target)
            if opened is not None:
                opened.failed(error)
            raise error from None
        except UpstreamError as failed:
            if opened is not None:
                opened.failed(failed)
            raise
        except BaseException:
            if opened is not None:
                opened.abort()
            raise
        opened.succeeded()
        return reply

    def _over(self, model: Model, outcome: Outcome, held: Held, began: float) -> Called:
        """How a call ended. What a server does not report counts as the most that a request could use, and so does each that
        broke off."""
        now, size = time.time(), held.size
        rates = model.rates(now)
        unreported = held.broken
        used = Usage(input_tokens=0, output_tokens=0)
        if isinstance(outcome, Reply):
            said = outcome.usage
            if said is None or said.prompt_tokens is None or said.output_tokens is None:
                unreported += 1
            else:
                used = said
                self._learn(model.name, said.prompt_tokens, size.input_tokens)
        tokens_in = (used.prompt_tokens or 0) + unreported * size.input_tokens
        tokens_out = (used.output_tokens or 0) + unreported * size.output_tokens
        priced = None if unreported else cost(used, rates).usd
        # A kind of token without a rate of its own counts as plain input.
        usd = priced if priced is not None else cost(Usage(input_tokens=tokens_in, output_tokens=tokens_out), rates).usd
        estimated = bool(unreported) or (usd is not None and priced is None)
        return Called(outcome, held.sent, now, time.monotonic() - began, tokens_in, tokens_out, usd, estimated)

    def _learn(self, target: str, prompt_tokens: int, taken_for: int) -> None:
        if prompt_tokens > taken_for:
            self._longer_by[target] = self._longer_by.get(target, 1.0) * prompt_tokens / taken_for


_OUT_OF_TIME = Failure("unavailable", "the time for it was over", reason="budget")


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else 0.8 * before + 0.2 * now
