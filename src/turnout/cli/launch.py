"""`turnout launch`: run a coding agent on a gateway without touching its global settings."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import agents, exits, gateways, options, output
from turnout.cli.serve import require_route

if TYPE_CHECKING:
    from turnout.gateway.config import Config

_INSTALL = {"claude": "npm install -g @anthropic-ai/claude-code", "codex": "npm install -g @openai/codex"}


class Agent(StrEnum):
    """The agents that `launch` knows."""

    CLAUDE = "claude"
    CODEX = "codex"


def launch(
    agent: Annotated[Agent, typer.Argument(help="Which agent to start.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Passed on to the agent.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Start a gateway with this file.")] = None,
    url: Annotated[str, typer.Option(metavar="URL", help="Use this running gateway.")] = "",
    route: Annotated[str, typer.Option(metavar="NAME", help="Route to use as the model; default: the first.")] = "",
    small_route: Annotated[str, typer.Option(metavar="NAME", help="Route for Claude Code's background calls.")] = "",
    key_env: Annotated[str, typer.Option(metavar="VAR", help="Variable with the key the gateway asks for.")] = "",
    keep_login: Annotated[bool, typer.Option(help="Keep the agent's own login (upstreams with forward_auth).")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the settings instead of starting the agent.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Start Claude Code or Codex on a gateway.

    The agent's own arguments stand behind `--`: turnout launch claude --route coder -- -p "fix the tests".

    Without --config and --url: the gateway at http://127.0.0.1:4000 if one runs there, else one is started with
    ./turnout.toml. Nothing outside the agent's process changes. Exits with the agent's own code.
    """
    if config is not None and url:
        raise exits.CommandError("--config and --url exclude each other", step="leave one out")
    key = _key(key_env)
    if not url and config is None:
        if show or gateways.alive(gateways.DEFAULT_URL):
            url = gateways.DEFAULT_URL
        elif options.DEFAULT_FILE.exists():
            config = options.DEFAULT_FILE
        else:
            step = "`turnout init` writes a configuration; or name a gateway with --url"
            raise exits.CommandError(
                f"no gateway at {gateways.DEFAULT_URL} and no {options.DEFAULT_FILE} here", step=step
            )
    loaded = _loaded(config, check_secrets=not show)
    names = (
        list(loaded.by_model())
        if loaded
        else ([route] if show and route else gateways.served(url, key if key_env else ""))
    )
    route = require_route(names, route)
    if small_route:
        require_route(names, small_route)
    keep_login = keep_login or (loaded is not None and _forwards(loaded, route))

    def wired(at: str) -> agents.Wiring:
        # Settings that are printed name the variable of a key, never the key.
        own = None if keep_login else f"${{{key_env}}}" if show and key_env else key
        window = _window(loaded, route)
        if agent is Agent.CLAUDE:
            return agents.claude(at, route, own, small_route, window)
        return agents.codex(at, route, own, window)

    if show:
        _print(wired(gateways.base(url) if url else gateways.DEFAULT_URL), as_json)
        return
    program = shutil.which(agent)
    if program is None:
        raise exits.CommandError(f"{agent} is not installed", exits.NOT_FOUND, f"`{_INSTALL[agent]}`")
    with contextlib.ExitStack() as stack:
        at = gateways.base(url) if url else stack.enter_context(gateways.started(config or options.DEFAULT_FILE))
        output.say(f"{agent} on {at}, route {route}")
        code = _run([program, *(arguments or [])], wired(at), stack)
    raise typer.Exit(code)


def _run(command: list[str], wiring: agents.Wiring, stack: contextlib.ExitStack) -> int:
    home = None
    if wiring.home:
        home = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-home-", ignore_cleanup_errors=True))
        )
        agents.furnish(home, wiring, Path(os.environ.get(wiring.home) or Path.home() / ".codex"))
    process = subprocess.Popen(command, env=wiring.environment(os.environ, home))
    # While the agent has the terminal, Ctrl-C is its own business; a request to end, or the news that
    # the terminal is gone, is passed on to it.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with gateways.on_end(process.send_signal):
            return process.wait()
    finally:
        signal.signal(signal.SIGINT, interrupt)


def _key(variable: str) -> str:
    """What the agent sends as its key to the gateway."""
    return gateways.key_in(variable) if variable else agents.PLACEHOLDER


def _loaded(config: Path | None, check_secrets: bool) -> "Config | None":
    if config is None:
        return None
    from turnout.gateway.config import load

    return load(config, os.environ if check_secrets else None)


def _forwards(config: "Config", route: str) -> bool:
    targets = config.by_model()[route].targets
    return any(config.upstreams[config.targets[name].upstream].forward_auth for name in targets)


def _window(config: "Config | None", route: str) -> int | None:
    """The smallest context window behind a route: what every one of its targets can take."""
    if config is None:
        return None
    windows = [config.targets[name].context_window for name in config.by_model()[route].targets]
    known = [window for window in windows if window is not None]
    return min(known) if len(known) == len(windows) and known else None


def _print(wiring: agents.Wiring, as_json: bool) -> None:
    """Settings to copy."""
    if as_json:
        output.emit(wiring)
    else:
        output.emit_text(wiring.script())
