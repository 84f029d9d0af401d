"""A bounded memory of results already computed, keyed by digests."""

from typing import Generic, TypeVar

V = TypeVar("V")


class Memo(Generic[V]):
    """Keeps the values used last, between half of `at_most` and `at_most` of them. Keys are digests, never texts.

    Two generations: a full young generation becomes the old one, and what was in the old one and not used since is gone.
    """

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, at_most: int) -> None:
        self._half = max(at_most // 2, 1)
        self._young: dict[object, V] = {}
        self._old: dict[object, V] = {}

    def get(self, key: object) -> V | None:
        """The value of `key`, None when it is not kept."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: object, value: V) -> None:
        """Keep `value`."""
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
