"""`turnout demo`: recorded sessions through a real gateway, with nothing to set up."""

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import gateways, options, output
from turnout.cli.records import Records

if TYPE_CHECKING:
    from rich.console import Console

    from turnout.demo.bill import Bill
    from turnout.demo.session import Session
    from turnout.ledger.trace import TurnRecord

PAUSE_S = 0.7
WIDTH_AT_MOST = 118
ROUTED = "coder"
_ALONE = ("all-capable", "all-efficient")


def demo(
    serve: Annotated[bool, typer.Option("--serve", help="Keep the gateway up afterwards, until Ctrl-C.")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show Turnout at work: no key, no network.

    Recorded coding sessions, sent by the official clients, routed and priced live."""
    import anthropic  # noqa: F401 - says at once what to install, before anything is started
    import openai  # noqa: F401

    from turnout.demo.session import lay_out, load

    sessions = load()
    with tempfile.TemporaryDirectory(prefix="turnout-demo-") as folder:
        file = lay_out(Path(folder), sessions)
        with gateways.started(file) as url:
            console = None if as_json else _console()
            told = _run(url, sessions, console, 0.0 if fast or as_json else PAUSE_S)
            with _until_stopped(serve):
                if as_json:
                    output.emit(told)
                    sys.stdout.flush()
                if serve:
                    output.say(f"\nThe gateway stays on {url} until Ctrl-C; what it routed is at {url}/dashboard.")
                    _stay()


def _run(url: str, sessions: "list[Session]", console: "Console | None", pause_s: float) -> dict[str, Any]:
    """Play everything; show it on `console` if there is one, and give it back as one object."""
    from turnout.demo import show

    if console is not None:
        show.opening(console, url)
    records = _play(url, ROUTED, sessions, console, pause_s)
    alone = {route: _play(url, route, sessions, None, 0.0) for route in _ALONE}
    bill = _bill(records, alone)
    steps = _next_steps(url)
    if console is not None:
        show.closing(console, bill)
        console.print("\n[bold]Point your own agent at Turnout[/]")
        for step in steps:
            console.print(f"  {step}", highlight=False, markup=False)
    return {
        "url": url,
        "turns": [_told(record) for record in records],
        "bill": bill,
        "next": steps,
    }


def _play(
    url: str, route: str, sessions: "list[Session]", console: "Console | None", pause_s: float
) -> "list[TurnRecord]":
    """Play all sessions on `route`; the records of their turns, from the gateway's ledger."""
    from turnout.demo import show
    from turnout.demo.play import play

    ledger = Records(url=url)
    found = []
    for number, session in enumerate(sessions, 1):
        if console is not None:
            show.session(console, number, session)
        for played in play(session, url, route, f"demo-{route}-{number}"):
            record = ledger.one(played.answered.turn)
            found.append(record)
            if console is not None:
                show.turn(console, played, record)
                time.sleep(pause_s)
    return found


def _bill(routed: "list[TurnRecord]", alone: "dict[str, list[TurnRecord]]") -> "Bill":
    import tomllib

    from turnout.demo.bill import bill, line
    from turnout.demo.session import CONFIG

    targets = tomllib.loads(CONFIG.read_text("utf-8"))["targets"]
    capable = ("capable", "capable_alone")
    return bill(
        line("routed", routed, capable),
        *(line(route, alone[route], capable) for route in _ALONE),
        efficient=targets["efficient"]["price_id"],
        capable=targets["capable"]["price_id"],
    )


def _told(record: "TurnRecord") -> dict[str, Any]:
    """What `--json` says of a turn; `turnout why ID --url URL` says the rest."""
    import msgspec

    why = record.why
    return {
        "turn": record.id,
        "session": record.session,
        "format": record.format,
        "upstream_format": record.upstream_format,
        "target": record.target,
        "source": why.source if why is not None else None,
        "rule": why.rule if why is not None else None,
        "score": why.score if why is not None else None,
        "why": why.sentence if why is not None else None,
        "usage": msgspec.to_builtins(record.usage),
        "cost_usd": record.cost_usd,
        "drops": record.drops,
    }


def _next_steps(url: str) -> list[str]:
    return [
        "turnout init                    # writes turnout.toml: two models, one route called coder",
        "export ANTHROPIC_API_KEY=...    # your key; the file only names the variable",
        "turnout check                   # says what is missing",
        "turnout launch claude           # Claude Code on it (npm install -g @anthropic-ai/claude-code)",
        "turnout launch codex            # Codex on it (npm install -g @openai/codex)",
        "turnout serve                   # or a gateway for all your programs, on http://127.0.0.1:4000:",
        "  export ANTHROPIC_BASE_URL=http://127.0.0.1:4000    OPENAI_BASE_URL=http://127.0.0.1:4000/v1",
        "turnout why last                # why the newest turn went where it went",
    ]


def _console() -> "Console":
    console = output.console()
    console.width = min(console.width, WIDTH_AT_MOST)
    return console


@contextlib.contextmanager
def _until_stopped(serve: bool) -> Iterator[None]:
    """What runs until a person stops it ends well when it is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        if not serve:
            raise
        output.say("stopped")


def _stay() -> None:
    while True:
        time.sleep(3600)
