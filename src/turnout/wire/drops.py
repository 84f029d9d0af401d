"""The drop report: what a translation could not carry over, changed, or emulated."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from turnout.errors import ClientError


class Drop(Struct, frozen=True):
    """One field that did not arrive as it was sent.

    `path`: where it was in the source (`messages[3].content[0].cache_control`). `how`: `dropped` (gone), `downgraded` (less
    was kept, say text for an image) or `emulated` (other means, same effect). `why`: one short plain sentence.
    """

    path: str
    how: Literal["dropped", "downgraded", "emulated"]
    why: str


class Drops:
    """Collects drops while a request or reply is written."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Drop] = []

    def drop(self, path: str, why: str) -> None:
        """Note that the field at `path` is gone."""
        self.found.append(Drop(path, "dropped", why))

    def downgrade(self, path: str, why: str) -> None:
        """Note that the field at `path` arrives with less than was sent."""
        self.found.append(Drop(path, "downgraded", why))

    def emulate(self, path: str, why: str) -> None:
        """Note that the field at `path` is carried by other means with the same effect."""
        self.found.append(Drop(path, "emulated", why))

    def extras(self, path: str, extra: Mapping[str, Any], target: str) -> None:
        """Note every field of `extra` at `path` as unknown to the `target` format."""
        for key in extra:
            self.found.append(Drop(f"{path}.{key}" if path else key, "dropped", f"{target} has no such field"))


def refuse_drops(drops: Iterable[Drop]) -> None:
    """Raise ClientError when a strict request would lose something (emulation is allowed)."""
    lost = [d for d in drops if d.how != "emulated"]
    if lost:
        first = lost[0]
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise ClientError(
            f"{first.path}: {first.why}{more}; strict = true refuses a translation that loses anything",
            code="lossy_translation",
            param=first.path,
        )
