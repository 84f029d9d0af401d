"""Who votes on whose answers: what a chain looks up in a collaboration graph."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

Rung: TypeAlias = Literal["C_i", "C", "C_prime_i", "received"]
"""Where on the ladder a voter was found. `C_i`: anchors with low scores for the author, the graph's own choice; `C`: the other
anchors; `C_prime_i`: models with low scores for the author that are scored low themselves; `received`: the best scored others."""
Ladder: TypeAlias = tuple[tuple[Rung, tuple[str, ...]], ...]

SUBSTITUTES = 3
"""How many of the best scored others stand on the last rung."""


class Electorate:
    """The models of a pool and who may vote on whose answers.

    `models`: names, in the order in which candidates stand when one is drawn. `received`: mean score each got. `anchors`: the
    set C. `voters`: C_i by author; an author that is missing there is unknown to the graph, so all of C votes on what it writes.
    `others`: C'_i by author. `prices`: what a call to a model costs, in any unit; a missing one counts as dearer than all others.
    `substitutes`: how many stand on the last rung of a ladder.
    """

    __slots__ = ("_ladders", "_place", "anchors", "models", "others", "prices", "received", "substitutes", "voters")

    def __init__(
        self,
        models: Iterable[str],
        received: Mapping[str, float],
        anchors: Iterable[str],
        voters: Mapping[str, Iterable[str]],
        others: Mapping[str, Iterable[str]] | None = None,
        prices: Mapping[str, float] | None = None,
        *,
        substitutes: int = SUBSTITUTES,
    ) -> None:
        self.models = tuple(models)
        self.received = received
        self.anchors = tuple(anchors)
        self.voters = voters
        self.others = others or {}
        self.prices = prices or {}
        self.substitutes = substitutes
        self._place = {model: at for at, model in enumerate(self.models)}
        self._ladders: dict[tuple[str, bool, bool], Ladder] = {}

    def ladder(self, author: str, climb: bool = True, supplement: bool = False) -> Ladder:
        """Who may vote on `author`'s answers, rung by rung, each model once and never the author; empty rungs are left out.

        `climb`: whether there is more than C_i; `supplement`: whether C'_i is one of the rungs.
        """
        key = (author, climb, supplement)
        found = self._ladders.get(key)
        if found is None:
            found = self._ladders[key] = self._built(author, climb, supplement)
        return found

    def _built(self, author: str, climb: bool, supplement: bool) -> Ladder:
        rungs: list[tuple[Rung, Iterable[str]]] = [("C_i", self.voters.get(author, self.anchors))]
        if climb:
            rungs.append(("C", self.anchors))
        if climb and supplement:
            rungs.append(("C_prime_i", self.others.get(author, ())))
        seen, found = {author}, []
        for rung, members in rungs:
            fresh = tuple(sorted(set(members) - seen, key=self._at))
            seen.update(fresh)
            if fresh:
                found.append((rung, fresh))
        if climb and (rest := tuple([m for m in self.best() if m not in seen][: self.substitutes])):
            found.append(("received", rest))
        return tuple(found)

    def _at(self, model: str) -> int:
        return self._place.get(model, len(self._place))

    def price(self, model: str) -> float:
        """What a call costs; infinite where that is not known."""
        return self.prices.get(model, math.inf)

    def best(self) -> tuple[str, ...]:
        """All models, the best scored first."""
        return tuple(sorted(self.models, key=lambda model: -self.received.get(model, -math.inf)))
