"""`turnout judges`: what judges said, how often, how well, at what price, and why they said nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import options, output
from turnout.cli.records import Records, none_of

if TYPE_CHECKING:
    from turnout.evaluate.verdicts import Group, Verdicts
    from turnout.statistics.shares import Share


def judges(
    route: Annotated[str, typer.Option("--route", metavar="NAME", help="Only turns of this route.")] = "",
    limit: options.Newest = 5000,
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    as_json: options.AsJson = False,
) -> None:
    """Show what judges said.

    Votes and streaks, precision and recall where outcomes are known, what votes lean to, cost, latency, and failures."""
    from turnout.evaluate.verdicts import verdicts

    records = Records(ledger, url, key_env)
    turns = records.recent(limit, route)
    outcomes = records.outcomes(turns)
    found = verdicts(turns, outcomes or ())
    if as_json:
        output.emit({"turns": len(turns), "outcomes": _count(outcomes), "judges": [_told(one) for one in found]})
        return
    if not found:
        whose = f" of route `{route}`" if route else ""
        newest = f"no judge was asked in the newest {output.count(len(turns), 'turn')}{whose}"
        output.say(newest if turns else none_of(route=route))
        return
    for one in found:
        output.emit_text("\n".join([_head(one), *(f"  {line}" for line in _lines(one, _count(outcomes)))]))


def _count(outcomes: Sequence[Any] | None) -> int | None:
    return None if outcomes is None else len(outcomes)


def _told(one: "Verdicts") -> dict[str, Any]:
    import msgspec

    from turnout.evaluate.verdicts import lean

    told: dict[str, Any] = msgspec.to_builtins(one, str_keys=True)
    for name in ("by_category", "by_agent", "by_length", "by_style"):
        told[f"{name}_lean"] = lean(getattr(one, name))
    return {**told, "share_of_cost": one.cost_usd / one.route_usd if one.route_usd else None}


def _head(one: "Verdicts") -> str:
    return f"route {one.route}, judge {one.judge}: to be asked in {output.count(one.turns, 'turn')}"


def _lines(one: "Verdicts", outcomes: int | None) -> list[str]:
    skipped, failed = sum(one.skipped.values()), sum(one.failures.values())
    asked = output.count(one.asked, "time")
    lines = [
        f"asked {asked}, not asked {skipped}{_reasons(one.skipped)}, no verdict {failed}{_reasons(one.failures)}",
    ]
    if one.disapproved.of:
        lines.append(f"votes against an answer: {_share(one.disapproved)}")
    if one.votes.of or not one.disapproved.of:
        lines += _to_move_up(one, outcomes)
    for name, groups in (
        ("task category", one.by_category),
        ("agent", one.by_agent),
        ("length of the draft", one.by_length),
        ("style of the draft", one.by_style),
    ):
        lines += _leaning(name, groups)
    lines.append(_cost(one))
    if one.latency_p50_s is not None and one.latency_p90_s is not None:
        p50, p90 = output.duration(one.latency_p50_s), output.duration(one.latency_p90_s)
        lines.append(f"a verdict takes {p50} (median), {p90} (90 % of them at most)")
    return lines


def _to_move_up(one: "Verdicts", outcomes: int | None) -> list[str]:
    lines = [f"votes to move up: {_share(one.votes)}"]
    if one.streaks:
        runs = ", ".join(f"{length} in a row {count} x" for length, count in one.streaks.items())
        lines.append(f"consecutive votes: {runs}")
    lines.append(
        f"moved up {output.count(one.escalations, 'turn')}; a latch kept {output.count(one.held, 'later turn')} of the route up"
    )
    return lines + _against(one, outcomes)


def _reasons(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count}' for name, count in counts.items())})" if counts else ""


def _share(found: "Share") -> str:
    return f"{found.hits} of {found.of}, {found}" if found.of else "none"


def _against(one: "Verdicts", outcomes: int | None) -> list[str]:
    if outcomes is None:
        return ["precision and recall: a gateway does not tell outcomes; read its ledger with --ledger"]
    over = f"{one.taken_over} more taken over by another model, which says nothing of the cheap one"
    if not one.known:
        why = f"of lanes that the cheap model served to the end ({over})" if one.taken_over else "of these turns"
        return [f"precision and recall: no outcomes {why}"]
    return [
        f"precision of votes: {_share(one.precision)}; recall: {_share(one.recall)}",
        f"  over {output.count(one.known, 'lane')} with a known outcome that the cheap model served to the end"
        + (f"; {over}" if one.taken_over else ""),
    ]


def _leaning(name: str, groups: "Sequence[Group]") -> list[str]:
    from turnout.evaluate.verdicts import lean

    if len(groups) < 2:
        return []
    leans = lean(groups)
    found = [f"votes by {name}: " + (leans or "no difference beyond chance")]
    return found + [f"  {group.name}: {_share(group.votes)}" for group in groups]


def _cost(one: "Verdicts") -> str:
    part = f", {one.cost_usd / one.route_usd:.1%} of the route's {output.usd(one.route_usd)}" if one.route_usd else ""
    unknown = f"; {output.count(one.unknown, 'call')} without a known cost" if one.unknown else ""
    return f"cost {output.usd(one.cost_usd)}{part}{unknown}"
