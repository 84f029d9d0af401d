"""How a task went so far, over all its results: what routers and explanations read, small enough to keep with every turn."""

from msgspec import Struct


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
