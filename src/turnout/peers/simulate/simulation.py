"""A simulation from beginning to end. Needs numpy."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from turnout.errors import ClientError
from turnout.peers.graph.relations import LEAST_MODELS
from turnout.peers.simulate.arms import TOLD, Grid, arms
from turnout.peers.simulate.figures import RESAMPLES, Comparison, Figures, Strategy, told_apart
from turnout.peers.simulate.playing import CallPrices
from turnout.peers.simulate.recorded import Table
from turnout.peers.simulate.running import jobs, run, totals
from turnout.statistics.bootstrap import SEED

LEAST_QUESTIONS = 20
"""Fewer questions cannot be halved into anything that says something."""


class Wanted(Struct, frozen=True):
    """How a simulation is to be made. `prices`: of an answer by model, in any unit; {} = 1 each. `vote`: what a vote costs, as a
    share of an answer. `processes`, `ray`: as in `running.run`."""

    grid: Grid = Grid()
    splits: int = 10
    seed: int = 1
    prices: dict[str, float] = {}
    vote: float = 0.5
    resamples: int = RESAMPLES
    processes: int = 1
    ray: str = ""


class Simulation(Struct, frozen=True):
    """What a simulation found. `strategies`: by name, in which the settings stand that are not the grid's first. `measure`: what
    `accuracy` is of these answers."""

    dataset: str
    kind: str
    measure: str
    models: tuple[str, ...]
    questions: int
    splits: int
    seed: int
    prices: dict[str, float]
    vote_cost: float
    strategies: dict[str, Strategy]
    comparisons: tuple[Comparison, ...]
    told: dict[str, str]
    notes: tuple[str, ...]


def simulate(
    table: Table, wanted: Wanted, told: Callable[[str, int, int], None] = lambda what, done, of: None
) -> Simulation:
    """What every strategy would have done on a table. Raises ClientError for one that is too small and for prices that are
    missing."""
    _check(table, wanted)
    grid = wanted.grid
    tried = arms(grid, len(table.models), comparable=table.kind == "answers", samples=table.has_samples)
    prices = CallPrices(tuple(wanted.prices.get(model, 1.0) for model in table.models), wanted.vote)
    seeds = range(wanted.seed, wanted.seed + wanted.splits)
    todo = jobs(tried, seeds)
    done = run(table, prices, todo, wanted.processes, wanted.ray, lambda n, of: told("playing", n, of))
    figures = Figures(totals(table, tried, done), tried, wanted.resamples, SEED)
    strategies = {name: figures.strategy(name) for name in tried}
    return Simulation(
        dataset=table.name,
        kind=table.kind,
        measure="share of right answers" if table.kind == "answers" else "mean share of human verdicts won",
        models=table.models,
        questions=len(table.questions),
        splits=wanted.splits,
        seed=wanted.seed,
        prices=wanted.prices,
        vote_cost=wanted.vote,
        strategies=strategies,
        comparisons=tuple(figures.comparison(*pair) for pair in told_apart(tried)),
        told={name: said for name, said in TOLD.items() if any(one.strategy == name for one in strategies.values())},
        notes=tuple(_notes(table, wanted, strategies)),
    )


def _check(table: Table, wanted: Wanted) -> None:
    if len(table.models) < LEAST_MODELS:
        raise ClientError(f"a simulation needs at least {LEAST_MODELS} models, got {len(table.models)}")
    if len(table.questions) < LEAST_QUESTIONS:
        left_out = "".join(f"; {count} {reason}" for reason, count in table.skipped.items())
        raise ClientError(
            f"a simulation needs at least {LEAST_QUESTIONS} questions, got {len(table.questions)}{left_out}"
        )
    if unknown := sorted(set(wanted.prices) - set(table.models)):
        raise ClientError(f"a price for {unknown[0]}, which is not one of the models: {', '.join(table.models)}")
    missing = [model for model in table.models if model not in wanted.prices]
    if wanted.prices and missing:
        raise ClientError(f"no price for {', '.join(missing)}; give one for every model, or none")
    if "cheapest" in wanted.grid.firsts + wanted.grid.pickers and not wanted.prices:
        raise ClientError("`cheapest` needs to know the price of every model")


def _notes(table: Table, wanted: Wanted, strategies: Mapping[str, Strategy]) -> Sequence[str]:
    notes = [f"{count} {reason}" for reason, count in table.skipped.items()]
    if table.kind == "answers":
        notes.append(
            "graph and votes: no model was asked; a model scores and votes by whether an answer says what its own does, which "
            "is a proxy"
        )
    else:
        notes.append(
            "the graph is made of pairwise wins, in which Given is fixed by construction (see the guide to the graph); answers "
            "cannot be compared, so there is no majority"
        )
    notes.append(
        "how an answer would have been improved is not recorded: `accuracy` is where who improves comes back with its own answer "
        "(pessimistic), `optimistic` where it never makes one worse (by the labels, an upper bound)"
    )
    if not table.has_samples:
        notes.append("no self-mixture: the file holds one answer a model (`samples` would hold more)")
    if not wanted.prices:
        notes.append(f"no prices: an answer costs 1, a vote {wanted.vote:g}")
    return notes
