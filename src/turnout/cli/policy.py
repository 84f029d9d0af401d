"""`turnout policy`: which versions of routes there are, what speaks for them, which is served, and putting another into force."""

from pathlib import Path
from typing import Annotated, Any

import typer

from turnout.cli import options, output

app = typer.Typer(
    help="Versions of routes: list, compare, promote, roll back.", no_args_is_help=True, rich_markup_mode=None
)

Config = Annotated[Path, typer.Option("--config", metavar="FILE", help="Configuration file.", show_default=True)]
Route = Annotated[str, typer.Argument(metavar="ROUTE", help="Table name of the route.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the history.")]
_VERSION = "Digest (or its beginning), `configuration`, or a policy file."


@app.callback()
def policy() -> None:
    """Versions of routes: list, compare, promote, roll back.

    A version is a policy file: a route's table with the evidence for it. Its digest is what turns record as x-turnout-policy. The
    files lie in the folder `policies` beside the configuration ([policies] folder); `turnout calibrate` writes some. A running
    gateway takes a promotion or a roll-back over by itself, for new turns.
    """


@app.command("list")
def list_(
    route: Annotated[str, typer.Argument(metavar="[ROUTE]", help="Only versions of this route.")] = "",
    config: Config = options.DEFAULT_FILE,
    history: Annotated[bool, typer.Option("--history", help="What was served when, by whom and why, instead.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List versions: which is served, since when, and what speaks for each.

    Example: turnout policy list coder --history
    """
    from turnout.cli import versions

    shelf = versions.Shelf(config)
    names = [shelf.route(route).name] if route else list(shelf.own.routes)
    if history:
        changes = [change for change in shelf.folder.history() if change.route in names or not route]
        if as_json:
            output.emit([output.whole(change) for change in changes])
        elif changes:
            versions.print_history(changes)
        else:
            output.say(f"nothing was promoted yet in {shelf.folder.path}")
        return
    found = [shelf.versions(name) for name in names]
    broken = [one for one in shelf.folder.policies() if one.policy is None]
    if as_json:
        output.emit(
            {
                "folder": str(shelf.folder.path),
                "routes": [output.whole(one) for one in found],
                "unreadable": [{"file": str(one.path), "error": one.error} for one in broken],
            }
        )
        return
    versions.print_versions(found)
    for one in broken:
        output.say(f"not a policy: {one.error}")


@app.command("show")
def show(
    route: Route,
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help=f"{_VERSION} Default: what is served.")] = "",
    config: Config = options.DEFAULT_FILE,
    as_json: options.AsJson = False,
) -> None:
    """Show a version: its table and its evidence.

    Example: turnout policy show coder 3f9a
    """
    from turnout.cli import versions

    shelf = versions.Shelf(config)
    found = shelf.version(route, version)
    if as_json:
        made_at = found.policy.made_at if found.file else None
        whole = {**output.whole(found.policy), "made_at": made_at}
        output.emit({**whole, "file": found.file, "served": found.served, "since": found.since, "reason": found.reason})
    else:
        output.emit_text(versions.shown(found))


@app.command("diff")
def diff(
    route: Route,
    version: Annotated[str, typer.Argument(metavar="VERSION", help=_VERSION)],
    other: Annotated[
        str, typer.Argument(metavar="[OTHER]", help="Compare VERSION with this one; default: what is served.")
    ] = "",
    config: Config = options.DEFAULT_FILE,
    as_json: options.AsJson = False,
) -> None:
    """Show what a version changes: keys with both values, and the evidence side by side.

    Example: turnout policy diff coder 3f9a
    """
    from turnout.cli import versions

    shelf = versions.Shelf(config)
    found = versions.compared(shelf.filled(route, other), shelf.filled(route, version))
    if as_json:
        output.emit(output.whole(found))
    else:
        versions.print_difference(found)


@app.command("promote")
def promote(
    route: Route,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Digest (or its beginning), or a policy file.")],
    reason: Reason = "",
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Promote a version whose evidence is missing, speaks against it, or is not about it."
        ),
    ] = False,
    config: Config = options.DEFAULT_FILE,
    as_json: options.AsJson = False,
) -> None:
    """Serve a version from now on.

    It is checked against the configuration first. A file from elsewhere is taken into the folder. New turns of a running
    gateway are decided by it within a second or two; `turnout policy rollback` undoes it.

    Example: turnout policy promote coder 3f9a --reason "cheaper on the runs of November, same success"
    """
    from turnout.cli import promoting, versions

    change, digest = promoting.promote(versions.Shelf(config), route, version, reason, force)
    if as_json:
        output.emit({"route": route, "digest": digest, "changed": change is not None, **_told(change)})
    elif change is None:
        output.emit_text(f"route {route} is served by {digest} already")
    else:
        output.emit_text(f"route {route}: {digest} is served from now on; before: {versions.named(change.before)}")
        output.say(f"undo: turnout policy rollback {route}")


@app.command("rollback")
def rollback(
    route: Route,
    to_configuration: Annotated[
        bool, typer.Option("--to-configuration", help="Go back to the configuration's own table at once.")
    ] = False,
    reason: Reason = "",
    config: Config = options.DEFAULT_FILE,
    as_json: options.AsJson = False,
) -> None:
    """Undo the last promotion that stands: serve the version before it, or the configuration's own table.

    Example: turnout policy rollback coder --reason "failures rose since this morning"
    """
    from turnout.cli import promoting, versions

    change = promoting.rollback(versions.Shelf(config), route, to_configuration, reason)
    if as_json:
        output.emit(output.whole(change))
    else:
        now = versions.named(change.digest)
        output.emit_text(f"route {route}: back to {now}; before: {change.before}")


def _told(change: Any) -> dict[str, Any]:
    return {} if change is None else {key: value for key, value in output.whole(change).items() if key != "route"}
