"""What extraction makes of a document."""

from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.knowledge.passage import Passage

Kind: TypeAlias = Literal["title", "name", "link", "date", "number", "given"]
"""How an entity was told: the title of its passage, a capitalised span, a link, a date or a number, or given with the corpus
(in a triple, or by a model)."""


class Document(Struct, frozen=True):
    """A passage with the (subject, relation, object) triples that its corpus gives beside it."""

    passage: Passage
    triples: tuple[tuple[str, str, str], ...] = ()


class Mention(Struct, frozen=True):
    """An entity in a statement, as it is spelled there."""

    name: str
    kind: Kind = "name"


class Statement(Struct, frozen=True):
    """One n-ary fact: a sentence that can be read by itself, and the entities that it joins."""

    text: str
    mentions: tuple[Mention, ...] = ()


def key_of(name: str) -> str:
    """What two spellings of one entity have in common: case, white space and outer punctuation aside."""
    folded = " ".join(name.casefold().split())
    return folded.strip(" \t.,;:!?\"'\u201c\u201d\u2018\u2019") or folded
