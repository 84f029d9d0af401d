"""`turnout canary`: how routers on trial do, and why one was stopped."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import exits, options, output

if TYPE_CHECKING:
    from turnout.gateway.canary.gauge import ArmFigures, MetricFigures
    from turnout.gateway.canary.watch import CanaryStatus

app = typer.Typer(help="Look at routers on trial.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def canary() -> None:
    """Look at routers on trial."""


@app.command("status")
def status(
    file: options.ConfigFile = Path("turnout.toml"),
    ledger: Annotated[
        str, typer.Option("--ledger", metavar="URL", help="Ledger to read; that of FILE if absent.")
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Show both arms of each canary, the evidence against the candidate, and why it was stopped."""
    from turnout.gateway.canary.host import Canaries
    from turnout.gateway.config import load
    from turnout.ledger.store import Ledger

    config = load(file, None)
    url = ledger or (os.environ.get(config.ledger.url_env, "") if config.ledger.url_env else config.ledger.url)
    path = Path(url.removeprefix("sqlite:///").partition("?")[0])
    if url.startswith("sqlite:///") and not path.exists():
        raise exits.CommandError(f"no ledger here: {path} does not exist", exits.NOT_FOUND, "name one with --ledger")
    opened = Ledger.read(url)
    try:
        watched = Canaries(config, opened)
        watched.look(time.time(), keep=False)
        found = watched.statuses()
    finally:
        opened.close()
    if as_json:
        output.emit(found)
        return
    if not found:
        output.say(f"{file} has no route of type canary")
    for one in found:
        output.emit_text("\n".join(_lines(one)))


def _lines(one: "CanaryStatus") -> list[str]:
    lines = [
        f"canary {one.name} of route {one.route}: {one.state}, {one.share:.0%} of lanes",
        *([f"  stopped {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.stopped_at))}: {one.reason}"]
          if one.stopped_at is not None else []),
        f"  lanes over: {one.lanes['candidate']} candidate, {one.lanes['incumbent']} incumbent; "
        f"running: {one.running['candidate']} and {one.running['incumbent']}",
    ]  # fmt: skip
    return lines + [f"  {metric}: {_figures(figures)}" for metric, figures in one.metrics.items()]


def _figures(figures: "MetricFigures") -> str:
    between = "" if figures.low is None else f", difference {figures.low:+.3g} to {figures.high:+.3g}"
    evidence = f"evidence {figures.evidence:.3g} of {figures.limit:g}"
    return f"candidate {_arm(figures.candidate)}, incumbent {_arm(figures.incumbent)}{between}; {evidence}"


def _arm(arm: "ArmFigures") -> str:
    return "-" if arm.mean is None else f"{arm.mean:.4g} ({arm.lanes})"
