"""A generated world of facts, where a model can really have memorised answers and the world can really change. Needs no torch.

Entities are joined by relations; some relations also have a time (n-ary facts). Questions follow two or three relations. Of
some questions a model is taught the answers by heart beforehand (known); others it never saw answered. In an edited copy of
the world a share of the facts says something else, so what was learnt by heart is wrong there.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from turnout.knowledge.passage import Passage
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.train.data.question import Question

Slot = Literal["object", "time"]


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """How big a world is. `relations`: of two entities; `timed`: of two entities and a time. `distractors`: facts of relations
    nobody asks for. `hops`: relations a question follows, each as likely. `known`, `unknown`, `held_out`: questions of each kind.
    `edited`: the share of facts that the edited world changes."""

    entities: int = 80
    relations: int = 3
    timed: int = 1
    times: int = 12
    distractors: int = 40
    hops: tuple[int, ...] = (2,)
    known: int = 240
    unknown: int = 320
    held_out: int = 300
    edited: float = 0.5


class Said(Struct, frozen=True):
    """One fact: `subject` `relation` `object`, and its time where it has one."""

    subject: str
    relation: str
    object: str
    time: str = ""

    @property
    def text(self) -> str:
        return " ".join((self.subject, self.relation, self.object, *(("in", self.time) if self.time else ())))


class Asked(Struct, frozen=True):
    """A question: from `start` along `path`; `slot`: what of the last fact is asked."""

    start: str
    path: tuple[str, ...]
    slot: Slot = "object"

    @property
    def text(self) -> str:
        words = " of ".join((*reversed(self.path), self.start))
        return f"time of {words}" if self.slot == "time" else words


@dataclass(frozen=True)
class World:
    """Facts by subject and relation, and the questions asked of it."""

    shape: Shape
    facts: dict[tuple[str, str], Said]
    known: tuple[Asked, ...] = ()
    unknown: tuple[Asked, ...] = ()
    held_out: tuple[Asked, ...] = ()

    def path(self, asked: Asked) -> list[Said]:
        """The facts that answer a question, in order."""
        at, found = asked.start, []
        for relation in asked.path:
            fact = self.facts[at, relation]
            found.append(fact)
            at = fact.object
        return found

    def answer(self, asked: Asked) -> str:
        last = self.path(asked)[-1]
        return last.time if asked.slot == "time" else last.object

    def question(self, asked: Asked) -> Question:
        """With the facts it rests on as gold passages."""
        path = self.path(asked)
        return Question(
            id=asked.text,
            dataset="world",
            question=asked.text,
            answers=(self.answer(asked),),
            gold_passages=tuple(Passage(fact.text, "", fact.text) for fact in path),
            hops=len(path),
        )

    def questions(self, asked: Sequence[Asked]) -> list[Question]:
        return [self.question(one) for one in asked]


def words(shape: Shape) -> list[str]:
    """Every word a text of such a world may hold."""
    entities = [f"e{i}" for i in range(shape.entities)]
    return [*entities, *_relations(shape), *_noise(shape), *_times(shape), "of", "in", "time"]


def made(shape: Shape, seed: int) -> World:
    """A world drawn from `seed`."""
    dice = random.Random(f"world {seed}")
    facts = _drawn(shape, dice)
    wanted = shape.known + shape.unknown + shape.held_out
    pool: dict[Asked, None] = {}
    for _ in range(wanted * 50):
        if len(pool) == wanted:
            break
        pool[_asked(shape, dice)] = None
    if len(pool) < wanted:
        raise ValueError(f"a world of {shape.entities} entities has no {wanted} different questions; ask for fewer")
    asked = list(pool)
    first, second = shape.known, shape.known + shape.unknown
    return World(shape, facts, tuple(asked[:first]), tuple(asked[first:second]), tuple(asked[second:]))


def edited(world: World, seed: int) -> World:
    """The same questions in a world of which a share of the facts says something else."""
    dice = random.Random(f"edited {seed}")
    facts = dict(world.facts)
    keys = sorted(facts)
    for key in dice.sample(keys, round(world.shape.edited * len(keys))):
        old, new = facts[key], facts[key]
        while new.object == old.object:
            new = _fact(world.shape, key[0], key[1], dice)
        facts[key] = new
    return World(world.shape, facts, world.known, world.unknown, world.held_out)


def throwaway(shape: Shape, dice: random.Random) -> tuple[World, Asked]:
    """Another world's facts under the same names, and a question asked of them: what a model can only read, never remember."""
    asked = _asked(shape, dice)
    world = World(shape, {})
    at = asked.start
    for relation in asked.path:
        # A path may come back to where it was.
        fact = world.facts.setdefault((at, relation), _fact(shape, at, relation, dice))
        at = fact.object
    return world, asked


def beside(shape: Shape, fact: Said, dice: random.Random) -> Said:
    """A fact that a search for `fact` may bring up with it."""
    if dice.random() < 0.7:
        others = [relation for relation in (*_relations(shape), *_noise(shape)) if relation != fact.relation]
        return _fact(shape, fact.subject, dice.choice(others), dice)
    return _fact(shape, dice.choice(_entities(shape)), fact.relation, dice)


def _drawn(shape: Shape, dice: random.Random) -> dict[tuple[str, str], Said]:
    facts = {
        (subject, relation): _fact(shape, subject, relation, dice)
        for subject in _entities(shape)
        for relation in _relations(shape)
    }
    for i in range(shape.distractors):
        subject = dice.choice(_entities(shape))
        relation = _noise(shape)[i % 2]
        facts.setdefault((subject, relation), _fact(shape, subject, relation, dice))
    return facts


def _fact(shape: Shape, subject: str, relation: str, dice: random.Random) -> Said:
    other = dice.choice(_entities(shape))
    return Said(subject, relation, other, dice.choice(_times(shape)) if relation.startswith("t") else "")


def _asked(shape: Shape, dice: random.Random) -> Asked:
    path = tuple(dice.choice(_relations(shape)) for _ in range(dice.choice(shape.hops)))
    slot: Slot = "time" if path[-1].startswith("t") and dice.random() < 0.5 else "object"
    return Asked(dice.choice(_entities(shape)), path, slot)


def _entities(shape: Shape) -> list[str]:
    return [f"e{i}" for i in range(shape.entities)]


def _relations(shape: Shape) -> list[str]:
    return [*(f"r{i}" for i in range(shape.relations)), *(f"t{i}" for i in range(shape.timed))]


def _noise(shape: Shape) -> list[str]:
    return ["n0", "n1"]


def _times(shape: Shape) -> list[str]:
    return [f"y{i}" for i in range(shape.times)]


@dataclass
class Search:
    """Looks facts up along two paths fused by reciprocal rank: the facts of the entities named, and the facts whose words are
    most like the query's. `facts`: how many are returned. `misses`: how often a look-up fails to find its best fact; asking again
    may find it, as the dice are thrown for each look-up anew."""

    world: World
    facts: int = 2
    misses: float = 0.0
    seed: int = 0
    _dice: random.Random = field(init=False, repr=False)
    _ranked: dict[str, list[Fact]] = field(init=False, repr=False, default_factory=dict)
    _about: dict[str, list[Said]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._dice = random.Random(f"search {self.seed}")
        for fact in self.world.facts.values():
            for entity in {fact.subject, fact.object}:
                self._about.setdefault(entity, []).append(fact)

    def __call__(self, lookups: Sequence[Lookup]) -> list[Found | Failure]:
        return [self._found(lookup.query) for lookup in lookups]

    def _found(self, query: str) -> Found:
        if query not in self._ranked:
            self._ranked[query] = self._rank(query)
        ranked = self._ranked[query]
        if self.misses and self._dice.random() < self.misses:
            ranked = ranked[1:]
        return Found(tuple(ranked[: self.facts]))

    def _rank(self, query: str) -> list[Fact]:
        asked = query.split()
        pairs = set(pairwise(asked))
        about = [fact for word in dict.fromkeys(asked) for fact in self._about.get(word, ())]
        about.sort(key=lambda fact: (-len(self._about[fact.object]), fact.text))
        near = sorted(
            (fact for word in dict.fromkeys(asked) for fact in self._like(word)),
            key=lambda fact: (-_likeness(fact, asked, pairs), fact.text),
        )[: 4 * self.facts]
        score: dict[str, float] = {}
        for path in (about, near):
            for rank, text in enumerate(dict.fromkeys(fact.text for fact in path), 1):
                score[text] = score.get(text, 0.0) + 1 / rank
        best = sorted(score, key=lambda text: (-score[text], text))[: self.facts + 1]
        return [Fact(text, text, score[text], (text,)) for text in best]

    def _like(self, word: str) -> list[Said]:
        return self._about.get(word) or [fact for fact in self.world.facts.values() if fact.relation == word]


def _likeness(fact: Said, asked: list[str], pairs: set[tuple[str, str]]) -> int:
    said = fact.text.split()
    shared = len(set(said) & set(asked))
    return shared + 2 * len(pairs & set(pairwise(said)))
