"""Which of the facts that an agent was shown its answer rests on. Pure.

Found from what was shown and said alone, so that it is the same for everybody who looks: no model is asked.
"""

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.routing.retrieval.agent import Step, Trajectory
from turnout.routing.retrieval.facts import Fact

Support: TypeAlias = Literal["named", "steps", "unsupported", "unsearched"]
"""`named`: a fact shown names the answer. `steps`: the answer chooses or confirms (it stands in the question, or is yes or no),
so that no fact need name it. `unsupported`: facts were shown, and none names it. `unsearched`: no fact was shown."""


class Evidence(Struct, frozen=True):
    """The facts behind an answer, in the order they were shown. Of an `unsupported` answer: those that were looked at."""

    support: Support
    facts: tuple[Fact, ...] = ()


def evidence(trajectory: Trajectory) -> Evidence:
    """The facts that the answer of `trajectory` rests on.

    Of each look-up the best fact that names the answer, word for word; where none does, or none need, the best fact of each. And
    for each query that names something new, which neither the question nor an earlier query did, the earlier fact that names most
    of that: it is what led on.
    """
    steps = [step for step in trajectory.steps if step.facts]
    if not steps:
        return Evidence("unsearched")
    answer = _spaced(_words(trajectory.answer or ""))
    naming = [fact for step in steps if (fact := _first_naming(answer, step.facts or ())) is not None]
    found = list(_leading(trajectory.question, steps))
    support: Support = "named"
    if answer.strip() in _ASSENT or answer in _spaced(_words(trajectory.question)):
        # A choice between what the question names: what was found out about each of them counts.
        support, naming = "steps", [step.facts[0] for step in steps if step.facts]
    elif not naming:
        support, naming = "unsupported", [step.facts[0] for step in steps if step.facts]
    chosen = {fact.id for fact in (*naming, *found)}
    return Evidence(support, tuple(fact for fact in trajectory.facts if fact.id in chosen))


def _leading(question: str, steps: list[Step]) -> Iterable[Fact]:
    """The facts that later queries rest on."""
    known = set(_words(question))
    shown: list[tuple[Fact, set[str]]] = []
    for step in steps:
        words = set(_words(step.move.text))
        new = words - known - _COMMON
        if new and shown:
            share, at = max((len(new & named), -at) for at, (_, named) in enumerate(shown))
            if share:
                yield shown[-at][0]
        known |= words
        shown += [(fact, set(_words(" ".join(_texts(fact))))) for fact in step.facts or ()]


def _first_naming(answer: str, facts: Iterable[Fact]) -> Fact | None:
    if not answer.strip():
        return None
    return next((fact for fact in facts if any(answer in _spaced(_words(text)) for text in _texts(fact))), None)


def _texts(fact: Fact) -> tuple[str, ...]:
    return (fact.text, *fact.entities)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _ARTICLES]


def _spaced(words: list[str]) -> str:
    return f" {' '.join(words)} "


_WORD = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "the"))
_ASSENT = frozenset(("yes", "no", "true", "false"))
_COMMON = frozenset(
    _WORD.findall(
        "about after also and are as at be been before by did do does for from had has have he her his how in into is it its "
        "name of on or s she that their them they this to was were what when where which who whom whose why with year"
    )
)
"""Words of queries that name nothing."""
