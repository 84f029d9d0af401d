"""`turnout economics`: whether a route's judge can pay, and whether it did."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import exits, options, output
from turnout.cli.records import Records

if TYPE_CHECKING:
    from turnout.evaluate.economics import Economics, Recorded
    from turnout.gateway.config import Config
    from turnout.ledger.trace import TurnRecord
    from turnout.pricing.rates import Rates

ASSUMED = (
    "assumed: the strong model alone would have used the tokens that were served, with the cached shares that were reported, "
    "those cold after a change of model read from the cache too, at today's prices"
)


def economics(
    route: Annotated[str, typer.Argument(metavar="ROUTE", help="The route.")],
    weak_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="A turn by the weak model, instead of the ledger's.")
    ] = None,
    strong_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="A turn by the strong model, instead of the ledger's.")
    ] = None,
    judge_cost: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="A judgement, instead of the ledger's.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration, for the strong target and its prices.")
    ] = None,
    limit: options.Newest = 5000,
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    as_json: options.AsJson = False,
) -> None:
    """Show whether a judge pays.

    The share of turns that the weak model must get through for the judge to be paid for, from given prices or from the ledger."""
    given = (weak_cost, strong_cost, judge_cost)
    if all(one is not None for one in given):
        _from_prices(route, given, as_json)
        return
    if any(one is not None for one in given):
        step = "give all three to reckon with them, or none to read the ledger"
        raise exits.CommandError("--weak-cost, --strong-cost and --judge-cost belong together", step=step)
    turns = Records(ledger, url, key_env).recent(limit, route)
    if not turns:
        step = "give --weak-cost, --strong-cost and --judge-cost to reckon with prices"
        raise exits.CommandError(f"no turns of route `{route}` are recorded", exits.NOT_FOUND, step)
    from turnout.evaluate.economics import recorded

    strong, rates = _strong(route, turns, options.configuration(config))
    found = recorded(turns, strong, rates)
    if as_json:
        output.emit({"route": route, "strong": strong, **_told(found)})
        return
    output.emit_text("\n".join([f"route {route}, strong target {strong or 'unknown'}", *_recorded(found)]))


def _from_prices(route: str, given: tuple[float | None, float | None, float | None], as_json: bool) -> None:
    from turnout.evaluate.economics import Economics

    weak, strong, judge = (one or 0.0 for one in given)
    found = Economics(weak, strong, judge)
    if as_json:
        output.emit({"route": route, "economics": _shares(found)})
    else:
        output.emit_text("\n".join([f"route {route}, by the given prices", *verdict(found)]))


def _strong(route: str, turns: "list[TurnRecord]", config: "Config | None") -> "tuple[str, Rates | None]":
    """The target that takes over or reviews on this route, and its rates: by the configuration, else the one that took over."""
    from turnout.gateway.facts import rates_of
    from turnout.pricing import Prices
    from turnout.routing import Advisor, ByAgent

    known = config.routes.get(route) if config is not None else None
    if config is not None and known is not None:
        router = known.router.main if isinstance(known.router, ByAgent) else known.router
        strong = router.advisor if isinstance(router, Advisor) else known.falls_to
        return strong, rates_of(config.targets[strong], config, Prices.load())
    took = (
        t for t in turns if t.why is not None and (t.why.source == "latch" or t.why.rule in ("latched", "escalated"))
    )
    newest = next(took, None)
    return (newest.target, Prices.load().rates(newest.model)) if newest is not None else ("", None)


def _shares(found: "Economics") -> dict[str, Any]:
    return {
        "weak_usd": found.weak_usd,
        "strong_usd": found.strong_usd,
        "judge_usd": found.judge_usd,
        "drafts": found.drafts,
        "break_even": found.break_even,
        "with_drafts": found.with_drafts,
        "needed": found.needed,
        "pays": found.pays,
    }


def _told(found: "Recorded") -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(found)
    told["economics"] = _shares(found.economics) if found.economics is not None else None
    return {**told, "judge_share": found.judge_share, "saved_usd": found.saved_usd, "assumed": ASSUMED}


def verdict(found: "Economics") -> list[str]:
    """The economics for people."""
    usd = output.usd
    lines = [
        f"a turn costs {usd(found.weak_usd)} by the weak model, {usd(found.strong_usd)} by the strong one; "
        f"a judgement {usd(found.judge_usd)}"
    ]
    if not found.pays:
        why = "the strong model is not dearer than the weak one"
        if found.strong_usd > found.weak_usd:
            why = f"weak reply and judgement together cost {usd(found.weak_usd + found.judge_usd)}"
            why += f", no less than the strong model's {usd(found.strong_usd)}"
            if not found.drafts:
                why = f"a judgement costs no less than the {usd(found.strong_usd - found.weak_usd)} it could save"
        return [*lines, f"This judge cannot pay: {why}. The strong model alone is no dearer."]
    if found.break_even is not None:
        lines.append(
            f"break-even: {found.break_even:.1%} of judged turns stay with the weak model (judge / (strong - weak))"
        )
    if found.drafts and found.with_drafts is not None:
        lines.append(
            f"with discarded weak replies charged: {found.with_drafts:.1%} ((weak + judge) / strong); "
            "below it the strong model alone is cheaper"
        )
    return lines


def _recorded(found: "Recorded") -> list[str]:
    if not found.judged and not found.left_out:
        return [f"{output.count(found.turns, 'turn')}, none of them judged: there was no judge to pay for"]
    lines = [f"{output.count(found.turns, 'turn')}, {found.judged} judged" + _left_out(found)]
    if found.economics is None:
        lines.append(
            "no break-even: no judged turn with known costs, or no price of the strong model; "
            "--weak-cost, --strong-cost and --judge-cost reckon with prices"
        )
    else:
        lines += verdict(found.economics)
        by = (
            "the weak turns' tokens at its prices"
            if found.repriced
            else f"the mean of its {found.strong_turns} own turns"
        )
        lines.append(f"the strong model's cost is {by}")
        lines += _kept(found, found.economics)
    if found.route_usd:
        share = f", {found.judge_share:.1%} of the route's {output.usd(found.route_usd)}" if found.judge_share else ""
        lines.append(f"judges cost {output.usd(found.judge_usd)}{share}")
    if found.discarded:
        lines.append(
            f"{output.count(found.discarded, 'weak reply', 'weak replies')} thrown away, {output.usd(found.discarded_usd)}"
        )
    if found.saved_usd is not None and found.alone_usd is not None:
        less = found.saved_usd >= 0
        said = f"saved {output.usd(found.saved_usd)}" if less else f"cost {output.usd(-found.saved_usd)} more"
        spent, alone = output.usd(found.spent_usd), output.usd(found.alone_usd)
        lines += [
            f"{said} than the strong model alone: {spent} instead of {alone} over {output.count(found.compared, 'turn')}"
        ]
        if less:
            lines[-1] = (
                f"{said} against the strong model alone: {spent} instead of {alone} over {output.count(found.compared, 'turn')}"
            )
        lines.append(ASSUMED)
    return lines


def _left_out(found: "Recorded") -> str:
    return f"; {found.left_out} more were judged at a cost not known, and are left out" if found.left_out else ""


def _kept(found: "Recorded", known: "Economics") -> list[str]:
    """The share that stayed with the weak model beside the one it takes."""
    if known.needed is None or found.kept.value is None:
        return []
    low, high = found.kept.low, found.kept.high
    if low > known.needed:
        said = "more than it takes"
    elif high < known.needed:
        said = "less than it takes: this judge does not pay on these turns"
    else:
        said = "too few turns to tell whether that is enough"
    per_turn = known.saving_usd(found.kept.value)
    money = f"saves {output.usd(per_turn)}" if per_turn >= 0 else f"costs {output.usd(-per_turn)} more"
    return [
        f"{found.kept.hits} of {found.kept.of} judged turns stayed with the weak model, {found.kept}: {said}",
        f"on average a judged turn {money}, against the strong model alone",
    ]
