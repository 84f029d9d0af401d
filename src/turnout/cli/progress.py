"""Progress of long work, on stderr: a bar for people at a terminal, nothing in a pipe or a log."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol


class Told(Protocol):
    """Told what is being done, how much of it is done, of how much (0 = not known), and a word beside it, such as its cost."""

    def __call__(self, what: str, done: int, of: int, note: str = "") -> None: ...


@contextlib.contextmanager
def shown() -> Iterator[Told]:
    """Give a function to tell progress to; the bar goes away when the work is over."""
    if not sys.stderr.isatty():
        yield lambda what, done, of, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def told(what: str, done: int, of: int, note: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of or None, note=note)
            for other, task in tasks.items():
                if other != what:
                    bars.update(task, note="")  # the word belongs to what is being done now
            bars.update(tasks[what], completed=done, note=note)

        yield told
