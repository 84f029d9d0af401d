"""Opens knowledge for look-ups: a folder made by `turnout knowledge build`, or a service that answers for one."""

from collections.abc import Sequence
from typing import Protocol

from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Found, Lookup


class Knowledge(Protocol):
    """Something that can be looked things up in. Look-ups block; they may come from several threads at once."""

    def look_up(self, lookups: Sequence[Lookup]) -> list[Found | Failure]:
        """One outcome for each look-up, in order. Their `knowledge` is not read: a host picks by it whom to ask."""
        ...

    def close(self) -> None:
        """Give back what it holds; it cannot be asked afterwards."""
        ...


def open_knowledge(place: str) -> Knowledge:
    """Knowledge in a folder, or behind the http(s) URL of a service of Graph-R1's shape (`turnout knowledge serve`).

    Raises ConfigError for a folder that holds none, is damaged, or was made by another version, and ModuleNotFoundError where
    the extra `knowledge` is missing. A URL is not asked anything yet.
    """
    if place.startswith(("http://", "https://")):
        from turnout.knowledge.remote import Remote

        return Remote(place)
    from pathlib import Path

    from turnout.knowledge.search import Searcher

    return Searcher.open(Path(place))
