"""`turnout replay`: what the routers of a configuration decide on recorded turns, and what that would have cost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import exits, flips, options, output, periods, progress

if TYPE_CHECKING:
    from turnout.evaluate.replay_report import ReplayReport
    from turnout.evaluate.replaying import Candidate, Replayed, Replaying
    from turnout.gateway.config import Config
    from turnout.gateway.routes import Route
    from turnout.ledger.reading import TurnFilter
    from turnout.ledger.store import Ledger
    from turnout.ledger.trace import TurnRecord

TELL_EVERY = 200


def replay(
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="Ledger to read: a file, or a URL.")],
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Configuration whose routers decide.")],
    route: Annotated[str, typer.Option(metavar="NAME", help="Only turns that this route decided.")] = "",
    as_: Annotated[
        str, typer.Option("--as", metavar="ROUTE", help="Decide every turn as this route of CONFIG would.")
    ] = "",
    policy: Annotated[
        str, typer.Option(metavar="DIGEST", help="Decide by this version of the route that --as names.")
    ] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Only turns of this session.")] = "",
    since: Annotated[str, typer.Option(metavar="WHEN", help=f"Only turns from then on: {periods.HELP}.")] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Only turns before then.")] = "",
    shown: Annotated[
        int, typer.Option("--flips", min=0, metavar="N", help="How many turns with another target to show.")
    ] = 20,
    each: Annotated[bool, typer.Option("--turns", help="Print every turn instead, as JSON lines.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when a route decides a turn of its own otherwise.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Decide recorded turns again, without calling any model.

    Each turn goes to the route of CONFIG that decided it, or with --as to the route you want to know about. Shown are the turns
    that come out the same, those that would have gone elsewhere and why, and what all of it would have cost, caches included.

    Example: turnout replay turnout.db turnout.toml --as trial --since 7d
    """
    from turnout.evaluate.replay_report import Tally
    from turnout.gateway.config import load
    from turnout.ledger.reading import TurnFilter

    loaded = load(config, None)
    if policy:
        if not as_:
            raise exits.CommandError("--policy names a version of a route", step="name the route with --as")
        loaded = _by_version(loaded, as_, policy)
    which = TurnFilter(
        route=route,
        session=session,
        since=periods.moment(since, "--since"),
        until=periods.moment(until, "--until"),
    )
    tally = Tally(shown)
    with _opened(ledger) as opened:
        for one in _replayed(opened, loaded, which, as_):
            tally.add(one)
            if each:
                output.emit(_row(one))
    report = tally.report()
    if not report.turns:
        output.say("no such turns are recorded")
    elif as_json and not each:
        output.emit(output.whole(report))
    elif not each:
        _print(report, as_)
    return exits.FOUND if strict and report.own.exact < report.own.turns else exits.OK


def _opened(ledger: str) -> Any:
    from turnout.cli.records import existing, reading

    return reading(existing(ledger if ":" in ledger else f"sqlite:///{ledger}"))


def _replayed(ledger: "Ledger", config: "Config", which: "TurnFilter", as_: str) -> "Iterator[Replayed]":
    replaying = _replaying(ledger, config, as_)
    with ledger.whole_lanes(which) as turns, progress.shown() as told:
        total, done = ledger.count(which), 0
        wanted: list[bool] = []

        def records() -> "Iterator[TurnRecord]":
            for record, counts in turns:
                wanted.append(counts)
                yield record

        for one in replaying.turns(records()):
            if wanted.pop():
                done += 1
                if done % TELL_EVERY == 0 or done == total:
                    told("turns replayed", done, total)
                yield one


def _by_version(config: "Config", route: str, digest: str) -> "Config":
    """The configuration with a version of one of its routes in place of the route."""
    import typing

    import msgspec

    from turnout.cli.serve import require_route
    from turnout.gateway.promoted import Declared
    from turnout.gateway.shadow.tables import kept_version
    from turnout.gateway.tables import Tables
    from turnout.gateway.versions import folder_of
    from turnout.routing import RouterConfig

    own = config.routes[require_route(config.routes, route)]
    tables = Tables("", config.file, typing.get_args(RouterConfig))
    declared = Declared(config.upstreams, config.targets, config.signals)
    found = kept_version(own, digest, folder_of(config).path, declared, tables, ("routes", route))
    if found is None:
        raise next(finding for finding in tables.findings if finding.severity == "error").error(config.file)
    return msgspec.structs.replace(config, routes={**config.routes, route: found})


def _replaying(ledger: "Ledger", config: "Config", as_: str) -> "Replaying":
    from turnout.cli.serve import require_route
    from turnout.evaluate.replaying import Replaying
    from turnout.gateway.facts import facts

    if as_:
        fixed = candidate(config.routes[require_route(config.routes, as_)])
        choose: Callable[[TurnRecord], Candidate | None] = lambda record: fixed  # noqa: E731 - one of two
    else:
        candidates = {name: candidate(route) for name, route in config.routes.items()}
        choose = lambda record: candidates.get(record.route)  # noqa: E731
    return Replaying(choose, facts(config), ledger.request, config.server.deadline_s)


def candidate(route: "Route") -> "Candidate":
    """A route of a configuration, to be replayed."""
    from turnout.evaluate.replaying import Candidate

    return Candidate(route.name, route.router, route.policy, route.fault)


def _row(one: "Replayed") -> dict[str, Any]:
    from turnout.ledger.answered import decided_target

    record, decision, price = one.record, one.decision, one.price
    return {
        "turn": record.id,
        "at": record.at,
        "session": record.session,
        "agent": record.agent,
        "route": record.route,
        "was": decided_target(record),
        "target": decision.target if decision is not None else None,
        "unsupported": one.reason,
        "own": one.own,
        "different": one.different,
        "agrees": one.agrees if decision is not None else None,
        "live_usd": price.live_usd if price is not None else None,
        "usd": price.own_usd if price is not None else None,
        "why": output.whole(decision.why) if decision is not None else None,
    }


def _print(report: "ReplayReport", as_: str) -> None:
    from turnout.evaluate.replaying import REASONS

    output.emit_text(f"{report.turns:,} turns, {report.replayed:,} replayed without a call")
    for reason, n in report.unsupported.items():
        output.emit_text(f"  {n:,} not supported: {REASONS[reason]}")  # type: ignore[index]  # they are reasons
    if report.own.turns:
        whose = f"{as_} itself" if as_ else "these routes themselves, as they are now,"
        output.emit_text(f"  {report.own.turns:,} decided by {whose}: {report.own.exact:,} come out exactly the same")
    for other in report.own.different:
        output.emit_text(f"    {other.turn}: {'; '.join(other.differences)}")
    if not report.replayed:
        return
    output.emit_text(
        f"  {report.agreed:,} to the target that was chosen ({report.agreement:.1%}), "
        f"{report.replayed - report.agreed:,} to another"
    )
    for pair in report.flipped:
        output.emit_text(f"    {pair.turns:,} from {pair.was or '?'} to {pair.now}")
    flips.shares(report.was, report.now, "was", "replayed")
    for line in costs(report.cost, "replayed"):
        output.emit_text(line)
    if report.flips:
        more = report.replayed - report.agreed - len(report.flips)
        output.emit_text(f"\nTo another target ({more:,} more: --flips N):" if more else "\nTo another target:")
    for flip in report.flips:
        output.emit_text("\n".join(flips.lines(flip)))


def costs(cost: Any, other: str) -> list[str]:
    """What was predicted, and what that rests on."""
    if not cost.turns:
        return ["What it would have cost is not known: no turn has a usage and a price on both sides."]
    share = f" ({0.0 - cost.saved_share:+.1%})" if cost.saved_share is not None else ""
    return [
        f"Predicted cost of {output.count(cost.turns, 'turn')}, caches included: {output.usd(cost.candidate_usd)} {other}, "
        f"{output.usd(cost.live_usd)} as it went{share}",
        f"  of that calls made to decide: {output.usd(cost.candidate_aside_usd)} {other}, "
        f"{output.usd(cost.live_aside_usd)} as it went; charged in fact: {output.usd(cost.recorded_usd)}",
        *(
            [f"  left out, a price, a usage or what caches held is not known: {output.count(cost.unpriced, 'turn')}"]
            if cost.unpriced
            else []
        ),
        *(f"  assumed: {one}" for one in cost.assumptions),
    ]
