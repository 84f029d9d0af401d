"""The gateway that serves now, and its replacement by one with another configuration while turns are running."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turnout.errors import ConfigError
from turnout.gateway.config import Config
from turnout.gateway.opened import Gateway, called
from turnout.gateway.stamps import Stamp, stamp

_log = logging.getLogger("turnout")
SETTLE_S = 0.25
"""A file that has just changed is looked at again after this time: one that is still being written is left alone."""
_NOT_RUNNING_S = 1.0
"""How often it is looked whether files are to be looked at, while they are not."""


class Live:
    """Serves by `gateway`, which `reload` replaces. Whoever serves a turn reads `gateway` once and stays with it.

    `load`: gives the configuration as it is on disk now, raises ConfigError; None = there is nothing to reload. `say`: told, in a
    line, what was taken over.
    """

    def __init__(
        self,
        gateway: Gateway,
        load: Callable[[], Config] | None = None,
        env: Mapping[str, str] = os.environ,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.gateway = gateway
        self._load = load
        self._env = env
        self._say = say
        self._alone = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._seen: Stamp = stamp(gateway.config)

    def start(self) -> None:
        """Begin to serve, and to look for changes; needs a running loop."""
        self.gateway.start()
        if self._load is not None:
            self._begin(self._for_ever(), "reloading")

    async def close(self) -> None:
        """Stop looking for changes, and close everything; running turns are over by now."""
        for task in tuple(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.gateway.close()

    def reload_soon(self) -> None:
        """Reload, without waiting for it (SIGHUP)."""
        self._begin(self.reload(), "reload")

    def _begin(self, work: Any, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _for_ever(self) -> None:
        while True:
            every_s = self.gateway.config.server.reload_every_s
            await asyncio.sleep(every_s or _NOT_RUNNING_S)
            if every_s:
                await self.look()

    async def look(self) -> None:
        """Reload if a file has changed since the last time and is whole by now."""
        try:
            now = await asyncio.to_thread(stamp, self.gateway.config)
            if now == self._seen:
                return
            await asyncio.sleep(SETTLE_S)
            if await asyncio.to_thread(stamp, self.gateway.config) == now:
                await self.reload()
        except Exception as error:
            # Looking must go on, whatever a disk says.
            self.gateway.internal_error(error)

    async def reload(self) -> bool:
        """Serve new turns by what is on disk now; whether that could be done. Where it is wrong all stays as it is, and the error
        is logged and kept for the pages that show it."""
        if self._load is None:
            return False
        async with self._alone:
            reloads = self.gateway.metrics.reloads
            try:
                self._seen = await asyncio.to_thread(stamp, self.gateway.config)
                config = await asyncio.to_thread(self._load)
                await self._take(config)
            except Exception as error:
                # A mistake of the operator's, or a fault of ours: running turns and new ones must not feel it.
                if not isinstance(error, ConfigError):
                    self.gateway.internal_error(error)
                    error = ConfigError(f"internal error ({type(error).__name__})")
                reloads.failed += 1
                reloads.failed_at = time.time()
                reloads.error = str(error)
                _log.error("not reloaded, the configuration before stays: %s", error)
                return False
            reloads.done += 1
            reloads.at = time.time()
            reloads.error = ""
            return True

    async def _take(self, config: Config) -> None:
        before = self.gateway
        if keys := list(fixed(before.config, config)):
            message = "is changed by a restart only, so nothing of this file was taken over: restart, or put the old value back"
            raise ConfigError(message, file=config.file, key=", ".join(keys))
        opened = await asyncio.to_thread(called, config, self._env, before)
        await asyncio.to_thread(before.canaries.follow, config)
        # From here to the end nothing waits: a turn is served by the one or the other.
        self.gateway = before.reopened(config, opened)
        self.gateway.canaries.start()
        self.gateway.shadows.follow(config)
        self._seen = await asyncio.to_thread(stamp, config) if config.policies != before.config.policies else self._seen
        if config != before.config:
            self._say(f"turnout: reloaded {config.file}: {'; '.join(changes(before.config, config))}")


def fixed(before: Config, after: Config) -> Iterator[str]:
    """The keys that differ and are read at the start only."""
    for table in ("ledger", "sessions"):
        for key in getattr(before, table).__struct_fields__:
            if getattr(getattr(before, table), key) != getattr(getattr(after, table), key):
                yield f"{table}.{key}"
    for key in ("log_level", "shutdown_s"):
        if getattr(before.server, key) != getattr(after.server, key):
            yield f"server.{key}"


def changes(before: Config, after: Config) -> list[str]:
    """What a reload changed, for people."""
    said = []
    for name, route in after.routes.items():
        old = before.routes.get(name)
        if old is None:
            said.append(f"route {name} is new")
        elif old.policy != route.policy:
            said.append(f"route {name} is decided by {route.policy}, before by {old.policy}")
    said += [f"route {name} is no more" for name in before.routes if name not in after.routes]
    for name, shadow in after.shadows.items():
        if before.shadows.get(name) != shadow:
            said.append(f"shadow {name} decides by {shadow.by.policy} beside route {shadow.route}")
    said += [f"shadow {name} is no more" for name in before.shadows if name not in after.shadows]
    return said or ["no route decides otherwise"]
