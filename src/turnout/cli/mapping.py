"""`turnout map`: what turns were for, and what each kind of work took."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import exits, options, output

if TYPE_CHECKING:
    from turnout.evaluate.turnmap import Portion, TurnMap
    from turnout.ledger.trace import TurnRecord


def map_(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE...]", help="Recordings, as `turnout import` reads them.")
    ] = None,
    ledger: Annotated[str, typer.Option(metavar="URL", help="Map the turns of a ledger instead.")] = "",
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="What the files are.")] = "",
    price_ratio: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="What the cheaper model costs beside the one used.")
    ] = 0.2,
    each: Annotated[bool, typer.Option("--turns", help="Print every turn's label instead, as JSON lines.")] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="Configuration file whose [signals] say what your tools mean.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what turns were for, and how much of that is cheap work.

    Every turn is labelled explore, plan, produce, verify, recover or summarise by its signals; what each kind took of calls,
    tokens, cost, time and failures follows, with intervals, and how much a cheaper model could save.

    Without files and --ledger it is the usual ledger.
    """
    from turnout.evaluate.turnmap import turn_map
    from turnout.evaluate.turnmap_labels import labelled

    if files and ledger:
        raise exits.CommandError("FILES and --ledger exclude each other", step="leave one out")
    with _turns(files or [], ledger, form, config) as turns:
        if each:
            for one in labelled(turns):
                turn = one.turn
                names = {"turn": turn.id, "session": turn.session, "agent": turn.agent, "model": turn.model}
                output.emit({**names, "label": one.label, "failed": one.failed, "cost_usd": turn.cost_usd})
            return
        found = turn_map(turns, price_ratio)
    if as_json:
        output.emit(found)
    else:
        _print(found)


@contextlib.contextmanager
def _turns(files: list[Path], ledger: str, form: str, config: Path | None) -> "Iterator[Iterator[TurnRecord]]":
    if files:
        yield _of_files(files, form, config)
        return
    from turnout.cli.records import Records
    from turnout.ledger.store import Ledger

    store = Ledger.read(Records(ledger).ledger)
    try:
        with store.lanes() as turns:
            yield turns
    finally:
        store.close()


def _of_files(paths: list[Path], form: str, config: Path | None) -> "Iterator[TurnRecord]":
    from turnout.cli.observe import vocabulary
    from turnout.evaluate.importers.formats import BY_NAME, detect
    from turnout.evaluate.importers.run import Options, files, items
    from turnout.evaluate.importers.source import Source
    from turnout.ledger.trace import TurnRecord
    from turnout.pricing import Prices

    if form and form not in BY_NAME:
        raise exits.CommandError(f"no format {form!r}", step=f"known: {', '.join(BY_NAME)}")
    known, prices = vocabulary(config), Prices.load()
    for path in files(paths):
        source = Source(path)
        importer = BY_NAME[form] if form else detect(source)
        if importer is None:
            output.say(f"{path}: no format that is known; left out")
            continue
        for item in items(source, importer, Options(), prices, known)[1]:
            if isinstance(item, TurnRecord):
                yield item
        for reason, n in source.tally.skipped.items():
            output.say(f"{path}: skipped {n:,}: {reason}")


def _print(found: "TurnMap") -> None:
    table = output.table("work", "turns", "share", "of prompts", "of output", "of cost", "of time", "of failures")
    for name, work in (*found.labels.items(), ("cheap together", found.cheap)):
        shares = (work.turns, work.tokens_in, work.tokens_out, work.cost_usd, work.seconds, work.failures)
        table.row(str(name), f"{work.turns.amount:,.0f}", *map(_share, shares))
    table.print()
    output.emit_text(found.sentence)
    if found.unpriced:
        output.emit_text(f"The cost of {found.unpriced:,} turns is not known; they count for nothing in costs.")
    if found.unlabelled:
        output.emit_text(f"{found.unlabelled:,} turns have no signals and no label.")
    output.emit_text("A person gives about three of four turns the same label; recover is told worst.")


def _share(portion: "Portion") -> str:
    if portion.share is None:
        return "-"
    if portion.low is None or portion.high is None:
        return f"{portion.share:.0%}"
    return f"{portion.share:.0%} [{portion.low:.0%} {portion.high:.0%}]"
