"""`turnout peers graph`, `turnout peers show`: who looks at whose answers, from scores."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from turnout.cli import exits, options, output, progress

if TYPE_CHECKING:
    from turnout.peers.graph.measure import Measured, Resampler

PICTURES = (".png", ".svg", ".pdf")


def graph(
    scores: Annotated[
        Path, typer.Argument(metavar="SCORES", help="JSON: models, scores[judge][author]; as `peers review` writes it.")
    ],
    d1: Annotated[float, typer.Option(min=0, max=100, help="Percentile that parts low from high scores.")] = 50.0,
    d2: Annotated[float, typer.Option(min=0, max=100, help="Percent of an author's scores that are low.")] = 50.0,
    edge_score: Annotated[
        Literal["raw", "judge_centered"],
        typer.Option(help="A score, or a score less what its judge gives on the whole."),
    ] = "raw",
    resamples: Annotated[
        int, typer.Option(min=0, max=100_000, help="Resamples of questions; 0 = no intervals.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 1,
    kappa: Annotated[
        float, typer.Option(min=0, help="Questions that the scores of all types weigh in those of one.")
    ] = 20.0,
    keep_judges: Annotated[bool, typer.Option("--keep-judges", help="Keep judges that fail their checks.")] = False,
    stale_days: Annotated[float, typer.Option(min=0, help="Days after which a router warns.")] = 30.0,
    expire_days: Annotated[
        float | None, typer.Option(min=0, help="Days after which it refuses; absent = never.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the graph there, for a route.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a collaboration graph from scores that models gave one another.

    Who is strict and scored well (C) looks at the answers it scores low (C_i). With scores question by question, also how far
    other questions would give another graph, and which judges cannot be relied on.

    turnout peers graph scores.json --out graph.json
    """
    from turnout.peers.graph.measure import Wanted, measure
    from turnout.peers.graph.relations import Settings
    from turnout.peers.graph.scored import read

    wanted = Wanted(Settings(d1, d2, edge_score), keep_judges, resamples, seed, kappa, stale_days, expire_days)
    scored = read(scores)
    resampler = _resampler() if scored.cells and resamples else None
    with progress.shown() as told:
        found = measure(scored, wanted, resampler, told)
    if out is not None:
        _write(out, found)
    for trap in found.traps:
        output.say(f"warning: {trap.what}")
    if as_json:
        output.emit(found)
    else:
        print_graph(found, "")
    if out is not None:
        output.say(f"wrote {out}; `turnout peers show {out} --html graph.html` shows it")


def show(
    file: Annotated[Path, typer.Argument(metavar="GRAPH", help="File that `peers graph --out` wrote.")],
    type_: Annotated[str, typer.Option("--type", metavar="NAME", help="The relations for a type of task.")] = "",
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page to look at, one file.")] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Write pictures: .png, .svg or .pdf.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a collaboration graph: what models give and get, who looks at whose answers, how far that holds.

    turnout peers show graph.json --html graph.html --picture graph.png
    """
    from turnout.peers.graph.measure import read

    found = read(file)
    now = datetime.now(UTC)
    if (state := found.staleness(now)) != "fresh":
        output.say(f"warning: {state}: the scores are {found.age_days(now):.0f} days old")
    if type_ and type_ not in found.by_type:
        known = ", ".join(found.by_type) or "none"
        raise exits.CommandError(f"{file}: no type {type_!r}", exits.NOT_FOUND, f"there are: {known}")
    if picture is not None:
        if picture.suffix.lower() not in PICTURES:
            raise exits.CommandError(f"--picture {picture}: its ending must be one of {', '.join(PICTURES)}")
        from turnout.peers.graph.pictures import save

        relations = found.by_type[type_] if type_ else found
        save(picture, relations, found.stability.get(type_), found.d1, f"graph {found.id} {type_}".strip())
        output.say(f"wrote {picture}")
    if html is not None:
        from turnout.peers.graph.page import html as page

        html.write_text(page(found, type_), "utf-8")
        output.say(f"wrote {html}")
    if as_json:
        output.emit(found)
    else:
        print_graph(found, type_)


def _resampler() -> "Resampler | None":
    """What makes resamples; None, and a word, where its packages are not installed."""
    try:
        from turnout.peers.graph.resampling import Resampled
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        output.say("no intervals: they need numpy; pip install 'turnout[report]'")
        return None
    return Resampled


def _write(path: Path, found: "Measured") -> None:
    """Put the graph in place whole, or not at all: a route may be reading it."""
    import msgspec

    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    beside.replace(path)


def print_graph(found: "Measured", task_type: str) -> None:
    """The graph as tables, of all tasks or of one type."""
    from turnout.peers.graph.words import figure, names, sure

    shown = found.by_type[task_type] if task_type else found
    worth = found.stability.get(task_type)
    output.emit_text(f"C: {names(shown.anchors)}    C': {names(shown.idiosyncratic)}")
    table = output.table("model", "Given", "Received", "category", "C_i: votes on its answers", "C'_i")
    for model in found.models:
        table.row(
            model,
            figure(shown.given[model], worth.given[model] if worth else None),
            figure(shown.received[model], worth.received[model] if worth else None),
            sure(worth, model, shown.category[model]),
            names(shown.voters[model]),
            names(shown.others[model]),
        )
    table.print()
    _print_judges(found)
    if not task_type:
        _print_types(found)
    if worth is not None:
        output.emit_text(
            f"{output.count(worth.questions, 'question')}, {worth.resamples:,} resamples: C of other questions overlaps by "
            f"{worth.agreement:.0%}, and {output.count(len(worth.unstable_edges), 'edge')} of C_i may be there or not"
        )
    for flag in shown.flags:
        output.emit_text(f"flag: {flag}")
    for note in found.notes:
        output.emit_text(f"note: {note}")


def _print_judges(found: "Measured") -> None:
    from turnout.peers.graph.words import failing, figure, share, signed

    if not found.judges:
        return
    table = output.table("judge", "SD", "r with others", "r with length", "for itself", "unread", "")
    for name, one in found.judges.items():
        said = "; ".join(filter(None, (failing(found, name), *one.notes)))
        figures = (signed(one.agreement), signed(one.length), signed(one.self_preference), share(one.parse_failures))
        table.row(name, figure(one.spread), *figures, said)
    table.print()


def _print_types(found: "Measured") -> None:
    from turnout.peers.graph.words import names

    if not found.by_type:
        return
    table = output.table("type", "questions", "C", "C'", "")
    for kind, one in found.by_type.items():
        used = f"falls back to all types: {one.falls_back}" if one.falls_back else ""
        table.row(kind, str(one.questions), names(one.anchors), names(one.idiosyncratic), used)
    table.print()
