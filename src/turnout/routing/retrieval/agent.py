"""The retrieval agent as a procedure that asks for turns of a model and for look-ups, and performs neither. Pure.

Hosts: the gateway's router (turns are calls of a target), evaluation and training (turns are token ids, many agents in
lockstep). All they share of a trajectory is its text; who holds token ids keeps them beside it.
"""

from collections.abc import Generator
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import REMINDER, Move, Style, read_move, write_knowledge


class Shown(Struct, frozen=True):
    """One finished step: what the model wrote, and what it was shown for it."""

    said: str
    shown: str


class Say(Struct, frozen=True):
    """The next turn of the model is wanted, after the prompt and these steps. `last`: it is the last one there will be."""

    steps: tuple[Shown, ...]
    last: bool = False


class Said(Struct, frozen=True):
    """A turn of the model. `cut`: it ended for want of tokens."""

    text: str
    cut: bool = False


class Step(Struct, frozen=True):
    """A step of a trajectory: the model's text, what it meant, and what came of a look-up (None where there was none)."""

    said: str
    move: Move
    facts: tuple[Fact, ...] | None = None
    failure: Failure | None = None


Ended: TypeAlias = Literal["answered", "turns", "cut", "failed"]
"""`answered`; `turns`: all were used without an answer; `cut`: a turn ended for want of tokens; `failed`: the model did."""


class Trajectory(Struct, frozen=True):
    """What an agent did for one question."""

    question: str
    steps: tuple[Step, ...]
    ended: Ended
    failure: Failure | None = None

    @property
    def answer(self) -> str | None:
        """The answer given; None for none."""
        return self.steps[-1].move.text if self.ended == "answered" else None

    @property
    def lookups(self) -> tuple[tuple[Fact, ...], ...]:
        """The facts of each look-up that was made."""
        return tuple(step.facts for step in self.steps if step.facts is not None)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact it was shown, once, in order."""
        first: dict[str, Fact] = {}
        for facts in self.lookups:
            for fact in facts:
                first.setdefault(fact.id, fact)
        return tuple(first.values())

    @property
    def well_formed(self) -> int:
        """How many steps kept the protocol."""
        return sum(step.move.well_formed for step in self.steps)


Call: TypeAlias = Say | Lookup
CallOutcome: TypeAlias = Said | Failure | Found
Procedure: TypeAlias = Generator[tuple[Call, ...], tuple[CallOutcome, ...], Trajectory]


def answering(
    question: str,
    max_turns: int,
    knowledge: str = "",
    at_most: int = 10,
    within_s: float = 10.0,
    style: Style = "json",
) -> Procedure:
    """Answer `question` in at most `max_turns` turns of the model. The other arguments: see `Lookup` and `Style`.

    Yields one call at a time. A turn that neither asks nor answers is told so and counts. A look-up that fails shows nothing
    and is noted; the model may ask again.
    """
    shown: list[Shown] = []
    steps: list[Step] = []
    for turn in range(max_turns):
        (said,) = yield (Say(tuple(shown), last=turn == max_turns - 1),)
        if isinstance(said, Failure):
            return Trajectory(question, tuple(steps), "failed", said)
        assert isinstance(said, Said)
        move = read_move(said.text, said.cut)
        if move.action == "answer":
            return Trajectory(question, (*steps, Step(said.text, move)), "answered")
        if said.cut:
            return Trajectory(question, (*steps, Step(said.text, move)), "cut")
        if move.action == "none":
            steps.append(Step(said.text, move))
            shown.append(Shown(said.text, REMINDER))
            continue
        (found,) = yield (Lookup(move.text, knowledge, at_most, within_s),)
        facts = found.facts if isinstance(found, Found) else ()
        steps.append(Step(said.text, move, facts, found if isinstance(found, Failure) else None))
        shown.append(Shown(said.text, write_knowledge(facts, style)))
    return Trajectory(question, tuple(steps), "turns")
