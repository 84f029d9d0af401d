"""A sequence that decodes an element on first access, so that looking at the tail costs only the tail."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

T = TypeVar("T")

_UNREAD: Any = object()


class Sourced:
    """What can tell the JSON text it is read from, so that work done once for that text need not be done again."""

    __slots__ = ()

    def source(self) -> bytes:
        """The text; b"" when there is none."""
        return b""


class Lazy(Sourced, Sequence[T], Generic[T]):
    """A read-only sequence over `raw` elements; `decode(raw_element, index)` makes the element, once.

    `text_of(raw_element)`: the JSON text of an element whose raw form is not that text itself. Compares equal to any sequence
    with equal elements.
    """

    __slots__ = ("_decode", "_made", "raw", "text_of")

    def __init__(
        self, raw: Sequence[Any], decode: Callable[[Any, int], T], text_of: Callable[[Any], Any] | None = None
    ) -> None:
        self.raw = raw
        self.text_of = text_of
        self._decode = decode
        self._made: list[T] | None = None

    def source(self, upto: int | None = None) -> bytes:
        """The JSON text that the (first `upto`) elements are read from, one after another; b"" when they do not come from
        JSON."""
        raw = self.raw[:upto] if self.text_of is None else [self.text_of(one) for one in self.raw[:upto]]
        return b"".join(raw) if len(raw) and isinstance(raw[0], msgspec.Raw | bytes) else b""

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self.raw))))
        made = self._made
        if made is None:
            made = self._made = [_UNREAD] * len(self.raw)
        item = made[index]
        if item is _UNREAD:
            position = index if index >= 0 else index + len(made)
            item = made[position] = self._decode(self.raw[position], position)
        return item

    def __iter__(self) -> Iterator[T]:
        made = self._made
        if made is None:
            made = self._made = [_UNREAD] * len(self.raw)
        decode, raw = self._decode, self.raw
        for i, item in enumerate(made):
            if item is _UNREAD:
                item = made[i] = decode(raw[i], i)
            yield item

    def passing(self) -> Iterator[T]:
        """The elements in order, without keeping those that had to be made: for a look that will hardly come again."""
        if self._made is not None:
            yield from self
            return
        decode = self._decode
        for i, raw in enumerate(self.raw):
            yield decode(raw, i)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equality is by content, and elements need not hash

    def __repr__(self) -> str:
        return f"Lazy({len(self.raw)} elements)"
