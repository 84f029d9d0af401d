"""The collaboration graph: who scores whom how, and what follows for who looks at whose answers. The file that `turnout peers
graph` writes and a `collaboration` route names.

Scores are directional, `scores[judge][author]`; a strict judge is known by what it gives away (Given), a good author by what it
gets (Received). C, the anchors, gives little and gets much. C_i are the anchors whose scores for author i are among the lowest it
gets: those who see something to improve.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from turnout.errors import ConfigError

Category: TypeAlias = Literal["LH", "LL", "HH", "HL", "MID"]
"""First letter Given, second Received: `LH` gives little and gets much (an anchor, in C), `LL` gives little and gets little
(idiosyncratic, in C'), `HH`, `HL`; `MID` is between the percentiles on either axis, only where d1 is below 50."""

EdgeScore: TypeAlias = Literal["raw", "judge_centered"]
"""What makes a score of an author low: the score itself, or how far it lies below what the judge gives on the whole."""

Scores: TypeAlias = dict[str, dict[str, float | None]]
"""`scores[judge][author]`; None for a model of itself and where there is no score to rely on."""


class Relations(Struct, frozen=True, kw_only=True):
    """What scores make of a pool of models, for all tasks or for one type.

    `given`, `received`: means over the others, None where nothing is known. `category`: None where one of the two is. `anchors`:
    the set C. `idiosyncratic`: C'. `voters`: C_i by author, those of C whose score for it is among the lowest d2 %. `others`:
    C'_i. An author nobody scored has all of C as voters. `questions`: how many were scored, 0 = not known.

    `flags`: what makes these relations worth less: `degenerate` (all scores are equal), `symmetric_scores` and `fixed_given`
    (scores of a kind that cannot tell who is strict), `unstable` (other questions would often give another graph),
    `few_questions`, `missing_scores`, `unclassified`.
    """

    scores: Scores
    given: dict[str, float | None]
    received: dict[str, float | None]
    category: dict[str, Category | None]
    anchors: tuple[str, ...] = field(name="C")
    idiosyncratic: tuple[str, ...] = field(name="C_prime")
    voters: dict[str, tuple[str, ...]] = field(name="C_i")
    others: dict[str, tuple[str, ...]] = field(name="C_prime_i")
    questions: int = 0
    flags: tuple[str, ...] = ()

    @property
    def known_received(self) -> dict[str, float]:
        """Received of the models for which it is known."""
        return {model: value for model, value in self.received.items() if value is not None}


class TypeRelations(Relations, frozen=True, kw_only=True):
    """Relations for one type of task. `falls_back`: why those for all tasks are to be used instead, "" = they are not."""

    falls_back: str = ""


class Reviewed(Struct, frozen=True):
    """A model as it was when it was reviewed. `name`: what the graph calls it. `model`: what its provider does. `revision`: of
    what was served, as far as that was told."""

    name: str
    model: str = ""
    revision: str = ""


class Manifest(Struct, frozen=True, kw_only=True):
    """What a graph was made from, and for how long it is good.

    `made_at`: RFC 3339, when the scores were. `question_set`, `prompt`, `scores`: digests. `soft_ttl_days`: after these a graph
    is stale, which is said; `hard_ttl_days`: after these it is not used, None = never.
    """

    made_at: str
    models: tuple[Reviewed, ...] = ()
    question_set: str = ""
    question_count: int = 0
    prompt: str = ""
    prompt_version: str = ""
    scores: str = ""
    turnout: str = ""
    soft_ttl_days: float = 30.0
    hard_ttl_days: float | None = None


Staleness: TypeAlias = Literal["fresh", "stale", "expired"]


class Graph(Relations, frozen=True, kw_only=True):
    """A collaboration graph: relations for all tasks, and those for types of tasks.

    `models`: the pool, in order. `d1`: percentile that parts low from high Given and Received. `d2`: percent of an author's
    scores that count as low. `excluded`: judges whose scores count for nothing and who may not vote, each with the reason.
    """

    models: tuple[str, ...]
    d1: float = 50.0
    d2: float = 50.0
    edge_score: EdgeScore = "raw"
    excluded: dict[str, str] = {}
    by_type: dict[str, TypeRelations] = {}
    manifest: Manifest

    @property
    def id(self) -> str:
        """Names this graph: equal for the same models, scores, relations and settings."""
        said = {name: getattr(self, name) for name in ("models", "d1", "d2", "edge_score", "excluded", "by_type")}
        own = {name: getattr(self, name) for name in Relations.__struct_fields__}
        return hashlib.sha256(msgspec.json.encode({**said, **own}, order="sorted")).hexdigest()[:16]

    def of(self, task_type: str = "") -> Relations:
        """The relations for a type of task; those for all tasks where it has none of its own to rely on."""
        found = self.by_type.get(task_type)
        return self if found is None or found.falls_back else found

    def age_days(self, now: datetime) -> float:
        """How old the scores are. `now` knows its time zone."""
        return (now - datetime.fromisoformat(self.manifest.made_at)) / timedelta(days=1)

    def staleness(self, now: datetime) -> Staleness:
        """Whether the scores are too old to go by without a word (`stale`), or at all (`expired`)."""
        age, manifest = self.age_days(now), self.manifest
        if manifest.hard_ttl_days is not None and age > manifest.hard_ttl_days:
            return "expired"
        return "stale" if age > manifest.soft_ttl_days else "fresh"

    def changed(self, now: Mapping[str, Reviewed]) -> tuple[str, ...]:
        """Models that are not what was reviewed: by name, those whose provider's name or revision is another now. What is not
        known on either side is no change."""
        return tuple(
            one.name
            for one in self.manifest.models
            if one.name in now
            and (_differ(one.model, now[one.name].model) or _differ(one.revision, now[one.name].revision))
        )


def _differ(then: str, now: str) -> bool:
    return bool(then and now and then != now)


def read(data: bytes, file: str = "") -> Graph:
    """The graph in a JSON file. `file` names it in errors; raises ConfigError with what is wrong and where."""
    try:
        graph = msgspec.json.decode(data, type=Graph)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{error}; expected the graph that `turnout peers graph --out` writes", file=file) from None
    pool = set(graph.models)
    if len(pool) < len(graph.models):
        raise ConfigError("two models have the same name", file=file, key="models")
    for path, one in (("", graph), *((f"by_type.{name}.", one) for name, one in graph.by_type.items())):
        for key, names in _named(one):
            if unknown := sorted(set(names) - pool):
                raise ConfigError(f"{unknown[0]} is not among `models`", file=file, key=path + key)
        for key, said in (
            ("given", one.given),
            ("received", one.received),
            ("category", one.category),
            ("C_i", one.voters),
        ):
            if missing := sorted(pool - set(said)):
                raise ConfigError(f"{missing[0]} is missing", file=file, key=path + key)
    try:
        made = datetime.fromisoformat(graph.manifest.made_at)
    except ValueError:
        made = datetime.min
    if made.tzinfo is None:
        raise ConfigError(
            "expected a time with its zone, as in 2026-01-31T12:00:00Z", file=file, key="manifest.made_at"
        )
    return graph


def _named(one: Relations) -> list[tuple[str, tuple[str, ...]]]:
    """Every list of models that relations hold, with its key in the file."""
    found = [("C", one.anchors), ("C_prime", one.idiosyncratic)]
    for key, by_author in (("C_i", one.voters), ("C_prime_i", one.others)):
        found.append((key, tuple(by_author)))
        found += [(f"{key}.{author}", names) for author, names in by_author.items()]
    return [*found, ("given", tuple(one.given)), ("received", tuple(one.received))]
