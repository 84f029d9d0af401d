"""The strategies that are compared, and how a grid of settings becomes a list of them."""

from collections.abc import Sequence
from itertools import product
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from turnout.peers.graph.relations import Settings
from turnout.routing.collaboration.chain import DEFAULT, PAPER, Picker, Rules

First: TypeAlias = Literal["best", "worst", "random", "cheapest"]
"""Who answers first: the best scored, the worst scored, one drawn, the one with the lowest price."""
Mode: TypeAlias = Literal["paper", "default"]
RULES: dict[Mode, Rules] = {"paper": PAPER, "default": DEFAULT}
Kind: TypeAlias = Literal["single", "by_labels", "majority", "majority_C", "self_mixture", "random_chain", "chain"]

TOLD: dict[str, str] = {
    "best_single": "the model that gets the best scores without labels answers alone",
    "single": "one model answers alone, chosen as chains choose their first",
    "best_single_by_labels": "the model that is right most often on the calibration half answers alone",
    "random_chain": "a drawn model follows a drawn model until the hops are used up; no graph, no votes (non-preset)",
    "non_targeted": "the published rules, but as many voters as the graph names are drawn from all (non-targeted)",
    "default_non_targeted": "our rules, but as many voters as the graph names are drawn from all",
    "paper": "the published rules: C_i votes, a disapprover improves, revisits, the last answer",
    "default": "our rules: no revisits, the answer with the most supporters, others asked where C_i is empty",
    "majority": "the most frequent answer of the best scored models",
    "majority_C": "the most frequent answer of the models in C; where C is empty, that of the best scored model",
    "self_mixture": "the most frequent of several answers of the best scored model",
}


class Arm(Struct, frozen=True):
    """One strategy with its settings. `of`: how many models a majority has, None = all. `targeted`: voters as the graph says, not
    drawn. `by_type`: a graph for each category of questions."""

    kind: Kind
    first: First = "best"
    mode: Mode = "default"
    targeted: bool = True
    alpha: int = 3
    settings: Settings = Settings()
    picker: Picker = "random"
    by_type: bool = False
    of: int | None = None

    @property
    def rules(self) -> Rules:
        """What a chain of this arm is ruled by."""
        return replace(RULES[self.mode], alpha=self.alpha, picker=self.picker)

    @property
    def strategy(self) -> str:
        """What kind of strategy it is, a key of TOLD."""
        match self.kind:
            case "single":
                return "best_single" if self.first == "best" else "single"
            case "by_labels":
                return "best_single_by_labels"
            case "chain":
                named = "non_targeted" if self.mode == "paper" else "default_non_targeted"
                return self.mode if self.targeted else named
            case kind:
                return kind


class Grid(Struct, frozen=True):
    """Settings that strategies are tried with. The first of each list is left out of names. `drawn`: also with voters that are
    drawn from all. `by_type`: also with a graph for each category."""

    modes: tuple[Mode, ...] = ("paper", "default")
    firsts: tuple[First, ...] = ("best", "worst", "random")
    alphas: tuple[int, ...] = (3,)
    d1s: tuple[float, ...] = (50.0,)
    d2s: tuple[float, ...] = (50.0,)
    pickers: tuple[Picker, ...] = ("random",)
    edge_scores: tuple[Literal["raw", "judge_centered"], ...] = ("raw",)
    drawn: bool = True
    by_type: bool = False


def arms(grid: Grid, models: int, *, comparable: bool, samples: bool) -> dict[str, Arm]:
    """All strategies by name. `comparable`: whether answers can be counted, so that there are majorities."""
    found: dict[str, Arm] = {"best_single": Arm("single"), "best_single_by_labels": Arm("by_labels")}
    for first in ("random", *grid.firsts):
        if first != "best":
            found[f"single first={first}"] = Arm("single", first)
    if comparable:
        found |= {f"majority of {k}": Arm("majority", of=k) for k in range(2, models)}
        found["majority"] = Arm("majority")
        found["majority_C"] = Arm("majority_C", settings=Settings(grid.d1s[0], grid.d2s[0]))
    if samples:
        found["self_mixture"] = Arm("self_mixture")
    settings = [Settings(*one) for one in product(grid.d1s, grid.d2s, grid.edge_scores)]
    for first, alpha in product(grid.firsts, grid.alphas):
        # It uses no graph and no picker; a grid's own are none of its settings.
        arm = Arm("random_chain", first, alpha=alpha, settings=settings[0], picker=grid.pickers[0])
        found[_named("random_chain", arm, grid)] = arm
    for mode, targeted in product(grid.modes, (True, False) if grid.drawn else (True,)):
        for first, alpha, picker, one in product(grid.firsts, grid.alphas, grid.pickers, settings):
            arm = Arm("chain", first, mode, targeted, alpha, one, picker)
            found[_named(arm.strategy, arm, grid)] = arm
    if grid.by_type:
        for mode, first in product(grid.modes, grid.firsts):
            arm = Arm("chain", first, mode, True, grid.alphas[0], settings[0], grid.pickers[0], by_type=True)
            found[f"{_named(arm.strategy, arm, grid)} graph=by_type"] = arm
        found["best_single graph=by_type"] = Arm("single", by_type=True)
    return found


def _named(strategy: str, arm: Arm, grid: Grid) -> str:
    """A strategy and those of its settings that are not the grid's first."""
    said = [
        ("first", arm.first, grid.firsts),
        ("alpha", arm.alpha, grid.alphas),
        ("picker", arm.picker, grid.pickers),
        ("d1", f"{arm.settings.d1:g}", [f"{d1:g}" for d1 in grid.d1s]),
        ("d2", f"{arm.settings.d2:g}", [f"{d2:g}" for d2 in grid.d2s]),
        ("edges", arm.settings.edge_score, grid.edge_scores),
    ]
    return " ".join([strategy, *(f"{name}={value}" for name, value, of in said if value != _first(of))])


def _first(of: Sequence[object]) -> object:
    return of[0]
