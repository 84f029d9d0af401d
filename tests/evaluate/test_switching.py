"""Routers on recorded runs: the step of the first move, and the restart that is simulated there."""

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.outcomes import run as outcome
from tests.recorded import needs_recordings, shared
from tests.trajectories import BIG, SMALL, messages, recorded, rows

from turnout.errors import TapeMiss
from turnout.evaluate import trajectories
from turnout.evaluate.arms import Wanted
from turnout.evaluate.evaluation import Asked, evaluate
from turnout.evaluate.outcomes import read as read_outcomes
from turnout.evaluate.pairing import Unit, pair
from turnout.evaluate.recordings import read_conversation
from turnout.evaluate.switching import Tiers, decided, decisions, first_move, simulated, tiers_of
from turnout.evaluate.trajectories import before_replies
from turnout.routing import Affinity, Canary, Escalation, Passthrough, Random, Router, Stage, TargetName, Turn
from turnout.routing.core import Lane
from turnout.routing.stage.score import Weights
from turnout.sessions.store import folded
from turnout.signals import observe
from turnout.steps import Run

E, C = TargetName("efficient"), TargetName("capable")
TIERS = Tiers(E, C)


def stage(**fields: Any) -> Stage:
    return Stage(E, C, **fields)


def latch(confirmations: int) -> Escalation:
    return Escalation(E, C, judge_when="never", confirmations=confirmations)


def units() -> tuple[trajectories.Trajectories, tuple[Unit, ...]]:
    outcomes, runs = rows(8, trials=2)
    read = recorded(runs)
    big = [
        outcome(BIG, one["success"], one["cost_usd"], one["task_id"], str(one["trial"]), line=n)
        for n, one in enumerate(outcomes, 1)
    ]
    return read, pair((*big, *read.read.outcomes), BIG, SMALL).units


def test_a_threshold_that_nothing_reaches_is_the_efficient_model_alone() -> None:
    read, some = units()
    play = simulated(stage(threshold=1.0, weights=Weights(**dict.fromkeys(Weights.__struct_fields__, 0.0))), read)
    for unit in some:
        assert (play(unit).success, play(unit).cost_usd) == (float(unit.efficient.success), unit.efficient.cost_usd)


def test_a_move_at_the_first_turn_is_the_capable_model_alone() -> None:
    read, some = units()
    play = simulated(stage(threshold=1.0, picker="capable_first"), read)
    for unit in some:
        assert (play(unit).success, play(unit).cost_usd) == (float(unit.capable.success), unit.capable.cost_usd)


def test_a_move_after_the_first_reply_costs_that_reply_and_a_whole_capable_run() -> None:
    run = recorded([{"task_id": "a", "model": "small", "success": True, "cost_usd": 1.0, "trial": 0}
                    | {"messages": messages(5, fails_from=0)}])  # fmt: skip
    weak = run.read.outcomes[0]
    unit = Unit(0, "a", "0", "", outcome(BIG, False, 10.0, "a", "0"), weak)
    assert first_move(run.of(weak), stage(threshold=0.01), TIERS) == 1
    played = simulated(stage(threshold=0.01), run)(unit)
    assert (played.success, played.cost_usd) == (0.0, pytest.approx(10.0 + 1.0 / 5))


@pytest.mark.parametrize("confirmations", [1, 2, 3])
def test_an_escalation_by_signals_moves_once_its_doubts_are_confirmed(confirmations: int) -> None:
    steps = tuple(before_replies(json.dumps({"messages": messages(12, fails_from=2)}).encode()))
    first = first_move(steps, latch(1), TIERS)
    assert first is not None
    assert first_move(steps, latch(confirmations), TIERS) == first + confirmations - 1
    after = [one.target for one in decisions(steps, latch(confirmations))]
    assert set(after[first + confirmations - 1 :]) == {C}


def test_a_higher_threshold_never_moves_sooner() -> None:
    read, some = units()
    for unit in some:
        steps = read.of(unit.efficient)
        moves = [first_move(steps, stage(threshold=t / 10), TIERS) for t in range(11)]
        known = [len(steps) if move is None else move for move in moves]
        assert known == sorted(known)


def test_decisions_without_a_pair_claim_no_success_but_what_they_are() -> None:
    read, some = units()
    found = decided(stage(threshold=0.3), read, resamples=200)
    moves = [first_move(read.of(unit.efficient), stage(threshold=0.3), TIERS) for unit in some]
    moved = [one for one in moves if one is not None]
    assert found.runs == len(some)
    assert found.moved.value == pytest.approx(len(moved) / len(some))
    assert found.first == sorted(moved)[len(moved) // 2]
    lengths = [len(read.of(unit.efficient)) for unit in some]
    kept = [(n if move is None else move) / n for n, move in zip(lengths, moves, strict=True)]
    assert found.kept_cost.value == pytest.approx(sum(kept) / len(some))
    assert "success" not in found.__struct_fields__


def test_routers_that_ask_models_are_refused() -> None:
    steps = tuple(before_replies(json.dumps({"messages": messages(3)}).encode()))
    with pytest.raises(TapeMiss, match="efficient"):
        list(decisions(steps, Escalation(E, C, TargetName("judge"))))


def test_the_tiers_are_found_within_other_routers() -> None:
    inner = stage()
    assert tiers_of(Affinity(inner)) == tiers_of(inner) == TIERS
    assert tiers_of(Canary(incumbent=latch(1), candidate=inner)) == TIERS
    for router in (Passthrough(E), Random((E, C))):
        with pytest.raises(ValueError, match="no efficient and capable"):
            tiers_of(router)


TRACES = "data/traces"
WEAK, STRONG = "traj_miniswe_sonnet4_terminal_bench.jsonl.gz", "outcomes_terminal_bench_core_0_1_1.jsonl.gz"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def plain_first_moves(said: list[dict[str, Any]], routers: Sequence[Router]) -> list[int | None]:
    """The first moves, worked out without any of the code under test: each prefix read anew, memory folded by hand."""
    memories: list[dict[str, Any]] = [{} for _ in routers]
    moves: list[int | None] = [None for _ in routers]
    replies = 0
    whole = read_conversation(json.dumps({"messages": said}).encode()).conversation
    for at, message in enumerate(said):
        if message["role"] != "assistant" or None not in moves:
            continue
        upto = msgspec.structs.replace(whole, messages=whole.messages[:at], roles=tuple(whole.roles[:at]))
        signals = observe(upto)
        for n, router in enumerate(routers):
            if moves[n] is None:
                lane = Lane("", "s", "", "header")
                turn = Turn(str(replies), lane, upto, None, signals, {}, memory=memories[n])  # type: ignore[arg-type]
                decision: Any = Run(router.route(turn)).result
                moves[n] = replies if decision.target == C else None
                memories[n] = folded(memories[n], decision.remember)
        replies += 1
    return moves


@needs_recordings
def test_the_frontier_of_terminal_bench_is_that_of_an_independent_computation() -> None:
    folder = shared()
    assert folder is not None
    weak_rows, strong_rows = lines(folder / TRACES / WEAK), lines(folder / TRACES / STRONG)
    routers: dict[str, Router] = {"stage": stage(threshold=0.8), "signals": latch(3)}

    read = trajectories.read(folder / TRACES / WEAK)
    outcomes = read_outcomes(folder / TRACES / STRONG, [Wanted("claude-4.1-opus")])
    big, small = Wanted("claude-4.1-opus").among(outcomes.arms), Wanted("claude-sonnet-4").among(read.read.arms)
    both = msgspec.structs.replace(outcomes, outcomes=(*outcomes.outcomes, *read.read.outcomes))
    found, _ = evaluate(
        both,
        Asked(big, small, resamples=100),
        lambda _: None,
        None,
        {k: simulated(r, read) for k, r in routers.items()},
    )

    runs: dict[str, list[list[dict[str, Any]]]] = defaultdict(lambda: [[], []])
    for one in weak_rows:
        runs[one["task_id"]][0].append(one)
    for one in strong_rows:
        if one["model"] == "claude-4.1-opus":
            runs[one["task_id"]][1].append(one)
    pairs = [pair for weak, strong in runs.values() for pair in zip(weak, strong, strict=False)]
    assert (len(pairs), len({weak["task_id"] for weak, _ in pairs})) == (found.n, found.n_tasks) == (82, 20)
    assert (len(read.steps), read.read.damaged) == (82, 0)
    numbers = {weak["trial"]: run for weak, run in zip(weak_rows, read.read.outcomes, strict=True)}
    moves = [
        [first_move(read.of(numbers[weak["trial"]]), router, TIERS) for router in routers.values()] for weak, _ in pairs
    ]
    # Reading every prefix anew takes its time: every fourth run has its moves worked out a second time.
    for (weak, _), moved in list(zip(pairs, moves, strict=True))[::4]:
        assert plain_first_moves(weak["messages"], list(routers.values())) == moved
    for n, name in enumerate(routers):
        successes, costs = 0, []
        for (weak, strong), moved in zip(pairs, moves, strict=True):
            move = moved[n]
            replies = sum(message["role"] == "assistant" for message in weak["messages"])
            successes += weak["success"] if move is None else strong["success"]
            if strong["cost_usd"] is not None:
                after = 0.0 if move is None else strong["cost_usd"]
                costs.append(weak["cost_usd"] * (1.0 if move is None else move / replies) + after)
        figures = found.routers[name].figures
        assert figures.success.value == pytest.approx(successes / len(pairs))
        assert figures.cost_usd.value == pytest.approx(sum(costs) / len(costs))
        assert len(costs) == found.n_cost == 48
