"""Routers on recorded runs, Turnout's beside nemo-switchyard's: `python benchmarks/routers.py [--switchyard VENV]`.

Terminal-bench, where 82 recorded runs of Claude Sonnet 4 under mini-swe-agent meet outcomes of Claude Opus 4.1 on the same 20
tasks (paired as `turnout evaluate` pairs: k-th run of a task with k-th). A router is asked before every reply; its first move to
Opus is simulated as a restart, for whole-run records do not say what a mid-run switch would have done. Collections without a
pair give decisions and costs only.

Prints tables in Markdown, or JSON with `--json`. VENV: a virtual environment with nemo-switchyard 0.3.0 (default: the variable
TURNOUT_SWITCHYARD; without it the peer is left out). DATA (`--data`): folder of recorded data (default: TURNOUT_SHARED, else
../shared). Its own thresholds and confirmations are swept, to draw a line for each router; nothing is chosen by them.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
import routers_plot
from msgspec import Struct
from signals_contenders import chat_rows, probe

from turnout.evaluate import trajectories
from turnout.evaluate.arms import Wanted
from turnout.evaluate.baselines import Baseline, Baselines, Played
from turnout.evaluate.evaluation import Asked, Evaluation, evaluate
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.outcomes import read as read_outcomes
from turnout.evaluate.pairing import Unit
from turnout.evaluate.recordings import read_conversation, rows
from turnout.evaluate.restart import restart
from turnout.evaluate.switching import Decided, decided, simulated, summed
from turnout.evaluate.trajectories import Trajectories
from turnout.evaluate.words import dollars, percent, points
from turnout.routing import Escalation, Router, Stage, TargetName
from turnout.statistics.interval import Interval

E, C = TargetName("efficient"), TargetName("capable")
WEAK, STRONG = "traj_miniswe_sonnet4_terminal_bench", "outcomes_terminal_bench_core_0_1_1"
UNPAIRED = ("traj_miniswe_gemini3pro_swebench_verified", "traj_taubench_gpt4o_airline")
THRESHOLDS = tuple(n / 10 for n in range(11))
CONFIRMATIONS = (1, 2, 3, 4, 5, 6, 8, 10, 15)
STAGE, SIGNALS, PEER = "stage", "escalation by signals", "switchyard 0.3.0 stage"
DEFAULTS = {STAGE: 0.5, SIGNALS: 2, PEER: 0.5}

Simulation = Callable[[Unit], Played]


class Asked030(Struct, frozen=True):
    """What nemo-switchyard says of every turn of runs, by line. `ups`: whether it goes up, as decided at its defaults in a
    session. `scores`: of each turn by itself; a rule that overrides counts as more than any score."""

    ups: Mapping[int, list[bool]]
    scores: Mapping[int, list[float]]

    def move(self, run: Outcome, threshold: float) -> int | None:
        """Where the first score beyond a threshold comes, strictly, as its code has it."""
        return next((n for n, score in enumerate(self.scores[run.line]) if score > threshold), None)


def switchyard(path: Path, runs: Trajectories, venv: Path) -> Asked030:
    """Ask the peer about every turn of the runs of a file."""
    lines = {number: row for number, row in enumerate(rows(path), 1) if any(line == number for _, line in runs.steps)}
    questions, ends = [], {}
    for number, row in lines.items():
        conversation = read_conversation(msgspec.json.encode({"messages": row["messages"]})).conversation
        # A turn is asked for by what stands before it; the decision is made at that message.
        ends[number] = [at - 1 for at, role in enumerate(conversation.roles) if role == "assistant"]
        for session in (True, False):
            asked = {"ask": "decisions", "messages": chat_rows(conversation), "at": ends[number]}
            questions.append(asked | {"session": session, "turns": ends[number]})
    answers = iter(probe(venv, questions))
    ups, scores = {}, {}
    for number, places in ends.items():
        together, alone = next(answers)["decisions"], next(answers)["decisions"]
        ups[number] = [together[str(at)]["tier"] == "capable" for at in places]
        scores[number] = [2.0 if (one := alone[str(at)])["source"] == "override" else one["score"] for at in places]
    return Asked030(ups, scores)


def routers() -> dict[tuple[str, float], Router]:
    """Turnout's routers by name and setting."""
    staged: dict[tuple[str, float], Router] = {(STAGE, t): Stage(E, C, threshold=t) for t in THRESHOLDS}
    latching: dict[tuple[str, float], Router] = {
        (SIGNALS, n): Escalation(E, C, judge_when="never", confirmations=n) for n in CONFIRMATIONS
    }
    return staged | latching


class Paired(Struct, frozen=True):
    """The comparison. `costed`: for each router at its default its cost and success over the units whose costs are known, with
    intervals. `against_peer`: its success and cost less the peer's, paired by task."""

    found: Evaluation
    costed: dict[str, tuple[Interval, Interval]]
    against_peer: dict[str, tuple[Interval, Interval]]


def paired(traces: Path, venv: Path | None, resamples: int) -> Paired:
    """All routers at all settings on terminal-bench, beside the baselines."""
    weak, strong = traces / f"{WEAK}.jsonl.gz", traces / f"{STRONG}.jsonl.gz"
    runs = trajectories.read(weak)
    outcomes = read_outcomes(strong, [Wanted("claude-4.1-opus")])
    both = msgspec.structs.replace(
        outcomes, file=f"{STRONG}, {WEAK}", outcomes=(*outcomes.outcomes, *runs.read.outcomes)
    )
    arms = Wanted("claude-4.1-opus").among(outcomes.arms), Wanted("claude-sonnet-4").among(runs.read.arms)
    plays: dict[str, Simulation] = {_named(*key): simulated(router, runs) for key, router in routers().items()}
    if venv is not None:
        peer = switchyard(weak, runs, venv)
        for run in runs.read.outcomes:
            first = peer.ups[run.line].index(True) if any(peer.ups[run.line]) else None
            if first != peer.move(run, DEFAULTS[PEER]):
                raise SystemExit(f"line {run.line}: the peer's first move is another one with a session than without")
        for threshold in THRESHOLDS:
            plays[_named(PEER, threshold)] = _moved(peer, threshold)
    found, units = evaluate(both, Asked(*arms, resamples=resamples), lambda _: None, None, plays)
    names = [name for name in map(_default, DEFAULTS) if name in plays]
    figures = Baselines(units, {name: [plays[name](unit) for unit in units] for name in names}, None, resamples)
    costed = {
        name: (figures.figures(name).cost_usd, figures.sums.ratio(f"completed {name}", "costed")) for name in names
    }
    peer_name = _default(PEER)
    less = {
        name: (figures.success_difference(name, peer_name), figures.cost_difference(name, peer_name))
        for name in names
        if peer_name in names and name != peer_name
    }
    return Paired(found, {name: (Interval(c.value, c.low, c.high), s) for name, (c, s) in costed.items()}, less)


def _moved(peer: Asked030, threshold: float) -> Simulation:
    return lambda unit: restart(unit, peer.move(unit.efficient, threshold))


def _named(name: str, setting: float) -> str:
    return f"{name} {setting:g}"


def _default(name: str) -> str:
    return _named(name, DEFAULTS[name])


def unpaired(traces: Path, venv: Path | None, resamples: int) -> dict[str, dict[str, Decided]]:
    """Decisions at the defaults on collections that no other model's outcomes pair with."""
    found: dict[str, dict[str, Decided]] = {}
    for name in UNPAIRED:
        path = traces / f"{name}.jsonl.gz"
        runs = trajectories.read(path)
        made = found[name] = {
            key: decided(router, runs, None, resamples)
            for (key, setting), router in routers().items()
            if setting == DEFAULTS[key]
        }
        if venv is not None:
            peer = switchyard(path, runs, venv)
            made[PEER] = summed(runs.read.outcomes, lambda run, peer=peer: peer.ups[run.line], resamples)  # type: ignore[misc]
    return found


def markdown(measured: Paired, elsewhere: Mapping[str, Mapping[str, Decided]]) -> Iterable[str]:
    """The tables of benchmarks/README.md."""
    found = measured.found
    yield f"{found.n} units of {found.n_tasks} tasks, costs known for {found.n_cost}.\n"
    yield "| | success, % | USD a unit | never moves, % | above the mix, points | of the gap to the oracle: success | cost |"
    yield "|---|---|---|---|---|---|---|"
    for name in ("capable", "efficient", "oracle"):
        yield _line(f"{name} only" if name != "oracle" else name, getattr(found, name))
    for name, one in found.routers.items():
        gap = one.gap_closed
        more = points(one.above_mix).replace(" points", ""), percent(gap.success), percent(gap.cost)
        yield _line(f"**{name}**" if name in map(_default, DEFAULTS) else name, one.figures, *more)
    for step, arm in found.restarts.arms.items():
        yield _line(f"restart after {step} steps", arm)
    for name, (success, cost) in measured.against_peer.items():
        less = f"{cost.value:+.3f} [{cost.low:+.3f} {cost.high:+.3f}]"
        yield f"\n{name} less {_default(PEER)}: success {points(success)}, USD a unit {less}"
    for collection, made in elsewhere.items():
        yield f"\n{collection}: decisions only\n"
        yield "| | turns that go up, % | runs that move, % | replies before | switches a run | cost before, % |"
        yield "|---|---|---|---|---|---|"
        for name, told in made.items():
            first = "" if told.first is None else f"{told.first:g}"
            cells = percent(told.capable_turns), percent(told.moved), first, str(told.switches), percent(told.kept_cost)
            yield f"| {name}, {told.runs} runs, {told.turns} turns | {' | '.join(cells)} |".replace("%", "")


def _line(name: str, one: Baseline, *more: str) -> str:
    cost = one.cost_usd
    cells = percent(one.success), dollars(cost.value, cost.low, cost.high), percent(one.efficient_share)
    return f"| {' | '.join((name, *cells, *(more or ('', '', ''))))} |".replace("%", "").replace("$", "")


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TURNOUT_SHARED", "../shared")))
    parser.add_argument("--switchyard", type=Path, default=os.environ.get("TURNOUT_SWITCHYARD"))
    parser.add_argument("--plot", type=Path, help="draw the frontier into this folder, as SVG and PNG")
    parser.add_argument("--paired-only", action="store_true", help="leave out collections without a pair")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    traces = given.data / "data" / "traces"
    if not traces.is_dir():
        raise SystemExit(f"no recorded data in {traces}; name its folder by --data")
    venv = Path(given.switchyard) if given.switchyard else None
    measured = paired(traces, venv, given.resamples)
    elsewhere = {} if given.paired_only else unpaired(traces, venv, given.resamples)
    if given.json:
        print(json.dumps(msgspec.to_builtins({"paired": measured, "unpaired": elsewhere})))
    else:
        print("\n".join(markdown(measured, elsewhere)))
    if given.plot:
        defaults = {name: _default(name) for name in DEFAULTS}
        for path in routers_plot.plot(measured.found, measured.costed, defaults, given.plot):
            print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
