"""Runs the gateway as a server process."""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable

import uvicorn

from turnout.errors import ConfigError
from turnout.gateway.app import application
from turnout.gateway.config import Config
from turnout.gateway.connection import Connection
from turnout.gateway.live import Live
from turnout.gateway.memory import spare_the_collector, trim_for_ever
from turnout.gateway.opened import Gateway
from turnout.gateway.stopping import Server, on_hang_up


def run(load: Callable[[], Config], host: str = "127.0.0.1", port: int = 4000, *, log_level: str = "") -> None:
    """Serve until SIGTERM or SIGINT; returns after running turns have ended and the ledger is flushed.

    `load` gives the configuration as it is on disk, now and after every change of it or at SIGHUP. Raises ConfigError when it is
    wrong at the start, the address cannot be bound or a store cannot be opened.
    """
    config = load()
    listening = bind(host, port)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(config, load, listening, log_level or config.server.log_level))


async def _serve(config: Config, load: Callable[[], Config], listening: socket.socket, log_level: str) -> None:
    live = Live(Gateway.open(config), load, say=_say)
    server = Server(server_config(live, log_level), config.server.shutdown_s)
    on_hang_up(live.reload_soon, server)
    spare_the_collector()
    host, port = listening.getsockname()[:2]
    count = "1 route" if len(config.routes) == 1 else f"{len(config.routes)} routes"
    _say(f"turnout: serving {count} on http://{host}:{port}")
    trimming = asyncio.create_task(trim_for_ever(), name="trimming")
    try:
        await server.serve(sockets=[listening])
    finally:
        trimming.cancel()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def server_config(live: Live, log_level: str) -> uvicorn.Config:
    """How uvicorn serves a gateway: nothing in the hot path that is not needed there."""
    return uvicorn.Config(
        application(live),
        http=Connection,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning" if log_level == "info" else log_level,
        log_config=None if log_level == "off" else uvicorn.config.LOGGING_CONFIG,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        backlog=2048,
    )


def bind(host: str, port: int) -> socket.socket:
    """A listening socket without Nagle's delay on what it accepts. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another with --port"
        ) from None
    listening.setblocking(False)
    return listening


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        logging.getLogger("turnout").warning("uvloop is not installed; the gateway will be slower")
        return None
    return uvloop.new_event_loop  # type: ignore[return-value]  # a factory is what Runner wants
