"""Who answers first: the models of a pool in the order in which they are tried."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from turnout.routing.collaboration.chain import Draw
from turnout.routing.collaboration.electorate import Electorate

Prior: TypeAlias = Literal["max_received", "cheapest", "cheapest_anchor", "fastest", "random"]
"""`max_received`: the best scored. `cheapest`: by price. `cheapest_anchor`: the cheapest of C. `fastest`: by speed. `random`:
any, drawn for each request."""


def order(
    prior: Prior,
    electorate: Electorate,
    pool: Iterable[str],
    draw: Draw,
    speeds: Mapping[str, float] | None = None,
    preferred: Iterable[str] = (),
) -> tuple[str, ...]:
    """`pool` in the order of `prior`, the best scored first where it does not tell them apart; `preferred` stand before all
    others.

    `speeds`: output tokens per second by model; those without one come last under `fastest`.
    """
    received = electorate.received
    best = sorted(pool, key=lambda model: -received.get(model, -math.inf))
    match prior:
        case "cheapest":
            best.sort(key=electorate.price)
        case "cheapest_anchor":
            anchors = frozenset(electorate.anchors)
            best.sort(key=lambda model: (model not in anchors, electorate.price(model)))
        case "fastest":
            known = speeds or {}
            best.sort(key=lambda model: -known.get(model, 0.0))
        case "random":
            if best:
                at = int(draw(-1, 0) * len(best))
                best.insert(0, best.pop(at))
    head = [model for model in dict.fromkeys(preferred) if model in best]
    return tuple(head + [model for model in best if model not in head])
