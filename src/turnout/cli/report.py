"""`turnout report`: who spent what over a period, and its sessions turn by turn."""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import moments, options, output, progress
from turnout.cli.exits import CommandError
from turnout.cli.records import Records, none_of

if TYPE_CHECKING:
    from turnout.evaluate.period import Against, Period
    from turnout.evaluate.spending import RatesOf
    from turnout.evaluate.timeline import Step
    from turnout.gateway.config import Config
    from turnout.ledger.trace import TurnRecord
    from turnout.pricing import Rates

SHOWN = 10
"""Sessions that are printed."""


def report(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.html", help="Write the report there.")] = None,
    since: Annotated[str, typer.Option(metavar="WHEN", help="From then on: 14d, 36h, or a date.")] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Up to then.")] = "",
    route: Annotated[str, typer.Option(metavar="NAME", help="Only turns of this route.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Only turns of this session.")] = "",
    against: Annotated[
        str, typer.Option(metavar="TARGET", help="The model that might serve alone; that the route falls to if absent.")
    ] = "",
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Configuration, for targets and prices.")] = None,
    limit: options.Newest = 5000,
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    as_json: options.AsJson = False,
) -> None:
    """Show who spent what, and sessions turn by turn.

    Answers by target, judges, discarded replies, failed attempts and cold caches, beside one model alone; and for every
    session who served, what the cache gave, what changed and failed.

    Example: turnout report week.html --since 7d --route coder"""
    now = time.time()
    start, end = (
        moments.moment(text, name, now) if text else None for name, text in (("--since", since), ("--until", until))
    )
    records = Records(ledger, url, key_env)
    with progress.shown() as told:
        turns = records.recent(limit, route, session, start, end, lambda done: told("reading turns", done, 0))
        if not turns:
            output.say(none_of(route, session, period=start is not None or end is not None))
        known = options.configuration(config)
        found, steps = _found(turns, records.name, known, against, lambda done: told("adding up", done, len(turns)))
        if file is not None:
            from turnout.evaluate.report.period import html

            file.write_text(html(found, steps), "utf-8")
            output.say(f"wrote {file}")
    if len(turns) == limit:
        output.say(f"these are the newest {limit:,} turns; --limit takes more")
    if as_json:
        output.emit(found)
    else:
        _print(found)


def _found(
    turns: "list[TurnRecord]", source: str, config: "Config | None", against: str, told: Callable[[int], None]
) -> "tuple[Period, tuple[Step, ...]]":
    from turnout.evaluate.period import period

    alone = _against(turns, config, against)
    return period(turns, source, rates(config), alone, tiers(config), told)


def rates(config: "Config | None") -> "RatesOf":
    """The rates of a target: those of the configuration where it knows the target, else those of its model."""
    from turnout.gateway.facts import rates_of
    from turnout.pricing import Prices
    from turnout.routing.core import TargetName

    prices = Prices.load()

    @functools.cache
    def of(target: str, model: str) -> "Rates | None":
        if config is not None and (known := config.targets.get(TargetName(target))) is not None:
            return rates_of(known, config, prices)
        return prices.rates(model)

    return of


def tiers(config: "Config | None") -> dict[tuple[str, str], str]:
    """For (route, target) the tier: `capable` for the target that a route falls to, `efficient` for its others."""
    found: dict[tuple[str, str], str] = {}
    for name, route in config.routes.items() if config is not None else ():
        if len(route.targets) > 1:
            found |= {
                (name, target): "capable" if target == route.falls_to else "efficient" for target in route.targets
            }
    return found


def _against(turns: "list[TurnRecord]", config: "Config | None", named: str) -> "Against | None":
    """The target that might serve alone: the named one, else the one that all routes of these turns fall to."""
    from turnout.evaluate.period import Against
    from turnout.routing.core import TargetName

    if config is None:
        if named:
            step = "name its file with --config"
            raise CommandError(f"--against {named}: only a configuration says what that is", step=step)
        return None
    if named and named not in config.targets:
        raise CommandError(f"--against {named}: there is no such target; there are {', '.join(sorted(config.targets))}")
    if not named and all(turn.target not in config.targets for turn in turns):
        return None  # the configuration of this folder is not that of this ledger
    falls = {config.routes[turn.route].falls_to for turn in turns if turn.route in config.routes}
    if not named and len(falls) != 1:
        return None
    target = TargetName(named) if named else falls.pop()
    return Against(target, rates(config)(target, config.targets[target].model))


def _print(found: "Period") -> None:
    from turnout.evaluate.words import dollars, sentence

    output.emit_text(sentence(found))
    spent = found.spending
    table = output.table("spent on", "", "USD", "share", "turns")
    for part in spent.parts:
        share = f"{part.usd / spent.known_usd:.1%}" if spent.known_usd else ""
        table.row(part.kind, part.name, dollars(part.usd), share, f"{part.turns:,}")
    if spent.parts:
        table.print()
    if spent.alone is not None:
        output.emit_text(found.assumed)
    if found.sessions:
        sessions = output.table("session", "turns", "USD", "cold caches", "switches", "failures", "cached", "targets")
        for one in found.sessions[:SHOWN]:
            cached = "" if one.cached_share is None else f"{one.cached_share:.0%}"
            counts = (str(one.switches), str(one.failures), cached, ", ".join(one.targets))
            sessions.row(one.session, str(one.turns), dollars(one.known_usd), dollars(one.cold_usd), *counts)
        sessions.print()
        if len(found.sessions) > SHOWN:
            output.emit_text(f"{len(found.sessions) - SHOWN} more sessions: --json lists all, a report shows each")
