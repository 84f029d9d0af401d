"""What commands print: results on stdout, everything else on stderr."""

import sys
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

PIPED_WIDTH = 200
"""Columns of a table that no terminal bounds."""

_GAP = 3
"""Columns between two cells of a table."""

_LAST_AT_LEAST = 20
"""Columns below which a table's last cell is not worth wrapping."""


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


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time span as people read it."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Table:
    """A table for people; the last column takes what the others leave. Where they leave it too little, every row becomes a
    few lines instead: a cell cut short could be neither read nor copied."""

    def __init__(self, *headings: str) -> None:
        self._headings = headings
        self._rows: list[tuple[str, ...]] = []

    def row(self, *cells: str) -> None:
        """Add a row; cells are plain text."""
        self._rows.append(cells)

    def print(self) -> None:
        """Print the table on stdout."""
        target = console()
        widths = [max(map(len, column)) for column in zip(self._headings, *self._rows, strict=True)]
        if sum(widths[:-1]) + _GAP * len(widths) + min(widths[-1], _LAST_AT_LEAST) > target.width:
            for row in self._rows:
                emit_text(_stacked(self._headings, row, target.width))
        else:
            target.print(self._grid())

    def _grid(self) -> "RichTable":
        from rich import box
        from rich.markup import escape
        from rich.table import Table as RichTable

        grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in self._headings:
            last = heading == self._headings[-1]
            grid.add_column(heading, no_wrap=not last, overflow="fold", ratio=1 if last else None)
        for row in self._rows:
            grid.add_row(*(escape(cell) for cell in row))
        return grid


def _stacked(headings: tuple[str, ...], row: tuple[str, ...], width: int) -> str:
    """A row as lines: its first cell, the others behind their headings, and the last on a line of its own."""
    import textwrap

    named = [f"{heading} {cell}" for heading, cell in zip(headings[1:-1], row[1:-1], strict=True) if cell]
    # A heading and its cell stay together: a no-break space is none to textwrap.
    together = "  ".join(part.replace(" ", "\u00a0") for part in (row[0], *named))
    lines = textwrap.wrap(together, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    lines += textwrap.wrap(row[-1], width, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
    return "\n".join(line.replace("\u00a0", " ") for line in lines)


def table(*headings: str) -> Table:
    """An empty table."""
    return Table(*headings)


def console() -> "Console":
    """Rich's console on stdout, wide when it is a pipe or a file."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
