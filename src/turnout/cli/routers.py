"""The routers of a configuration, and the recorded runs they are tried on, for `evaluate` and `calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING

from turnout.cli import output, progress, records
from turnout.cli.exits import NOT_FOUND, CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from turnout.evaluate.arms import Arm, Wanted
    from turnout.evaluate.baselines import Played
    from turnout.evaluate.outcomes import Read
    from turnout.evaluate.pairing import Unit
    from turnout.evaluate.switching import Decided
    from turnout.evaluate.trajectories import Trajectories
    from turnout.gateway.config import Config


def is_url(place: str) -> bool:
    """Whether a place of outcomes is a ledger rather than a file."""
    return "://" in place or place.startswith("sqlite:")


def trajectories(
    place: str, wanted: "list[Wanted] | None", by: str, config: "Config", told: progress.Told
) -> "Trajectories":
    """The recorded runs of a file, read with the `[signals]` of the configuration, or of a ledger."""
    from turnout.evaluate.trajectories import read, read_ledger
    from turnout.signals import Vocabulary

    if is_url(place):
        with records.reading(records.existing(place)) as ledger:
            runs = read_ledger(ledger, records.shown(place), wanted, told)
    else:
        runs = read(Path(place), wanted, by, Vocabulary(config.signals), told)
    if wanted and not runs.read.damaged:
        wanted[0].among(runs.read.arms)  # a name that none of the runs has is to be said as such
    if not runs.steps:
        why = (
            f"; line {runs.read.damaged_lines[0].line}: {runs.read.damaged_lines[0].reason}"
            if runs.read.damaged
            else ""
        )
        raise CommandError(
            f"{place}: no runs with their messages{why}",
            NOT_FOUND,
            "a line needs task_id, model, success and messages in OpenAI chat form; a ledger, outcomes with task and session",
        )
    if runs.read.damaged:
        first = runs.read.damaged_lines[0]
        output.say(f"{place}: {runs.read.damaged} left out; the first, {first.line}: {first.reason}")
    return runs


def joined(outcomes: "Read", runs: "Trajectories", arm: "Arm") -> "Read":
    """The outcomes of both places; of the arm that was recorded step by step, only its runs."""
    import msgspec

    others = tuple(one for one in outcomes.outcomes if one.arm != arm)
    own = tuple(one for one in runs.read.outcomes if one.arm == arm)
    if runs.read.file == outcomes.file:
        return msgspec.structs.replace(outcomes, outcomes=(*others, *own))
    first, second = outcomes, runs.read
    return msgspec.structs.replace(
        first,
        file=f"{first.file}, {second.file}",
        rows=first.rows + second.rows,
        arms={**first.arms, **second.arms},
        unknown_success=first.unknown_success + second.unknown_success,
        damaged=first.damaged + second.damaged,
        damaged_lines=(*first.damaged_lines, *second.damaged_lines),
        outcomes=(*others, *own),
    )


def simulations(config: "Config", runs: "Trajectories") -> "Mapping[str, Callable[[Unit], Played]]":
    """What each route makes of a unit; one that cannot be tried on recordings is told, and left out."""
    from turnout.errors import TapeMiss
    from turnout.evaluate.switching import decisions, simulated
    from turnout.gateway.facts import facts

    known = facts(config)
    found: dict[str, Callable[[Unit], Played]] = {}
    for name, route in config.routes.items():
        try:
            simulate = simulated(route.router, runs, known)
            for steps in runs.steps.values():
                for _ in decisions(steps, route.router, targets=known):
                    pass  # one that asks a model anywhere cannot be tried
            found[name] = simulate
        except (TapeMiss, ValueError) as error:
            output.say(f"route {name} is left out: {error}")
    if not found:
        raise CommandError("no route of the configuration can be tried on recorded runs")
    return found


def decided(config: "Config", runs: "Trajectories", resamples: int, seed: int) -> "dict[str, Decided]":
    """What each route would have decided on every turn of the runs; no success is said."""
    from turnout.evaluate import switching
    from turnout.gateway.facts import facts

    known = facts(config)
    return {
        name: switching.decided(config.routes[name].router, runs, known, resamples, seed)
        for name in simulations(config, runs)
    }
