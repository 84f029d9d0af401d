"""Progress of long work, on stderr: a bar for people at a terminal, nothing in a pipe or a log."""

import contextlib
import sys
from collections.abc import Callable, Iterator

Told = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much (0 = not known)."""


@contextlib.contextmanager
def shown() -> Iterator[Told]:
    """Give a function to tell progress to; the bar goes away when the work is over."""
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def told(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of or None)
            bars.update(tasks[what], completed=done)

        yield told
