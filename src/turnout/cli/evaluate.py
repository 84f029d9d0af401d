"""`turnout evaluate`: whether routing between two models pays, from recorded outcomes."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import options, output, progress, records, routers
from turnout.cli.exits import CommandError

if TYPE_CHECKING:
    from turnout.evaluate.arms import Arm, Wanted
    from turnout.evaluate.outcomes import Read
    from turnout.evaluate.ranking import RankedPair


def evaluate(
    outcomes: Annotated[
        str, typer.Argument(metavar="OUTCOMES", help="JSONL or JSONL.gz, one run of a task a line; or a ledger's URL.")
    ],
    capable: Annotated[str, typer.Option(metavar="MODEL[@HARNESS]", help="The capable model.")] = "",
    efficient: Annotated[str, typer.Option(metavar="MODEL[@HARNESS]", help="The efficient model.")] = "",
    routed: Annotated[str, typer.Option(metavar="MODEL[@HARNESS]", help="Runs of a router between the two.")] = "",
    routes: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="Try the routers of this configuration on recorded runs.")
    ] = None,
    trajectories: Annotated[
        str, typer.Option(metavar="FILE", help="Efficient runs with `messages`, if OUTCOMES has none.")
    ] = "",
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Rank all pairs of models instead.")] = False,
    loss_weight: Annotated[
        list[str] | None,
        typer.Option(metavar="[CATEGORY=]W", help="Gained tasks that one lost task outweighs; may be repeated."),
    ] = None,
    margin: Annotated[float, typer.Option(min=0.0, max=1.0, help="Success per task that may be given up.")] = 0.02,
    by: Annotated[str, typer.Option(metavar="FIELD", help="Field with a task's category.")] = "",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 1,
    report: options.Report = None,
    as_json: options.AsJson = False,
) -> None:
    """Say whether routing between two models pays, from recorded outcomes.

    Baselines, oracle, quadrants, intervals, noise floor, frontier, and a verdict. Rows have task_id or query_id, model, success,
    and where known harness, trial and cost_usd.

    With --routes: what your routers would have made of runs that the efficient model was recorded on step by step, their first
    move to the capable model simulated as a restart; without models to compare, what they would have decided."""
    weights = weights_of(loss_weight or [])
    if all_pairs:
        if capable or efficient or routed or report or routes:
            raise CommandError("--all-pairs ranks every pair; leave out the models, --routes and --report")
        _all_pairs(outcomes, by, as_json)
        return
    if trajectories and routes is None:
        raise CommandError("--trajectories holds runs to try routers on", step="name their configuration by --routes")
    if routes is not None and not capable and not efficient:
        _decisions(trajectories or outcomes, by, routes, (resamples, seed), as_json)
        return
    if not capable or not efficient:
        raise CommandError("--capable and --efficient name the two models", step="or rank every pair with --all-pairs")
    from turnout.evaluate.arms import Wanted
    from turnout.evaluate.evaluation import Asked
    from turnout.evaluate.evaluation import evaluate as compared
    from turnout.pricing import Prices

    wanted = [Wanted(name) for name in (capable, efficient, routed) if name]
    with progress.shown() as told:
        found, simulate = read_outcomes(outcomes, wanted, by, told), None
        if routes is not None:
            from turnout.gateway.config import load

            config = load(routes, None)
            runs = routers.trajectories(trajectories or outcomes, [wanted[1]], by, config, told)
            found = routers.joined(found, runs, runs.read.arm(wanted[1]))
            simulate = routers.simulations(config, runs)
        arms = _arms(found, wanted)
        asked = Asked(arms[0], arms[1], arms[2] if routed else None, margin, weights, resamples, seed)
        tell = functools.partial(told, "bootstrap")
        result, units = compared(found, asked, Prices.load().rates, tell, simulate)
    check_weights(weights, {unit.category for unit in units})
    if report is not None:
        from turnout.evaluate.report.comparison import html

        report.write_text(html(result, units, _named(outcomes)), "utf-8")
        output.say(f"wrote {report}")
    if as_json:
        output.emit(result)
    else:
        from turnout.cli import evaluated

        evaluated.print_evaluation(result)


def read_outcomes(outcomes: str, wanted: "list[Wanted] | None", by: str, told: progress.Told) -> "Read":
    """The outcomes of a file, or of a ledger. `wanted`: the arms, None = all. Raises CommandError."""
    if not routers.is_url(outcomes):
        from turnout.evaluate.outcomes import read

        return read(Path(outcomes), wanted, by, told)
    if by:
        raise CommandError("--by names a field of a file", step="a ledger's outcomes have a `category`")
    from turnout.evaluate.reported import read_ledger

    with records.reading(records.existing(outcomes)) as ledger:
        return read_ledger(ledger, records.shown(outcomes), wanted, told)


def _named(outcomes: str) -> str:
    """A file with the digest of its bytes, so that the lines a report names can be found again; a ledger without its password."""
    if routers.is_url(outcomes):
        return records.shown(outcomes)
    import hashlib

    with Path(outcomes).open("rb") as file:
        return f"{outcomes} (sha256:{hashlib.file_digest(file, 'sha256').hexdigest()})"


def _decisions(place: str, by: str, routes: Path, bootstrap: tuple[int, int], as_json: bool) -> None:
    """What routers would have decided on recorded runs that no other model is compared with."""
    from turnout.evaluate.words import percent
    from turnout.gateway.config import load

    with progress.shown() as told:
        config = load(routes, None)
        runs = routers.trajectories(place, None, by, config, told)
        found = routers.decided(config, runs, *bootstrap)
    if as_json:
        output.emit({"trajectories": runs.read.file, "damaged": runs.read.damaged, "routers": found})
        return
    table = output.table(
        "route", "runs", "turns", "capable turns", "runs moved", "first move", "switches a run", "cost before"
    )
    for name, one in found.items():
        counts = (name, str(one.runs), str(one.turns), percent(one.capable_turns), percent(one.moved))
        first = "never" if one.first is None else f"after {one.first:g} replies"
        table.row(*counts, first, str(one.switches), percent(one.kept_cost))
    table.print()
    output.emit_text(
        "first move: the median over runs that move; cost before: of the recorded cost, what was spent before the first move. "
        "What these runs would have come to after a move is not recorded: no success is said."
    )


def _arms(found: "Read", wanted: "list[Wanted]") -> "list[Arm]":
    arms = [found.arm(one) for one in wanted]
    if len(set(arms)) < len(arms):
        raise CommandError(f"{arms[0]} is named twice; there is nothing to compare")
    return arms


def weights_of(given: list[str]) -> dict[str, float]:
    """Weights of lost tasks by category, "" = all others. Raises CommandError."""
    return options.numbers(given, "--loss-weight", "W or CATEGORY=W", is_bare=True)


def check_weights(weights: dict[str, float], categories: set[str]) -> None:
    """Raises CommandError for a weight of a category that no task is of."""
    unknown = sorted(set(weights) - categories - {""})
    if unknown:
        known = ", ".join(sorted(filter(None, categories))[:20]) or "none"
        raise CommandError(f"--loss-weight: no task is of category {', '.join(unknown)}; there are: {known}")


def _all_pairs(outcomes: str, by: str, as_json: bool) -> None:
    from turnout.evaluate.ranking import LEAST_TASKS, rank

    with progress.shown() as told:
        found = read_outcomes(outcomes, None, by, told)
        ranked = rank(found.outcomes, lambda done, of: told("comparing pairs", done, of))
    if as_json:
        counts = {"rows": found.rows, "damaged": found.damaged, "unknown_success": found.unknown_success}
        output.emit({"outcomes": found.file, **counts, "arms": len(found.arms), "pairs": ranked})
        return
    if not ranked:
        raise CommandError(f"{outcomes}: no two of {len(found.arms)} models share {LEAST_TASKS} tasks")
    _print_ranking(ranked, found)


def _print_ranking(ranked: "list[RankedPair]", found: "Read") -> None:
    from turnout.evaluate.quadrants import DEFINITIONS
    from turnout.evaluate.words import counted_words

    table = output.table(
        "capable", "efficient", "n", "capable", "efficient", "oracle", "headroom", "noise", "price gap", "saving"
    )
    for one in ranked[:SHOWN]:
        table.row(
            str(one.capable),
            str(one.efficient),
            str(one.n),
            *(f"{share:.1%}" for share in (one.success_capable, one.success_efficient, one.success_oracle)),
            f"{one.headroom * 100:+.1f}",
            "no control" if one.noise is None else f"{one.noise * 100:.1f}",
            "unknown" if one.price_gap is None else f"{one.price_gap:.1f} x",
            "unknown" if one.saving is None else f"{one.saving:.0%}",
        )
    table.print()
    if len(ranked) > SHOWN:
        output.emit_text(f"{len(ranked) - SHOWN} more pairs: --json lists all")
    output.emit_text(
        "headroom: success of the oracle above the better model, in points; noise: what an oracle would gain from two runs "
        "of that "
        f"one model; saving: of the better model's cost, by the oracle. Oracle: {DEFINITIONS['oracle']}."
    )
    output.emit_text(counted_words(found.rows, found.damaged, found.unknown_success))


SHOWN = 30
"""Pairs that are printed."""
