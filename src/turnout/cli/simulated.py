"""`turnout peers simulate`: what chains of models would have done on recorded answers."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from turnout.cli import exits, options, output, progress

if TYPE_CHECKING:
    from turnout.peers.simulate.figures import Strategy
    from turnout.peers.simulate.simulation import Simulation


def simulate(
    answers: Annotated[
        Path,
        typer.Argument(metavar="ANSWERS", help="JSONL or JSONL.gz: answers to each question, or verdicts on them."),
    ],
    models: Annotated[str, typer.Option(metavar="A,B,C", help="The pool; all models of the file if absent.")] = "",
    mode: Annotated[str, typer.Option(metavar="A,B", help="Rules: paper, default.")] = "paper,default",
    first: Annotated[str, typer.Option(metavar="A,B", help="Who answers first: best, worst, random, cheapest.")] = (
        "best,worst,random"
    ),
    alpha: Annotated[str, typer.Option(metavar="N,M", help="Hops at most.")] = "3",
    d1: Annotated[str, typer.Option(metavar="X,Y", help="Percentiles that part low from high scores.")] = "50",
    d2: Annotated[str, typer.Option(metavar="X,Y", help="Percents of an author's scores that are low.")] = "50",
    picker: Annotated[
        str, typer.Option(metavar="A,B", help="Who improves: random, max_received, cheapest, weighted.")
    ] = "random",
    edge_score: Annotated[str, typer.Option(metavar="A,B", help="raw, judge_centered.")] = "raw",
    by_type: Annotated[bool, typer.Option("--by-type", help="Also with a graph for each category.")] = False,
    splits: Annotated[int, typer.Option(min=1, max=1_000, help="Times the questions are halved.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of the first split and all draws.")] = 1,
    price: Annotated[
        list[str] | None, typer.Option(metavar="MODEL=X", help="What an answer costs, in any unit; for every model.")
    ] = None,
    vote_cost: Annotated[float, typer.Option(min=0, help="Of a vote, as a share of an answer.")] = 0.5,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Resamples of questions.")] = 1_000,
    processes: Annotated[int, typer.Option(min=0, help="Processes on this machine; 0 = one a core.")] = 0,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: auto, local, ray://host:10001.")
    ] = "",
    as_json: options.AsJson = False,
) -> None:
    """Say what chains of models would have done on recorded answers, beside simpler ways of asking several models.

    One half of the questions makes the graph, without labels; the other half is played, by the rules of the router. Lists of
    settings make a grid. No model is called.

    turnout peers simulate answers.jsonl.gz --models small,large,other --alpha 1,2,3
    """
    from turnout.peers.simulate.arms import First, Grid, Mode
    from turnout.peers.simulate.recorded import read
    from turnout.peers.simulate.simulation import Wanted
    from turnout.peers.simulate.simulation import simulate as play
    from turnout.routing.collaboration.chain import Picker
    from turnout.routing.collaboration.graph import EdgeScore

    grid = Grid(
        _named("--mode", mode, Mode),
        _named("--first", first, First),
        _numbers("--alpha", alpha, int, 0, 20),
        _numbers("--d1", d1, float, 0, 100),
        _numbers("--d2", d2, float, 0, 100),
        _named("--picker", picker, Picker),
        _named("--edge-score", edge_score, EdgeScore),
        by_type=by_type,
    )
    wanted = Wanted(
        grid, splits, seed, options.numbers(price or [], "--price", "MODEL=X"), vote_cost, resamples, processes, ray
    )
    table = read(answers, [name.strip() for name in models.split(",") if name.strip()])
    with progress.shown() as told:
        found = play(table, wanted, told)
    if as_json:
        output.emit(found)
    else:
        print_simulation(found)


def _items(option: str, text: str) -> list[str]:
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise exits.CommandError(f"{option} names nothing", step="leave it out for the default")
    if len(set(found)) < len(found):
        raise exits.CommandError(f"{option} {text}: something is named twice")
    return found


def _named(option: str, text: str, kind: Any) -> tuple[Any, ...]:
    found, known = _items(option, text), get_args(kind)
    if unknown := [name for name in found if name not in known]:
        raise exits.CommandError(f"{option} {unknown[0]}: expected {', '.join(known)}")
    return tuple(found)


def _numbers(option: str, text: str, kind: Callable[[str], Any], least: float, most: float) -> tuple[Any, ...]:
    found = []
    for part in _items(option, text):
        try:
            number = kind(part)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            whole = "whole numbers" if kind is int else "numbers"
            raise exits.CommandError(f"{option} {part}: expected {whole} from {least:g} to {most:g}")
        found.append(number)
    return tuple(found)


SHOWN_LADDER = "majority of "
"""Strategies that are only there to say what a budget buys; --json has them."""


def print_simulation(found: "Simulation") -> None:
    """The strategies as a table, what they are, and what to know of them."""
    output.emit_text(
        f"{found.dataset}: {output.count(len(found.models), 'model')}, {output.count(found.questions, 'question')}, "
        f"{output.count(found.splits, 'split')}; accuracy is the {found.measure}, pessimistic"
    )
    table = output.table(
        "strategy",
        "accuracy",
        "answers",
        "votes",
        "cost",
        "- first kept",
        "- equal budget",
        "agreed: right",
        "optimistic",
    )
    for name, one in found.strategies.items():
        if not name.startswith(SHOWN_LADDER):
            table.row(name, *_cells(one))
    table.print()
    for beside in found.comparisons:
        spread = f"; higher in {beside.positive} of {beside.splits} splits" if beside.splits > 1 else ""
        apart = beside.difference
        output.emit_text(
            f"{beside.one} - {beside.other}: {apart.value:+.3f} [{apart.low:+.3f} {apart.high:+.3f}]{spread}"
        )
    output.emit_text("")
    for name, said in found.told.items():
        output.emit_text(f"{name}: {said}")
    for note in found.notes:
        output.emit_text(f"note: {note}")


def _cells(one: "Strategy") -> list[str]:
    agreed = "" if one.agreed is None else f"{one.agreed:.0%}"
    if one.accuracy_agreed is not None:
        agreed += f": {one.accuracy_agreed:.3f}"
    kept, budget = one.minus_first, one.equal_budget
    return [
        str(one.accuracy),
        f"{one.generations:.2f}",
        f"{one.votes:.2f}",
        f"{one.cost:.3g}",
        "" if kept is None else f"{kept.value:+.3f} [{kept.low:+.3f} {kept.high:+.3f}]",
        ""
        if budget is None
        else f"{budget.difference.value:+.3f} [{budget.difference.low:+.3f} {budget.difference.high:+.3f}]",
        agreed,
        "" if one.optimistic is None else f"{one.optimistic.accuracy.value:.3f}",
    ]
