"""`turnout calibrate`: a router's numbers, chosen on recorded runs under a bound on tasks lost and judged on held-out ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import options, output, progress, routers
from turnout.cli.evaluate import check_weights, read_outcomes, weights_of
from turnout.cli.exits import NOT_FOUND, CommandError

if TYPE_CHECKING:
    from turnout.evaluate.calibration.result import Calibration
    from turnout.evaluate.calibration.settings import Settings
    from turnout.gateway.config import Config
    from turnout.gateway.routes import Route


def calibrate(
    route: Annotated[str, typer.Argument(metavar="ROUTE", help="Route whose router to calibrate.")],
    outcomes: Annotated[str, typer.Argument(metavar="OUTCOMES", help="Runs of both models: JSONL, or a ledger's URL.")],
    capable: Annotated[str, typer.Option(metavar="MODEL[@HARNESS]", help="The capable model.")],
    efficient: Annotated[str, typer.Option(metavar="MODEL[@HARNESS]", help="The efficient model.")],
    max_loss: Annotated[
        float, typer.Option(min=0.0, help="Share of tasks that may be lost against the capable model.")
    ],
    config: Annotated[Path, typer.Option(metavar="FILE", help="Configuration file.")] = options.DEFAULT_FILE,
    trajectories: Annotated[
        str, typer.Option(metavar="FILE", help="Efficient runs with `messages`, if OUTCOMES has none.")
    ] = "",
    loss_weight: Annotated[
        list[str] | None, typer.Option(metavar="[CATEGORY=]W", help="How much a lost task counts; may be repeated.")
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUES", help="Values of a setting: 2,3,5 or FIRST:LAST:STEP; may be repeated."),
    ] = None,
    cautious: Annotated[
        bool, typer.Option("--cautious", help="Bound the upper end of the interval, not the estimate.")
    ] = False,
    train: Annotated[float, typer.Option(min=0.1, max=0.9, help="Share of the tasks to choose by.")] = 0.5,
    by: Annotated[str, typer.Option(metavar="FIELD", help="Field with a task's category.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the bootstrap.")] = 1,
    resamples: options.Resamples = 10_000,
    jobs: Annotated[int, typer.Option(min=0, max=1024, help="Processes; 0 = one a core.")] = 0,
    keep: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Keep the whole sweep for a report.")] = None,
    report: options.Report = None,
    no_write: Annotated[bool, typer.Option("--no-write", help="Write no policy file, even if it is better.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose a router's numbers on recorded runs.

    Tasks are split in two. On one part every setting is tried; of those that lose at most --max-loss of the tasks against the
    capable model, the cheapest is chosen. It is judged once, on the other part, beside what you have now. If it is better,
    a policy file with this evidence is written, which `turnout policy promote` puts into force.

    Example: turnout calibrate coder outcomes.jsonl --capable large --efficient small --max-loss 0.05 --trajectories runs.jsonl
    """
    import msgspec

    from turnout.errors import TapeMiss
    from turnout.evaluate.arms import Wanted
    from turnout.evaluate.calibration.calibrate import Asked, TooLittle
    from turnout.evaluate.calibration.calibrate import calibrate as calibrated
    from turnout.evaluate.calibration.result import Constraint
    from turnout.evaluate.calibration.settings import axis, points
    from turnout.gateway.config import load
    from turnout.gateway.facts import facts

    weights = {"": 1.0, **weights_of(loss_weight or [])}
    loaded = load(config, None)
    if route not in loaded.routes:
        raise CommandError(f"{config} has no route {route}", NOT_FOUND, f"it has: {', '.join(loaded.routes)}")
    router = loaded.routes[route].router
    wanted = [Wanted(capable), Wanted(efficient)]
    with progress.shown() as told:
        read = read_outcomes(outcomes, wanted, by, told)
        runs = routers.trajectories(trajectories or outcomes, [wanted[1]], by, loaded, told)
        arm = runs.read.arm(wanted[1])
        joined = routers.joined(read, runs, arm)
        check_weights(weights, {one.category for one in joined.outcomes})
        constraint = Constraint(max_loss, weights, "upper end" if cautious else "estimate")
        asked = Asked(route, joined.arm(wanted[0]), arm, constraint, train, seed, resamples, jobs)
        try:
            tried = points(router, [axis(text) for text in sweep or ()], seed)
            found = calibrated(joined, runs, router, tried, asked, facts(loaded), told)
        except TooLittle as error:
            raise CommandError(f"too little data: {error}") from None
        except (TapeMiss, ValueError) as error:
            raise CommandError(f"route {route}: {error}") from None
    if keep is not None:
        keep.write_bytes(msgspec.json.encode(found))
        output.say(f"wrote {keep}")
    if report is not None:
        from turnout.evaluate.report.calibration import html

        report.write_text(html(found), "utf-8")
        output.say(f"wrote {report}")
    written = _written(loaded, loaded.routes[route], found) if found.result == "better" and not no_write else None
    if as_json:
        output.emit({**msgspec.structs.asdict(found), "policy": None if written is None else str(written)})
        return
    from turnout.cli import calibrated as shown

    shown.print_calibration(found)
    if written is not None:
        output.emit_text(
            f"\nwrote {written}; `turnout policy diff` shows it, `turnout policy promote` puts it into force"
        )


def _written(config: "Config", route: "Route", found: "Calibration") -> Path:
    """The policy file of the chosen settings, with what speaks for them."""
    from turnout.evaluate.calibration.evidence import evidence
    from turnout.gateway.routes import table_of
    from turnout.gateway.versions import folder_of, version

    table = table_of(route)
    for name, value in (found.chosen or {}).items():
        *path, last = name.split(".")
        at = table
        for step in path:
            at = at[step]
        at[last] = value
    note = f"calibrated: {_changes(found)}"
    made = version(
        config, route.name, table, evidence=evidence(found), made_by="calibrate", came_from=route.policy, note=note
    )
    return folder_of(config).add(made)


def _changes(found: "Calibration") -> str:
    from turnout.evaluate.calibration.words import said

    chosen: Settings = found.chosen or {}
    return said({name: value for name, value in chosen.items() if found.in_force[name] != value})
