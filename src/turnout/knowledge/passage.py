"""A passage of a corpus."""

from msgspec import Struct


class Passage(Struct, frozen=True):
    """`id`: unique within its corpus (titles are not). `text`: without the title."""

    id: str
    title: str
    text: str
