"""What a retrieval agent looks up, and what it gets. Pure."""

from typing import TypeAlias

from msgspec import Struct

from turnout.routing.core import Failure


class Fact(Struct, frozen=True):
    """One n-ary fact. `id`: within its knowledge. `text`: the sentence. `score`: of the retrieval, higher is better.
    `sources`: ids of the passages it was taken from. `entities`: names of what it is about."""

    id: str
    text: str
    score: float = 0.0
    sources: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


class Lookup(Struct, frozen=True):
    """A search a procedure wants made. `knowledge`: name of the knowledge, "" where a host has one only. `at_most`: facts."""

    query: str
    knowledge: str = ""
    at_most: int = 10
    within_s: float = 10.0


class Found(Struct, frozen=True):
    """The facts of one look-up, best first; none is an outcome too."""

    facts: tuple[Fact, ...] = ()


LookupOutcome: TypeAlias = Found | Failure
