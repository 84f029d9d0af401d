"""The link to a Redis server that may be slow or away: every command is short, and a request never fails by one."""

import asyncio
import logging
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from turnout.sessions.address import Address

CALL_S = 0.5
"""Longest that a command may take, connecting included."""
PATIENCE_S = 1.0
"""How long after its first attempt a write may begin another."""
COOLING_S = 1.0
"""For how long nothing is asked of a server that did not answer."""
_PAUSES_S = (0.05, 0.1, 0.2, 0.4)
_LOG_EVERY_S = 60.0

Operation: TypeAlias = Literal["load", "commit", "find", "keep", "look"]
Trouble: TypeAlias = Literal[
    "timeout", "unavailable", "refused", "fault", "skipped", "given_up", "conflict", "contended", "undecodable", "too_large"
]  # fmt: skip


class Away(Exception):
    """A command was not carried out; counted and logged already. `passing`: trying again at once makes sense."""

    def __init__(self, passing: bool) -> None:
        super().__init__("the session store is away")
        self.passing = passing


class Link:
    """One gateway's connections to a Redis server. Belongs to the event loop it is first used in.

    `within_s`: longest that a command may take, connecting included; `CALL_S` when None.
    `trouble`: what went wrong, counted by operation and kind. After a command that got no answer, others are not even tried
    for `COOLING_S`, so that a server that is away costs one request its `within_s` and not every request. `outages`: how often it
    has stopped answering.
    """

    def __init__(self, address: Address, within_s: float | None = None) -> None:
        self.address = address
        self.within_s = CALL_S if within_s is None else within_s
        self.trouble: dict[tuple[str, ...], float] = defaultdict(float)
        self.outages = 0
        tls: dict[str, Any] = {"ssl": True, **address.options} if address.tls else {}
        self._client = Redis(
            host=address.host,
            port=address.port,
            db=address.db,
            username=address.username,
            password=address.password,
            socket_timeout=self.within_s,
            socket_connect_timeout=self.within_s,
            # A connection that the server closed while it was idle is replaced at once.
            retry=Retry(NoBackoff(), 1, (exceptions.ConnectionError,)),
            protocol=2,
            **tls,
        )
        self._execute: Callable[..., Awaitable[Any]] = self._client.execute_command
        self._away_until = 0.0
        self._logged_at = -_LOG_EVERY_S
        self._is_logged = False

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    @property
    def reachable(self) -> bool:
        """Whether the server answered when it was last asked."""
        return not self._away_until

    async def look(self) -> bool:
        """Whether the server answers; one that just did not is not asked."""
        try:
            await self.call("look", b"PING")
        except Away:
            pass
        return self.reachable

    def count(self, operation: Operation, kind: Trouble) -> None:
        """Count something that went wrong."""
        self.trouble[operation, kind] += 1

    async def call(self, operation: Operation, *command: Any, again: bool = False) -> Any:
        """The answer to a command. `again`: ask also a server that did not answer just now. Raises Away."""
        if self._away_until:
            now = time.monotonic()
            if now < self._away_until and not again:
                self.count(operation, "skipped")
                raise Away(passing=False)
            # This call finds out whether the server is back; the others go on without it meanwhile.
            self._away_until = now + self.within_s
        try:
            async with asyncio.timeout(self.within_s):
                answer = await self._execute(*command)
        except exceptions.NoScriptError:
            if self._away_until:
                self._back()
            raise
        except Exception as error:
            # Whatever the client library raises, the request goes on: it loses some memory, never its answer.
            raise Away(passing=self._failed(operation, error)) from None
        if self._away_until:
            self._back()
        return answer

    async def insist(self, operation: Operation, *command: Any) -> Any:
        """As `call`, tried again for about a second, unless the server was known to be away. Raises Away."""
        until = time.monotonic() + PATIENCE_S
        try:
            return await self.call(operation, *command)
        except Away as away:
            if not away.passing:
                raise
        for pause in _PAUSES_S:
            pause *= random.uniform(0.5, 1.5)
            if time.monotonic() + pause > until:
                break
            await asyncio.sleep(pause)
            try:
                return await self.call(operation, *command, again=True)
            except Away as away:
                if not away.passing:
                    break
        raise Away(passing=False)

    def _failed(self, operation: Operation, error: Exception) -> bool:
        """Count and log a failure; whether it may pass by itself."""
        kind: Trouble = "fault"
        if isinstance(error, TimeoutError | exceptions.TimeoutError):
            kind = "timeout"
        elif isinstance(error, OSError | exceptions.ConnectionError):
            kind = "unavailable"
        elif isinstance(error, exceptions.RedisError):
            kind = "refused"
        self.count(operation, kind)
        now = time.monotonic()
        passing = kind in ("timeout", "unavailable")
        if passing:
            self.outages += not self._away_until
            self._away_until = now + COOLING_S
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at, self._is_logged = now, True
            # The error's own words are left out: they may quote what was sent.
            logging.getLogger("turnout").warning(
                "sessions in Redis at %r: %s failed (%s); turns go on with what this gateway still knows of their lanes",
                self.address,
                operation,
                type(error).__name__,
            )
        return passing

    def _back(self) -> None:
        self._away_until = 0.0
        if self._is_logged:
            self._is_logged = False
            logging.getLogger("turnout").warning("sessions in Redis at %r: reachable again", self.address)
