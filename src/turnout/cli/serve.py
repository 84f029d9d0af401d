"""`turnout serve`: run the gateway."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from turnout.cli import exits, options, output, ports

if TYPE_CHECKING:
    from turnout.gateway.config import Config

LogLevel = Literal["debug", "info", "warning", "error"]


def serve(
    file: options.ConfigFile = options.DEFAULT_FILE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any free one.")] = 4000,
    log_level: Annotated[LogLevel | None, typer.Option(help="Overrides the file's [server] log_level.")] = None,
    ledger: Annotated[str, typer.Option(metavar="URL", help="Record turns there, not where the file says.")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Run the gateway.

    SIGTERM or Ctrl-C end it after the running turns."""
    from turnout.gateway.config import load

    config = load(file)
    port = port or ports.free_port(host)
    ports.require_free(host, port)
    announce(config, host, port, as_json)
    sys.stdout.flush()
    sys.stderr.flush()
    given = [str(file), host, str(port), log_level or "", ledger]
    os.execv(sys.executable, [sys.executable, "-m", "turnout.gateway", *given])


def announce(config: "Config", host: str, port: int, as_json: bool) -> None:
    """Say where the gateway will be, and how to point agents at it."""
    url = address(host, port)
    if as_json:
        output.emit({"url": url, "routes": list(config.routes), "digest": config.digest, "pid": os.getpid()})
        return
    route = next(iter(config.routes))
    output.say(f"turnout on {url}   routes: {', '.join(config.routes)}   config {config.digest}")
    output.say(
        f'  try     curl {url}/v1/route -d \'{{"model":"{route}","messages":[{{"role":"user","content":"hi"}}]}}\''
    )
    output.say(f"  claude  turnout launch claude --url {url} --route {route}")
    output.say(f"  codex   turnout launch codex --url {url} --route {route}")
    output.say(f"  watch   {url}/dashboard")
    if host not in ("127.0.0.1", "localhost", "::1") and not config.server.require_keys:
        output.say("  warning: anyone who reaches this address may use it; set require_keys and tenants in [server]")
    from turnout.gateway.checking import concerns

    for key, message in concerns(config):
        output.say(f"  note: {key}: {message}")


def address(host: str, port: int) -> str:
    """The URL at which this machine reaches a server listening on `host`."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}"


def require_route(names: Any, wanted: str) -> str:
    """The route to use: the wanted one if it exists, else the first. `names`: the model names that are served."""
    known = list(names)
    if wanted and wanted not in known:
        from turnout.gateway.tables import nearest

        raise exits.CommandError(f"unknown route `{wanted}`", exits.NOT_FOUND, nearest(wanted, known, "routes"))
    if not known:
        raise exits.CommandError("the gateway serves no routes", exits.NOT_FOUND)
    return wanted or str(known[0])
