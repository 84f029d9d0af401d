"""The page of a graph: C and C', the pictures, every model and judge, and the scores behind them. Needs matplotlib."""

from collections.abc import Iterable, Sequence
from html import escape

from turnout.pages.page import Cell, Page, Preset, Rows, Section, link, listed, render, table
from turnout.peers.graph.measure import Measured
from turnout.peers.graph.pictures import PANELS, drawn
from turnout.peers.graph.words import CELLS, failing, figure, names, share, signed, sure
from turnout.routing.collaboration.graph import Relations

_QUADRANTS = "Lines: the percentiles that part low from high. Bars: 95 % intervals over questions."
_GRAPH = (
    "Arrows go from who votes to whose answers: C_i whole, C'_i dashed; thin = other questions might not have drawn it. "
    "Green: C, blue: HH, orange: C', grey: HL."
)


def html(found: Measured, task_type: str = "") -> str:
    """The page of a graph, complete; of the relations for one type of task where one is named."""
    shown = found.by_type[task_type] if task_type else found
    worth = found.stability.get(task_type)
    picture = {panel: drawn(panel, shown, worth, found.d1) for panel in PANELS}
    title = f"Collaboration graph of {len(found.models)} models{f', {task_type}' if task_type else ''}"
    sections = (
        Section("Given and received", picture["quadrants"], _QUADRANTS),
        Section("Who votes on whose answers", picture["graph"], _GRAPH, beside=True),
        Section("Models", _models(found, shown, task_type)),
        Section("Scores", picture["scores"]),
        *_types(found),
        *_judges(found),
        Section("Notes", listed(found.notes)),
        Section("Made from", _manifest(found)),
    )
    return render(
        Page(
            title=title,
            kicker=title,
            verdict=_sets(shown),
            tone="open" if found.traps or shown.flags else "good",
            who=escape(_settings(found, shown)),
            tiles="",
            sections=sections,
            tables=(_rows(found, shown),),
            presets=(Preset("all scores", "scores"),),
            figures=found,
            warnings=[trap.what for trap in found.traps],
        )
    )


def summary(found: Measured, shown: Relations) -> str:
    """A graph in a line: C, C', the settings, and how far C holds."""
    return f"{_sets(shown)} {_settings(found, shown)}"


def _sets(shown: Relations) -> str:
    return f"C: {names(shown.anchors)}. C': {names(shown.idiosyncratic)}."


def _settings(found: Measured, shown: Relations) -> str:
    said = f"d1 {found.d1:g}, d2 {found.d2:g}, {found.edge_score}"
    flags = f"; {', '.join(shown.flags)}" if shown.flags else ""
    return f"{said}; graph {found.id}, scores of {found.manifest.made_at}{flags}"


def _rows(found: Measured, shown: Relations) -> Rows:
    """Every score, and what its judge is to its author."""
    rows: list[tuple[Cell, ...]] = [
        (
            judge,
            author,
            shown.scores[judge].get(author),
            "C_i" if judge in shown.voters[author] else "C'_i" if judge in shown.others[author] else "",
        )
        for judge in found.models
        for author in found.models
        if judge != author
    ]
    said = "A row is the mean score of an author's answers by a judge; sees: whether the judge votes on them."
    return Rows("scores", ("judge", "author", "score", "sees"), rows, ("judge", "author"), f"graph {found.id}", said)


def _models(found: Measured, shown: Relations, task_type: str) -> str:
    worth = found.stability.get(task_type)
    rows = []
    for model in found.models:
        cell = shown.category[model]
        rows.append(
            (
                escape(model),
                link(figure(shown.given[model], worth.given[model] if worth else None), "scores", judge=model),
                link(figure(shown.received[model], worth.received[model] if worth else None), "scores", author=model),
                escape(sure(worth, model, cell)),
                escape(CELLS[cell] if cell else "not known"),
                escape(names(shown.voters[model])),
                escape(names(shown.others[model])),
            )
        )
    return table(("model", "Given", "Received", "category", "", "C_i: votes on its answers", "C'_i"), rows)


def _types(found: Measured) -> Sequence[Section]:
    if not found.by_type:
        return ()
    rows = [
        (kind, str(one.questions), names(one.anchors), names(one.idiosyncratic), one.falls_back or "used")
        for kind, one in found.by_type.items()
    ]
    return (Section("By type of task", _table(("type", "questions", "C", "C'", ""), rows)),)


def _judges(found: Measured) -> Sequence[Section]:
    if not found.judges:
        return ()
    rows = [
        (
            name,
            str(one.scores),
            figure(one.mean),
            figure(one.spread),
            signed(one.agreement),
            signed(one.length),
            signed(one.self_preference),
            share(one.parse_failures),
            "; ".join(filter(None, (failing(found, name), *one.notes))),
        )
        for name, one in found.judges.items()
    ]
    headings = ("judge", "scores", "mean", "SD", "r with others", "r with length", "for itself", "unread", "")
    return (Section("Judges", _table(headings, rows)),)


def _manifest(found: Measured) -> str:
    manifest = found.manifest
    rows = [
        ("scores made at", manifest.made_at),
        ("questions", f"{manifest.question_count or 'not known'} {manifest.question_set[:16]}"),
        ("prompt", f"{manifest.prompt_version} {manifest.prompt[:16]}"),
        ("file of scores", manifest.scores[:16]),
        ("stale after", f"{manifest.soft_ttl_days:g} days"),
        ("not used after", "never" if manifest.hard_ttl_days is None else f"{manifest.hard_ttl_days:g} days"),
        *((one.name, f"{one.model} {one.revision[:16]}") for one in manifest.models),
    ]
    return _table(("", ""), rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text."""
    return table(headings, ([escape(cell) for cell in row] for row in rows))
