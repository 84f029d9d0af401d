"""What commands print: results on stdout, everything else on stderr."""

import sys
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 200
"""Columns of a table that no terminal bounds."""


def emit(value: Any) -> None:
    """One JSON value on one line of stdout."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def whole(value: Any) -> Any:
    """A struct as JSON-able values with every field there, those at their defaults too, at any depth."""
    if isinstance(value, msgspec.Struct):
        return {name: whole(getattr(value, name)) for name in value.__struct_fields__}
    return [whole(item) for item in value] if isinstance(value, (tuple, list)) else value


def emit_text(text: str) -> None:
    """Text on stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def say(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    print(text, file=sys.stderr)


def usd(amount: float | None, note: str = "") -> str:
    """An amount of money as people read it; what is unknown is said, never 0."""
    if amount is None:
        return note.split(":", 1)[0] or "unknown"
    return f"${amount:.2f}" if abs(amount) >= 1 else f"${amount:.6f}".rstrip("0").ljust(6, "0")


def duration(seconds: float) -> str:
    """A time span as people read it."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Table:
    """A table for people; the last column takes what the others leave."""

    def __init__(self, *headings: str) -> None:
        from rich import box
        from rich.table import Table as Rich

        self._rich = Rich(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in headings:
            last = heading == headings[-1]
            self._rich.add_column(heading, no_wrap=not last, overflow="fold", ratio=1 if last else None)

    def row(self, *cells: str) -> None:
        """Add a row; cells are plain text."""
        from rich.markup import escape

        self._rich.add_row(*(escape(cell) for cell in cells))

    def print(self) -> None:
        """Print the table on stdout."""
        console().print(self._rich)


def table(*headings: str) -> Table:
    """An empty table."""
    return Table(*headings)


def console() -> "Console":
    """Rich's console on stdout, wide when it is a pipe or a file."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
