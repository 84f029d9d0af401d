"""`turnout turns`: the newest turns as a table."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import options, output
from turnout.cli.records import Records, none_of

if TYPE_CHECKING:
    from turnout.ledger.trace import TurnRecord


def turns(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many turns.")] = 20,
    route: Annotated[str, typer.Option(metavar="NAME", help="Only turns of this route.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Only turns of this session.")] = "",
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    as_json: options.AsJson = False,
) -> None:
    """List the newest turns.

    With route, target, who decided and why, cost, and how each ended."""
    found = Records(ledger, url, key_env).recent(limit, route, session)
    if as_json:
        for record in found:
            output.emit(record)
        return
    if not found:
        output.say(none_of(route, session))
        return
    table = output.table(
        "turn", "at", "route", "target", "policy", "decided by", "calls", "cost", "time", "ended", "why"
    )
    for record in reversed(found):
        table.row(*_row(record))
    table.print()


def _row(record: "TurnRecord") -> tuple[str, ...]:
    why = record.why
    return (
        record.id,
        time.strftime("%m-%d %H:%M:%S", time.localtime(record.at)),
        record.route,
        record.target,
        record.policy,
        why.source if why else "",
        " + ".join(call.purpose for call in record.calls if call.unheard not in ("breaker", "budget")),
        output.usd(record.cost_usd, record.cost_note),
        output.duration(record.total_s),
        f"{record.ended}: {record.error}" if record.error else record.ended,
        why.sentence if why else "",
    )
