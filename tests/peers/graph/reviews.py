"""Reviews to make graphs from: models with a level as judges and as authors."""

import random
from typing import Any

import msgspec

from turnout.peers.graph.scored import Scored

MODELS = ("anchor", "second", "plain", "lenient", "odd")
GIVES = {"anchor": -2.5, "second": -1.5, "plain": 0.0, "lenient": 2.0, "odd": -1.0}
GETS = {"anchor": 2.0, "second": 1.2, "plain": 0.2, "lenient": -0.5, "odd": -2.0}


def review(questions: int = 120, noise: float = 1.0, seed: int = 1, types: int = 2, **changes: Any) -> Scored:
    """A review as `turnout peers review` writes it."""
    return msgspec.json.decode(msgspec.json.encode(review_json(questions, noise, seed, types) | changes), type=Scored)


def review_json(questions: int = 120, noise: float = 1.0, seed: int = 1, types: int = 2) -> dict[str, Any]:
    dice = random.Random(seed)
    quality = {m: [dice.gauss(6 + GETS[m], noise) for _ in range(questions)] for m in MODELS}
    cells = {
        j: {i: [min(10, max(1, round(quality[i][q] + GIVES[j]))) for q in range(questions)] for i in MODELS if i != j}
        for j in MODELS
    }
    asked = [{"id": f"q{q}", "type": f"type{q % types}", "difficulty": ""} for q in range(questions)]
    return {
        "models": MODELS,
        "scores": _means(cells, range(questions)),
        "by_type": {
            f"type{t}": {"questions": len(of), "scores": _means(cells, of), "counts": _counts(cells, of), "thin": []}
            for t in range(types)
            for of in [range(t, questions, types)]
        },
        "questions": asked,
        "cells": cells,
        "self_scores": {m: [min(10, max(1, round(q))) for q in quality[m]] for m in MODELS},
        "lengths": {m: [100 + at for at in range(questions)] for m in MODELS},
        "judges": {m: {"asked": 4 * questions, "scored": 4 * questions, "parse_failures": 0} for m in MODELS},
        "complete": True,
        "manifest": {
            "began": "2026-01-31T12:00:00Z",
            "models": [{"name": m, "model": f"vendor-{m}", "revision": "1", "served": []} for m in MODELS],
            "question_set": "aa",
            "question_count": questions,
            "prompt": "bb",
            "prompt_version": "1",
        },
    }


def _means(cells: dict[str, dict[str, list[int]]], of: Any) -> dict[str, dict[str, float | None]]:
    return {j: {i: None if i == j else sum(cells[j][i][q] for q in of) / len(of) for i in MODELS} for j in MODELS}


def _counts(cells: dict[str, dict[str, list[int]]], of: Any) -> dict[str, dict[str, int]]:
    return {j: {i: 0 if i == j else len(of) for i in MODELS} for j in MODELS}
