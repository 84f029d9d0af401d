"""`turnout review`: whether it is time to go back to one model, by the operator's own conditions."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import exits, moments, options, output, progress, records
from turnout.cli.exits import CommandError

if TYPE_CHECKING:
    from turnout.evaluate.review.conditions import Conditions
    from turnout.evaluate.review.evidence import Lane, Row
    from turnout.evaluate.review.material import Material, Told
    from turnout.evaluate.review.review import Review
    from turnout.gateway.config import Config
    from turnout.pricing import Rates

CODES = {"stay": exits.OK, "go back": exits.GO_BACK, "undecided": exits.UNDECIDED}
WEEK_S = 7 * 86400.0


def review(
    conditions: Annotated[Path, typer.Argument(metavar="FILE", help="The conditions.")] = Path("review.toml"),
    since: Annotated[
        str, typer.Option(metavar="SPAN", help="How long the period is, such as 14d; the file's if absent.")
    ] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Where it ends: a date, or so long ago.")] = "",
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Configuration, for targets and prices.")] = None,
    ledger: options.Ledger = "",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 1,
    report: options.Report = None,
    as_json: options.AsJson = False,
) -> int:
    """Check the conditions for going back to one model.

    On a recent period of your own data. Exits with 6 when they hold, with 7 when there is not enough data to tell, with 0 when
    they do not.

    Example: turnout review review.toml --since 14d --report review.html"""
    from turnout.cli.conditions import read
    from turnout.evaluate.review.review import review as reviewed

    asked = read(conditions)
    known = options.configuration(config)
    against, rates = _against(asked, known)
    end = moments.moment(until, "--until", time.time()) if until else time.time()
    length = moments.span(since or asked.since, "--since" if since else f"{conditions}: since")
    with progress.shown() as told:
        material = _material(asked, ledger, conditions.parent, (end - length, end), rates, told)
        told("measuring", 0, 0)
        found, evidence = reviewed(
            asked, against, material.evidence, (end - length, end), material.first, resamples, seed
        )
    if report is not None:
        from turnout.evaluate.report.review import html

        report.write_text(html(found, evidence), "utf-8")
        output.say(f"wrote {report}")
    if as_json:
        output.emit(found)
    else:
        _print(found)
    return CODES[found.outcome]


def _against(asked: "Conditions", config: "Config | None") -> "tuple[str, Rates | None]":
    """The one model: the target's name and its rates. Raises CommandError."""
    from turnout.gateway.facts import rates_of
    from turnout.pricing import Prices
    from turnout.routing.core import TargetName

    if config is None:
        if not asked.against:
            step = "name it with `against`, or the configuration with --config"
            raise CommandError(f"which model would route `{asked.route}` go back to?", step=step)
        return asked.against, None
    route = config.routes.get(asked.route)
    if route is None:
        known = ", ".join(sorted(config.routes))
        raise CommandError(f"the configuration has no route `{asked.route}`; there are: {known}")
    name = TargetName(asked.against) if asked.against else route.falls_to
    if name not in config.targets:
        raise CommandError(f"against: there is no target `{name}`; there are: {', '.join(sorted(config.targets))}")
    return name, rates_of(config.targets[name], config, Prices.load())


def _material(
    asked: "Conditions",
    url: str,
    folder: Path,
    period: tuple[float, float],
    rates: "Rates | None",
    told: progress.Told,
) -> "Material":
    """All that the conditions are measured on, as far back as reviews in a row are counted."""
    from turnout.evaluate.review.material import Material, Told

    weeks = max((int(one.bound) + 1 for one in asked.conditions.values() if one.of), default=0)
    back = (period[0] - weeks * WEEK_S, period[1])
    ledger = records.Records(url).ledger if _needs_ledger(asked) else ""
    rows, lanes = _turns(asked, ledger, back, rates, told) if ledger else ((), ())
    trials = logged = Told()
    if asked.trials is not None:
        names = (asked.trials.capable, asked.trials.routed)
        trials = _outcomes(asked.trials.outcomes, names, ledger, folder, told)
    if asked.logged is not None:
        names = (asked.logged.capable, asked.logged.efficient)
        logged = _outcomes(asked.logged.outcomes, names, ledger, folder, told)
    return Material(asked, rows, lanes, trials, logged)


def _needs_ledger(asked: "Conditions") -> bool:
    used = {asked.source_of(one) for one in asked.conditions.values() if not one.of}
    from_ledger = {"turns", "canary"}
    from_ledger |= {"trials"} if asked.trials is not None and not asked.trials.outcomes else set()
    from_ledger |= {"logged"} if asked.logged is not None and not asked.logged.outcomes else set()
    return bool(used & from_ledger)


def _turns(
    asked: "Conditions", url: str, period: tuple[float, float], rates: "Rates | None", told: progress.Told
) -> "tuple[list[Row], tuple[Lane, ...]]":
    from turnout.evaluate.review.evidence import Lanes, turn
    from turnout.ledger.reading import TurnFilter

    rows = []
    lanes = Lanes(asked.canary.name if asked.canary is not None else "")
    with records.reading(url) as ledger:
        which = TurnFilter(route=asked.route, since=period[0], until=period[1])
        with ledger.lanes(which) as turns:
            for number, record in enumerate(turns, 1):
                rows.append(turn(record, rates))
                if asked.canary is not None:
                    lanes.turn(record)
                if number % 1000 == 0:
                    told("reading turns", number, 0)
        for reported in ledger.outcomes_of(lanes.turns, lanes.sessions) if asked.canary is not None else ():
            lanes.outcome(reported)
    return rows, lanes.lanes()


def _outcomes(file: str, names: tuple[str, str], url: str, folder: Path, told: progress.Told) -> "Told":
    """The outcomes of two arms, from a file beside that of the conditions, else from the ledger."""
    from turnout.evaluate.arms import Wanted
    from turnout.evaluate.outcomes import read
    from turnout.evaluate.reported import read_ledger
    from turnout.evaluate.review.material import Told

    wanted = [Wanted(name) for name in names]
    if file:
        found = read(folder / file, wanted, progress=told)
    else:
        with records.reading(url) as ledger:
            found = read_ledger(ledger, records.shown(url), wanted, told)
    if not found.arms:
        return Told(reason=f"{file or 'the ledger'} holds no outcomes of tasks")
    first, second = (found.arm(one) for one in wanted)
    if first == second:
        raise CommandError(f"{names[0]} and {names[1]} are the same arm; there is nothing to compare")
    return Told(found.outcomes, (first, second))


def _print(found: "Review") -> None:
    from turnout.evaluate.review.review import figure

    output.emit_text(found.verdict)
    output.emit_text(f"route {found.route} against {found.against}, {found.since} to {found.until}")
    table = output.table("condition", "measure", "found", "rests on", "answer", "why")
    for one in found.checked:
        counted = "" if one.counted in (one.answer, "undecided") else f", counted as {one.counted}"
        rests = f"{one.rows:,} rows of {one.source}"
        table.row(one.name, one.measure, figure(one), rests, one.answer + counted, one.reason)
    table.print()
    if found.sides:
        _print_sides(found)
    for name, said in found.sources.items():
        output.emit_text(f"{name}: {said}")
    output.emit_text(found.method)


def _print_sides(found: "Review") -> None:
    from turnout.evaluate.words import dollars, percent

    table = output.table("from", "", "known success", "success", "USD a run", "USD a completed one")
    for source, sides in found.sides.items():
        for arm, one in sides.items():
            name = f"{found.against} alone" if arm == "capable" else f"route {found.route}"
            cost, done = one.cost_usd, one.per_completed_usd
            money = (dollars(cost.value, cost.low, cost.high), dollars(done.value, done.low, done.high))
            table.row(source, name, f"{one.n:,}", percent(one.success), *money)
    table.print()
