"""The commands and how they are found. To add one: a module with a function, one line here."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from turnout.cli import (
    cache,
    calibrate,
    canary,
    check,
    demo,
    economics,
    evaluate,
    exits,
    importing,
    init,
    judges,
    knowledge,
    launch,
    mapping,
    observe,
    output,
    peers,
    policy,
    prices,
    replay,
    report,
    review,
    route,
    serve,
    shadow,
    train,
    trial,
    turns,
    why,
)

app = typer.Typer(
    name="turnout",
    help="Routes every turn of an LLM agent to the model that turn needs.",
    epilog=exits.LEGEND + " TURNOUT_DEBUG=1 shows tracebacks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("check")(check.check)
app.command("serve")(serve.serve)
app.command("launch")(launch.launch)
app.command("turns")(turns.turns)
app.command("why")(why.why)
app.command("cache")(cache.cache)
app.command("judges")(judges.judges)
app.command("economics")(economics.economics)
app.command("import")(importing.import_)
app.command("map")(mapping.map_)
app.command("observe")(observe.observe)
app.command("route")(route.route)
app.command("replay")(replay.replay)
app.command("trial")(trial.trial)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("calibrate")(calibrate.calibrate)
app.command("review")(review.review)
app.add_typer(prices.app, name="prices")
app.add_typer(canary.app, name="canary")
app.add_typer(shadow.app, name="shadow")
app.add_typer(policy.app, name="policy")
app.add_typer(peers.app, name="peers")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(train.app, name="train")


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the version."""
    from turnout import __version__

    if as_json:
        output.emit({"turnout": __version__, "python": sys.version.split()[0]})
    else:
        output.emit_text(f"turnout {__version__}")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (None = the process's own) and give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exits.ended(lambda: app(args=given, prog_name="turnout", standalone_mode=False))


def main() -> None:
    """Entry point of the `turnout` script."""
    sys.exit(run())
