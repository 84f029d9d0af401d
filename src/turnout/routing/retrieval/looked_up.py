"""What was looked up for a turn, and what came of it, in a form that can be kept and played again."""

from msgspec import Struct
from msgspec.structs import replace

from turnout.errors import TapeMiss
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup, LookupOutcome

SHOWN_AT_MOST = 200
"""Characters of a query that are kept where bodies are not."""


class LookedUp(Struct, frozen=True, omit_defaults=True):
    """A look-up and its outcome. `ids`: of the facts found, best first. `facts`: the facts themselves, kept under capture `full`
    only. Times in seconds, `started_s` from the turn's start."""

    query: str
    knowledge: str = ""
    at_most: int = 10
    ids: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    failure: Failure | None = None
    started_s: float = 0.0
    seconds: float = 0.0

    @property
    def outcome(self) -> LookupOutcome:
        """What came of it. Raises TapeMiss where the facts were not kept."""
        if self.failure is not None:
            return self.failure
        if len(self.facts) != len(self.ids):
            raise TapeMiss('the facts of a look-up are kept with capture = "full" only')
        return Found(self.facts)

    def answers(self, lookup: Lookup) -> bool:
        """Whether it is what `lookup` asks for. How long the answer was waited for does not count."""
        return (self.query, self.knowledge, self.at_most) == (lookup.query, lookup.knowledge, lookup.at_most)

    def without_facts(self) -> "LookedUp":
        """The same without what the facts say, and with the beginning of the query."""
        return replace(self, query=self.query[:SHOWN_AT_MOST], facts=())

    def without_words(self) -> "LookedUp":
        """The same without anything that was said."""
        return replace(self, query="", facts=())


def looked_up(lookup: Lookup, outcome: LookupOutcome, started_s: float = 0.0, seconds: float = 0.0) -> LookedUp:
    """A look-up made, to be kept."""
    facts = outcome.facts if isinstance(outcome, Found) else ()
    failure = outcome if isinstance(outcome, Failure) else None
    ids = tuple(fact.id for fact in facts)
    return LookedUp(lookup.query, lookup.knowledge, lookup.at_most, ids, facts, failure, started_s, seconds)
