"""A memory of pieces already written, bounded by the bytes they take."""

from typing import Generic, TypeVar

V = TypeVar("V")


class Renderings(Generic[V]):
    """Values by what they were made from, whole: a digest might stand for the text of another client.

    Those used least recently go first. `at_most`: bytes that all values and their sources may take. A value that takes more
    than an eighth of that is not kept.
    """

    __slots__ = ("_at_most", "_kept", "size")

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._kept: dict[object, tuple[V, int]] = {}
        self.size = 0

    def get(self, source: object) -> V | None:
        """The value made from `source`; None when it is not kept."""
        found = self._kept.pop(source, None)
        if found is None:
            return None
        self._kept[source] = found
        return found[0]

    def put(self, source: object, value: V, size: int) -> None:
        """Keep `value`, which takes `size` bytes with its source."""
        if size > self._at_most // 8:
            return
        gone = self._kept.pop(source, None)
        self.size += size - (gone[1] if gone is not None else 0)
        self._kept[source] = value, size
        while self.size > self._at_most:
            oldest = next(iter(self._kept))
            self.size -= self._kept.pop(oldest)[1]

    def __len__(self) -> int:
        return len(self._kept)
