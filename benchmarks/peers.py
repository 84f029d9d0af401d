"""What collaboration brings on recorded answers: every strategy, with intervals, on four recordings and pools of eight models.

python benchmarks/peers.py DATA [--json FILE] [--write README] [--quick] [--processes N]

DATA: the folder with the recordings (gsm8k_answers.jsonl.gz and the others). Prints Markdown; `--write` puts it between the
markers in a file instead, `--json` keeps every figure. `--quick`: two splits, to see that it runs. The same answers give the same
tables to the last digit.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from turnout.peers.simulate.arms import Grid
from turnout.peers.simulate.figures import Strategy
from turnout.peers.simulate.recorded import read
from turnout.peers.simulate.simulation import Simulation, Wanted, simulate
from turnout.statistics.interval import Estimate

GSM8K_COMMON = (
    "claude-3-haiku-20240307", "Meta-Llama-3.1-8B-Instruct", "gemma-2-9b-it", "Qwen2-7B-Instruct", "gpt-3.5-turbo-0125",
    "Phi-3.5-mini-instruct",
)  # fmt: skip
POOLS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "GSM8K 1": ("gsm8k_answers", 10, (*GSM8K_COMMON, "gpt-4o-mini-2024-07-18", "Mixtral-8x7B-Instruct-v0.1")),
    "GSM8K 2": ("gsm8k_answers", 10, (*GSM8K_COMMON, "Yi-1.5-9B-Chat", "Mistral-Nemo-Instruct-2407")),
    "MATH-L5": ("math_l5_answers", 10, (
        "gpt-4o-mini-2024-07-18", "claude-3-5-haiku-20241022", "deepseek-v2.5-0908", "Qwen2-72B-Instruct",
        "gemini-1.5-flash", "gemma-2-27b-it", "Meta-Llama-3-70B-Instruct", "Qwen2.5-7B-Instruct",
    )),
    "MMLU-Pro strong": ("mmlu_pro_answers", 3, (
        "gemini-1.5-pro-002", "gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct", "jamba-1.5-large",
        "Qwen1.5-72B-Chat", "Meta-Llama-3_1-8B-Instruct", "Mixtral-8x7B-Instruct-v0.1", "c4ai-command-r-v01",
    )),
    "MMLU-Pro weak": ("mmlu_pro_answers", 3, (
        "Meta-Llama-3_1-8B-Instruct", "Yi-34B", "mathstral-7B", "Mixtral-8x7B-Instruct-v0.1", "Phi-3-mini-4k-instruct",
        "c4ai-command-r-v01", "gemma-7b", "Mistral-7B-Instruct-v0.2",
    )),
    "PRD": ("prd_vicuna80", 40, ()),
}  # fmt: skip
"""By name: the recording, how many times its questions are halved, and the models, none named = all."""

AXES: dict[str, Grid] = {
    "alpha": Grid(firsts=("best",), drawn=False, alphas=(3, 1, 2, 5)),
    "d2": Grid(firsts=("best",), drawn=False, d2s=(50.0, 25.0, 75.0)),
    "d1": Grid(firsts=("best",), drawn=False, d1s=(50.0, 25.0)),
    "picker": Grid(firsts=("best",), drawn=False, pickers=("random", "max_received")),
    "edges": Grid(firsts=("best",), drawn=False, edge_scores=("raw", "judge_centered")),
}
"""Settings tried one at a time; on two halvings, of PRD on all."""
ROWS = (
    "best_single", "best_single_by_labels", "single first=random", "single first=worst", "majority", "majority_C",
    "random_chain first=random",
    "non_targeted first=random", "paper first=random", "default_non_targeted first=random", "default first=random",
    "non_targeted", "paper", "default_non_targeted", "default",
    "non_targeted first=worst", "paper first=worst", "default_non_targeted first=worst", "default first=worst",
)  # fmt: skip
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"

Found = dict[str, dict[str, Simulation]]
"""By pool and axis; the axis "" has all first-hop rules."""


def run(data: Path, quick: bool, processes: int) -> Found:
    """All simulations."""
    found: Found = {}
    for pool, (name, splits, models) in POOLS.items():
        table = read(data / f"{name}.jsonl.gz", models)
        many = 2 if quick else splits
        main = Grid(by_type=name.startswith("mmlu"))
        found[pool] = {}
        for axis, grid in {"": main, **AXES}.items():
            print(f"{pool} {axis}", file=sys.stderr, flush=True)
            found[pool][axis] = simulate(
                table, Wanted(grid, many if not axis else min(many, 2 if models else 40), processes=0)
            )
    return found


def markdown(found: Found) -> str:
    """All tables."""
    main = {pool: axes[""] for pool, axes in found.items()}
    parts = [
        _heading(main),
        "Accuracy (PRD: mean share of human verdicts won), pessimistic, with 95 % intervals over questions.",
        _by_pool(main, ROWS, lambda one: _interval(one.accuracy)),
        "Answers + votes a question.",
        _by_pool(main, ROWS, lambda one: f"{one.generations:.2f} + {one.votes:.2f}"),
        "Our rules beside simpler ways: from the first model's answer kept as it is; from a mix of majorities that costs the "
        "same (a vote counts as half an answer); and the bracket, from pessimistic to optimistic.",
        _table(
            ["", "cost", "- first kept", "- equal budget", "pessimistic to optimistic"],
            [
                [
                    f"{pool}, first {first}",
                    f"{one.cost:.2f}",
                    _difference(one.minus_first),
                    _difference(one.equal_budget.difference if one.equal_budget else None),
                    f"{one.accuracy.value:.3f} to {one.optimistic.accuracy.value:.3f}" if one.optimistic else "",
                ]
                for pool, simulation in main.items()
                for first in ("best", "random", "worst")
                for one in [simulation.strategies[_first("default", first)]]
            ],
        ),
        "The order of strategies, question by question, and in how many of the splits it holds.",
        _comparisons(main),
        "Unanimity as a stop signal (default, first best): on how many questions all voters approved, how often that was right, "
        "and how often what they did not agree on.",
        _table(
            ["", "agreed", "right when agreed", "right otherwise"], [_agreed(pool, one) for pool, one in main.items()]
        ),
        "Settings one at a time, first best: accuracy with answers + votes.",
        _axes(found),
        "A graph for each of the 14 categories of MMLU-Pro, scores drawn towards those of all.",
        _by_pool(
            {pool: one for pool, one in main.items() if "default graph=by_type" in one.strategies},
            [
                "best_single",
                "best_single graph=by_type",
                "default",
                "default graph=by_type",
                "paper",
                "paper graph=by_type",
            ],
            lambda one: f"{_interval(one.accuracy)}, {one.generations:.2f} + {one.votes:.2f}",
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _heading(main: dict[str, Simulation]) -> str:
    counts = ", ".join(
        f"{pool} {one.questions} questions ({len(one.models)} models, {one.splits} halvings)"
        for pool, one in main.items()
    )
    return f"{counts}. d1 = d2 = 50, alpha 3, disapprovers drawn, unless stated."


def _first(strategy: str, first: str) -> str:
    return strategy if first == "best" else f"{strategy} first={first}"


def _interval(one: Estimate) -> str:
    return f"{one.value:.3f} [{one.low:.3f} {one.high:.3f}]"


def _difference(one: Estimate | None) -> str:
    return "" if one is None else f"{one.value:+.3f} [{one.low:+.3f} {one.high:+.3f}]"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _by_pool(main: dict[str, Simulation], names: Sequence[str], said: Callable[[Strategy], str]) -> str:
    rows = []
    for name in names:
        cells = [said(one.strategies[name]) if name in one.strategies else "" for one in main.values()]
        rows.append([name, *cells])
    return _table(["", *main], rows)


def _comparisons(main: dict[str, Simulation]) -> str:
    rows = []
    for first in ("random", "best", "worst"):
        for one, other in (
            ("paper", "non_targeted"), ("non_targeted", "random_chain"), ("paper", "random_chain"),
            ("default", "default_non_targeted"), ("default", "paper"),
        ):  # fmt: skip
            pair = (_first(one, first), _first(other, first))
            cells = []
            for simulation in main.values():
                found = next(c for c in simulation.comparisons if (c.one, c.other) == pair)
                cells.append(f"{_difference(found.difference)} {found.positive}/{found.splits}")
            rows.append([f"{pair[0]} - {other}", *cells])
    return _table(["", *main], rows)


def _agreed(pool: str, simulation: Simulation) -> list[str]:
    one = simulation.strategies["default"]
    share, right = one.agreed or 0.0, one.accuracy_agreed or 0.0
    rest = (one.accuracy.value - share * right) / (1 - share) if share < 1 else 0.0
    return [pool, f"{share:.0%}", f"{right:.3f}", f"{rest:.3f}"]


def _axes(found: Found) -> str:
    rows = []
    for strategy in ("paper", "default"):
        for axis in AXES:
            some = next(iter(found.values()))[axis]
            for name in [n for n in some.strategies if n == strategy or n.startswith(f"{strategy} ")]:
                cells = []
                for axes in found.values():
                    one = axes[axis].strategies[name]
                    cells.append(f"{one.accuracy.value:.3f}, {one.generations:.1f} + {one.votes:.1f}")
                if name != strategy or axis == "alpha":
                    rows.append([name if name != strategy else f"{name} (alpha 3, d1 50, d2 50)", *cells])
    return _table(["", *found], rows)


def put(readme: Path, text: str) -> None:
    """Put text between the markers of a file."""
    before, begin, rest = readme.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{readme} does not hold the lines {BEGIN} and {END}")
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


def main() -> None:
    """Run all simulations and write what they found."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path, help="folder with the recordings")
    arguments.add_argument("--json", type=Path, help="file for every figure")
    arguments.add_argument("--write", type=Path, help="file with markers to put the tables between")
    arguments.add_argument("--quick", action="store_true", help="two splits each")
    arguments.add_argument("--processes", type=int, default=0, help="0 = one a core")
    given = arguments.parse_args()
    found = run(given.data, given.quick, given.processes)
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if given.write:
        put(given.write, markdown(found))
    else:
        print(markdown(found))


if __name__ == "__main__":
    main()
