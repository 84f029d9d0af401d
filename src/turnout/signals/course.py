"""How a task went so far, over all its results: what routers and explanations read, small enough to keep with every turn."""

from typing import TypeAlias

from msgspec import Struct

Mark: TypeAlias = int
"""What one result amounts to by now: a weight (`WEIGHT` of it) and flags."""

SOFT, HARD, CRITICAL = 1, 2, 3
WEIGHT = 3
"""The bits of a mark that say how bad a failure is that nothing later has cleared: 0 none."""
CHANGED, BARREN, NEUTRAL, UNDONE, WAITING = 4, 8, 16, 32, 64
"""CHANGED: a verified change that still holds. BARREN: brought neither information nor change. NEUTRAL: neither work nor idling
(notes, waiting). UNDONE: a change that was taken back. WAITING: waits for something."""

LEVELS = (0.0, 0.3, 0.7, 1.0)
"""Severity by weight."""

CITED_AT_MOST = 8
"""Places kept per signal."""


class Place(Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a piece of evidence is: the message, the part in it, and the digest of the call it answers ("" for a message)."""

    message: int
    part: int = 0
    call: str = ""


class TestRun(Struct, frozen=True, omit_defaults=True, gc=False):
    """One run of a series of test runs: how many tests ran, how many failed, and where."""

    __test__ = False

    run: int
    failed: int
    place: Place


class Repeat(Struct, frozen=True, omit_defaults=True):
    """Something that came `count` times in the task; `places`: the newest of them. `fingerprint`: of a failure."""

    count: int
    places: tuple[Place, ...]
    fingerprint: str = ""


class Course(Struct, frozen=True, omit_defaults=True):
    """The task since the last real user turn.

    `results`: how many there were. `marks`: of the newest results, oldest first. `failing`: failures that nothing has cleared
    and that came more than once. `repeated`: the call that gave the same outcome most often. `runs`: the newest series of test
    runs. `taken_back`: changes undone, `undone_by`: by what. `idle`: results since anything moved, counted from the first
    change or trouble on; `moved`: where it did. `attempted`: a change was tried. `troubled`: some failure is uncleared.
    """

    results: int = 0
    marks: tuple[Mark, ...] = ()
    failing: tuple[Repeat, ...] = ()
    repeated: Repeat | None = None
    runs: tuple[TestRun, ...] = ()
    taken_back: int = 0
    undone_by: tuple[Place, ...] = ()
    idle: int = 0
    moved: Place | None = None
    attempted: bool = False
    troubled: bool = False
