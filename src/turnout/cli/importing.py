"""`turnout import`: recordings of other programs into a ledger."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from turnout.cli import exits, options, output

if TYPE_CHECKING:
    from turnout.evaluate.importers.run import FileReport
    from turnout.evaluate.importers.source import Skipped


def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recordings, or folders of them.")],
    ledger: Annotated[
        str, typer.Option(metavar="URL", help="Ledger to add to; made when it is not there.")
    ] = "sqlite:///turnout.db",
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="What the files are, where their content does not tell.")
    ] = "",
    capture: Annotated[
        Literal["none", "signals", "full"], typer.Option(help="What to keep beside the numbers, as in [ledger].")
    ] = "signals",
    scrub: Annotated[bool, typer.Option("--scrub", help="Take out secrets and the names of home folders.")] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="Configuration file whose [signals] say what your tools mean.")
    ] = None,
    skipped: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything that was skipped there, as JSON lines.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Bring recordings of other programs into a ledger.

    Claude Code, Codex, opencode, mini-swe-agent, SWE-agent, tau-bench, aider, conversations as JSON lines, outcome tables.
    The format is told from what a file holds. An import that was interrupted goes on; a file that was imported adds nothing.

    Damaged records are counted and named with file, line and reason; everything else is kept.
    """
    from turnout.cli.observe import vocabulary
    from turnout.evaluate.importers.formats import BY_NAME
    from turnout.evaluate.importers.run import Options, files, import_file
    from turnout.ledger.store import Ledger
    from turnout.pricing import Prices

    if form and form not in BY_NAME:
        raise exits.CommandError(f"no format {form!r}", step=f"known: {', '.join(BY_NAME)}")
    found = list(files(paths))
    known, prices = vocabulary(config), Prices.load()
    reports: list[FileReport] = []
    store = Ledger.read(ledger)
    try:
        with _told(skipped) as tell, _bar(sum(path.stat().st_size for path in found), as_json) as bar:
            importing = store.importing(capture)
            for path in found:
                before = bar.done

                def at(read: int, before: int = before, path: Path = path) -> None:
                    bar.at(before + read, path.name)

                at(0)
                report = import_file(
                    path,
                    importing,
                    Options(form, capture, scrub),
                    prices,
                    vocabulary=known,
                    on_bytes=at,
                    on_skip=tell,
                )
                at(path.stat().st_size)
                reports.append(report)
    finally:
        store.close()
    if as_json:
        output.emit(_whole(ledger, reports))
    else:
        _print(ledger, reports)
    if not any(report.status in ("imported", "imported before") for report in reports):
        step = "the formats are listed in docs/guide/import.md; --format names one"
        raise exits.CommandError("nothing was imported: no file has a format that is known", step=step)


class _Bar:
    """Bytes read of all files, on stderr; nothing where that is no terminal."""

    def __init__(self, progress: Any, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)
        self.done = 0

    def at(self, done: int, name: str) -> None:
        """So many bytes are read; this is the file."""
        self.done = done
        self._progress.update(self._task, completed=done, description=name[:40])


@contextlib.contextmanager
def _bar(total: int, quiet: bool) -> Iterator[_Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield _Bar(progress, total)


@contextlib.contextmanager
def _told(path: Path | None) -> Iterator[Any]:
    """Writes what is skipped to a file, line by line."""
    if path is None:
        yield None
        return
    import msgspec

    file: IO[bytes]
    with path.open("wb") as file:

        def tell(skipped: "Skipped") -> None:
            file.write(msgspec.json.encode(skipped) + b"\n")

        yield tell


def _sum(counts: "Sequence[dict[str, int]]") -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, n in one.items():
            total[name] = total.get(name, 0) + n
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def _whole(ledger: str, reports: "list[FileReport]") -> dict[str, Any]:
    """Everything an import did, as JSON."""
    from turnout.ledger.database import parse

    sums = ("turns", "outcomes", "new_turns", "new_outcomes", "sessions", "resumed", "records")
    return {
        "ledger": parse(ledger).render_as_string(hide_password=True),
        **{name: sum(getattr(report, name) for report in reports) for name in sums},
        "skipped": _sum([report.skipped for report in reports]),
        "ignored": _sum([report.ignored for report in reports]),
        "mended": _sum([report.mended for report in reports]),
        "files": [output.whole(report) for report in reports],
    }


def _print(ledger: str, reports: "list[FileReport]") -> None:
    """The same for people: files, then what was skipped and where."""
    from turnout.ledger.database import parse

    table = output.table("file", "format", "turns", "new", "outcomes", "new", "skipped", "what")
    for report in reports:
        lost = sum(report.skipped.values())
        what = f"{report.status}{f', {report.resumed} items were there' if report.resumed else ''}"
        numbers = (report.turns, report.new_turns, report.outcomes, report.new_outcomes, lost)
        table.row(Path(report.file).name, report.format, *(f"{n:,}" for n in numbers), what)
    table.print()
    for title, counts in (
        ("skipped", _sum([report.skipped for report in reports])),
        ("mended", _sum([report.mended for report in reports])),
    ):
        for reason, n in counts.items():
            output.emit_text(f"{title} {n:,}: {reason}")
            for one in [one for report in reports for one in report.examples if one.reason == reason][:3]:
                if title == "skipped":
                    output.emit_text(f"    {one.file}:{one.line}  {one.detail}".rstrip())
    new = sum(report.new_turns for report in reports), sum(report.new_outcomes for report in reports)
    where = parse(ledger).render_as_string(hide_password=True)
    output.emit_text(f"{new[0]:,} turns and {new[1]:,} outcomes were added to {where}")
