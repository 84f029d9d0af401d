"""`turnout observe`: what each tool result of recorded conversations shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import options, output
from turnout.cli.exits import CommandError
from turnout.cli.labelled import report

if TYPE_CHECKING:
    from turnout.signals import Vocabulary


def observe(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.jsonl]", help="Conversations, one JSON object a line; - is stdin."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels of tool results, JSON lines: print how far observations agree."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="With --labels: where the collections lie (default: beside the labels)."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="FIELD", help="With --labels: figures apart by a field of the rows.")] = "",
    where: Annotated[
        str, typer.Option(metavar="FIELD=VALUE", help="With --labels: only rows whose field has this value.")
    ] = "",
    errors: Annotated[bool, typer.Option("--errors", help="With --labels: list what differs and why.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(metavar="CONFIG", help="Configuration file whose [signals] say what your tools mean."),
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Print a table for people instead of JSON lines.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what each tool result of a recording says.

    One JSON line per tool result, in order: the observation that signals and routers rest on. FILE holds `messages` in
    OpenAI chat form; tool messages may carry `is_error` and `returncode`.

    With --labels it says how well observations agree with what people say of the same results: precision, recall and F1 of
    each class with intervals, the confusion, tool kinds, windows.
    """
    if labels is not None:
        if file is not None:
            raise CommandError("FILE.jsonl and --labels do not go together; --data says where the conversations lie")
        report(labels, data, vocabulary(config), by, where, errors, as_json)
        return
    if data is not None or by or where or errors:
        raise CommandError("--data, --by, --where and --errors go with --labels")
    if file is None:
        raise CommandError("give FILE.jsonl, or --labels FILE")
    from turnout.evaluate.recordings import conversations, observations

    known = vocabulary(config)
    rows = (
        (recorded.line, output.whole(seen))
        for recorded in conversations(file)
        for seen in observations(recorded.conversation, known)
    )
    if table and not as_json:
        _table(rows)
        return
    for line, seen in rows:
        output.emit({"conversation": line, **seen})


def vocabulary(config: Path | None) -> "Vocabulary":
    """What a configuration adds to the built-in knowledge of tools; None = nothing."""
    from turnout.signals import BUILT_IN, Vocabulary

    if config is None:
        return BUILT_IN
    from turnout.gateway.config import load

    return Vocabulary(load(config, None).signals)


def _table(rows: Any) -> None:
    table = output.table("at", "tool", "kind", "status", "by", "error", "tests", "evidence")
    for line, seen in rows:
        tests = {None: "", True: "passed", False: "failed"}[seen["tests_passed"]]
        error = "" if seen["error_class"] == "none" else f"{seen['error_class']} {seen['error_kind']}".rstrip()
        place = f"{line}:{seen['message']}"
        table.row(
            place, seen["tool"], seen["kind"], seen["status"], seen["evidence"], error, tests, seen["evidence_text"]
        )
    table.print()
