"""A gateway served for a test, on a free port of this machine, in a thread of its own."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from turnout.gateway import config as configuration
from turnout.gateway.live import Live
from turnout.gateway.opened import Gateway
from turnout.gateway.serve import bind, server_config
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord


class Running:
    """A gateway that serves. `turns()` reads its ledger, newest first."""

    def __init__(self, url: str, ledger_url: str, live: Live, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.ledger_url = ledger_url
        self.live = live
        self.loop = loop

    @property
    def gateway(self) -> Gateway:
        """The gateway that serves now."""
        return self.live.gateway

    def reload(self) -> bool:
        """Take over what is on disk; whether that could be done."""
        return asyncio.run_coroutine_threadsafe(self.live.reload(), self.loop).result(20)

    def turns(self) -> tuple[TurnRecord, ...]:
        """All turns so far, newest first."""
        self.gateway.ledger.flush()
        ledger = Ledger.read(self.ledger_url)
        found: list[TurnRecord] = []
        before = ""
        try:
            while True:
                page = ledger.turns(limit=500, before=before)
                found += page.turns
                before = page.next
                if not before:
                    return tuple(found)
        finally:
            ledger.close()

    def settled(self) -> tuple[TurnRecord, ...]:
        """All turns once none is in flight, newest first."""
        until = time.monotonic() + 5
        while self.gateway.metrics.in_flight and time.monotonic() < until:
            time.sleep(0.005)
        return self.turns()

    def beside(self) -> None:
        """Wait until shadows have seen all turns that are over, and the ledger has what they decided."""
        until = time.monotonic() + 10
        while self.gateway.shadows.waiting and time.monotonic() < until:
            time.sleep(0.01)

    def tasks(self) -> int:
        """How many tasks the gateway's loop has."""
        return asyncio.run_coroutine_threadsafe(_tasks(), self.loop).result(5)


async def _tasks() -> int:
    return len(asyncio.all_tasks())


@contextmanager
def running(
    toml: str,
    folder: Path,
    *,
    env: dict[str, str] | None = None,
    capture: str = "signals",
    routers: Any = None,
    ledger_url: str = "",
) -> Iterator[Running]:
    """Serve the configuration `toml`; scripts are looked up in `folder`, where the ledger is kept too unless it has an address.
    `routers`: the union of routers it may name, where a test brings its own."""
    ledger_url = ledger_url or f"sqlite:///{folder / 'turnout.db'}"
    file = folder / "turnout.toml"
    file.write_text(f'{toml}\n[ledger]\nurl = "{ledger_url}"\ncapture = "{capture}"\nflush_interval_s = 0.05\n')
    config = configuration.load(file, env or {}, routers)
    ready = threading.Event()
    held: dict[str, Any] = {}

    async def serve() -> None:
        live = Live(Gateway.open(config, env or {}), lambda: configuration.load(file, env or {}, routers), env or {})
        listening = bind("127.0.0.1", 0)
        server = uvicorn.Server(server_config(live, "error"))
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # older uvicorn
        held.update(server=server, live=live, port=listening.getsockname()[1], loop=asyncio.get_running_loop())
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn only sets a flag
            await asyncio.sleep(0.005)
        ready.set()
        await serving

    thread = threading.Thread(target=lambda: held.update(result=_run(serve, held, ready)), daemon=True)
    thread.start()
    assert ready.wait(20)
    if "error" in held:
        raise held["error"]
    try:
        yield Running(f"http://127.0.0.1:{held['port']}", ledger_url, held["live"], held["loop"])
    finally:
        held["server"].should_exit = True
        thread.join(20)
        assert not thread.is_alive()
    if "error" in held:
        raise held["error"]


def _run(serve: Any, held: dict[str, Any], ready: threading.Event) -> None:
    try:
        asyncio.run(serve())
    except BaseException as error:
        held["error"] = error
        ready.set()


def script(folder: Path, name: str, *lines: dict[str, Any]) -> str:
    """Write a script of replies and return its file name."""
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)
