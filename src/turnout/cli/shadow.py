"""`turnout shadow`: what routers that decide beside live traffic would have done, and what that would have cost."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import exits, flips, options, output, periods

if TYPE_CHECKING:
    from turnout.ledger.shadows import ShadowFigures

app = typer.Typer(help="Look at routers that decide in the shadow.", no_args_is_help=True, rich_markup_mode=None)

Since = Annotated[str, typer.Option(metavar="WHEN", help=f"Only turns from then on: {periods.HELP}.")]


@app.callback()
def shadow() -> None:
    """Look at routers that decide in the shadow."""


@app.command("status")
def status(ledger: options.Ledger = "", since: Since = "", as_json: options.AsJson = False) -> None:
    """Show what each shadow would have done, beside what was done.

    For each shadow and each policy it had: the turns it agreed on, those it would have sent elsewhere, those it could not decide
    without a call, and what its way would have cost, caches included.

    Example: turnout shadow status --since 7d
    """
    from turnout.cli.records import Records, reading

    moment = periods.moment(since, "--since")
    with reading(Records(ledger).ledger) as opened:
        found = opened.shadow_figures(moment)
    if as_json:
        output.emit([{**output.whole(one), "agreement": one.agreement} for one in found])
        return
    if not found:
        output.say("no shadow has decided yet; [shadows.NAME] in the configuration makes one")
    for one in found:
        _print(one)


@app.command("flips")
def shadow_flips(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The shadow.")],
    ledger: options.Ledger = "",
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    since: Since = "",
    as_json: options.AsJson = False,
) -> None:
    """List the turns that a shadow would have sent elsewhere, and why.

    Example: turnout shadow flips cautious --limit 5
    """
    from turnout.cli.records import Records, reading

    moment = periods.moment(since, "--since")
    with reading(Records(ledger).ledger) as opened:
        found = opened.shadow_flips(name, limit, moment)
        known = sorted({one.shadow for one in opened.shadow_figures()})
    if name not in known:
        step = f"shadows that decided: {', '.join(known)}" if known else "none has decided yet"
        raise exits.CommandError(f"no shadow `{name}` in the ledger", exits.NOT_FOUND, step)
    if as_json:
        for one in found:
            output.emit(output.whole(one))
        return
    if not found:
        output.say(f"{name} chose the same target on every turn")
    for one in found:
        output.emit_text("\n".join(flips.lines(one)))


def _print(one: "ShadowFigures") -> None:
    from turnout.evaluate.replaying import REASONS
    from turnout.routing.spending import ASSUMED

    first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) for at in (one.since, one.until))
    output.emit_text(
        f"shadow {one.shadow} of route {one.route}, policy {one.policy}: {one.turns:,} turns, {first} to {last}"
    )
    for reason, n in one.unsupported.items():
        output.emit_text(f"  {n:,} not supported: {REASONS.get(reason, reason)}")  # type: ignore[call-overload]  # texts
    if one.agreement is None:
        return
    output.emit_text(f"  {one.agreed:,} of {one.decided:,} to the target that was chosen ({one.agreement:.1%})")
    for pair, n in sorted(one.flipped.items(), key=lambda item: -item[1]):
        output.emit_text(f"    {n:,} {pair}")
    flips.shares(one.was, one.now, "live", "shadow")
    if not one.compared:
        output.emit_text("  What it would have cost is not known: no turn has a usage and a price on both sides.")
        return
    share = f" ({(one.usd - one.live_usd) / one.live_usd:+.1%})" if one.live_usd and one.usd is not None else ""
    output.emit_text(
        f"  Predicted cost of {output.count(one.compared, 'turn')}, caches included: {output.usd(one.usd)} by the shadow, "
        f"{output.usd(one.live_usd)} as it went{share}"
    )
    for assumed in ASSUMED:
        output.emit_text(f"    assumed: {assumed}")
