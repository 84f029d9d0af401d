"""Scores that look like scores of answers and cannot make a graph."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.worked import WORKED
from tests.recorded import needs_recordings, rows

from turnout.peers.graph.relations import Settings, relate
from turnout.peers.graph.traps import Trap, traps

MODELS = ("a", "b", "c", "d", "e")


def found(scores: dict[str, dict[str, float | None]], models: tuple[str, ...] = MODELS) -> tuple[Trap, ...]:
    return traps(models, scores, relate(models, scores, Settings()))


def named(scores: dict[str, dict[str, float | None]]) -> list[tuple[str, bool]]:
    return [(trap.name, trap.certain) for trap in found(scores)]


def test_symmetric_scores_make_given_equal_received_and_are_reported() -> None:
    dice = random.Random(3)
    scores: dict[str, dict[str, float | None]] = {j: {} for j in MODELS}
    for at, one in enumerate(MODELS):
        for other in MODELS[at + 1 :]:
            scores[one][other] = scores[other][one] = dice.uniform(3, 9)
    relations = relate(MODELS, scores, Settings())
    assert relations.given == relations.received
    assert {m for m in MODELS if relations.category[m] == "LH"} <= {m for m in MODELS if m == relations.anchors[0]}
    assert ("symmetric_scores", True) in named(scores)


def pairwise_wins(own: bool, seed: int = 1) -> dict[str, dict[str, float | None]]:
    """How often each judge prefers an author over the others, its own answers among those compared or not."""
    dice = random.Random(seed)
    scores: dict[str, dict[str, float | None]] = {}
    for judge in MODELS:
        taking = [m for m in MODELS if own or m != judge]
        wins: dict[str, float] = defaultdict(float)
        for at, one in enumerate(taking):
            for other in taking[at + 1 :]:
                share = dice.random()
                wins[one] += share
                wins[other] += 1 - share
        scores[judge] = {m: wins[m] / (len(taking) - 1) for m in taking}
    return scores


def test_wins_without_own_answers_fix_given_and_are_reported() -> None:
    scores = pairwise_wins(own=False)
    assert relate(MODELS, scores, Settings()).given == pytest.approx(dict.fromkeys(MODELS, 0.5))
    assert named(scores) == [("fixed_given", True)]


def test_wins_with_own_answers_are_reported_as_certain_where_the_diagonal_is_there() -> None:
    scores = pairwise_wins(own=True)
    assert named(scores) == [("fixed_given", True)]
    for model in MODELS:
        scores[model][model] = None
    assert named(scores) == [("fixed_given", False)]


def test_shares_of_games_that_judges_play_themselves_are_reported() -> None:
    dice = random.Random(5)
    scores: dict[str, dict[str, float | None]] = {j: {} for j in MODELS}
    for at, one in enumerate(MODELS):
        for other in MODELS[at + 1 :]:
            share = dice.random()
            scores[one][other], scores[other][one] = 10 * share, 10 - 10 * share
    assert ("fixed_given", True) in named(scores)


@needs_recordings
def test_prd_verdicts_are_recognised() -> None:
    """The real win rates of five models by five judges, own answers among those compared."""
    points: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("peers/prd_vicuna80.jsonl.gz"):
        if row["judge"] != "human":
            share = {1: 1.0, 2: 0.0, 3: 0.5}[row["score"]]
            points[row["judge"], row["first"]].append(share)
            points[row["judge"], row["second"]].append(1 - share)
    models = tuple(sorted({judge for judge, _ in points}))
    scores: dict[str, dict[str, float | None]] = {
        j: {i: sum(points[j, i]) / len(points[j, i]) for i in models} for j in models
    }
    assert [(t.name, t.certain) for t in found(scores, models)] == [("fixed_given", True)]
    for model in models:
        scores[model][model] = None
    assert [(t.name, t.certain) for t in found(scores, models)] == [("fixed_given", False)]


def test_absolute_scores_are_no_trap() -> None:
    assert (
        traps(tuple(WORKED["models"]), WORKED["scores"], relate(WORKED["models"], WORKED["scores"], Settings())) == ()
    )
    assert found({j: dict.fromkeys(MODELS, 7.0) for j in MODELS}) == ()


@given(st.randoms(use_true_random=False))
def test_strict_and_lenient_judges_are_no_trap(dice: random.Random) -> None:
    level = {model: dice.uniform(0, 5) for model in MODELS}
    level["a"], level["b"] = 0.0, 5.0
    scores: dict[str, dict[str, float | None]] = {
        j: {i: level[j] + dice.uniform(0, 5) for i in MODELS if i != j} for j in MODELS
    }
    assert not any(trap.certain for trap in found(scores))
