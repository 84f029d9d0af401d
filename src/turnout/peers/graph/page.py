"""One HTML file that shows a graph; it loads nothing from elsewhere. Needs matplotlib."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from turnout.peers.graph.measure import Measured
from turnout.peers.graph.pictures import PANELS, svg
from turnout.peers.graph.words import CELLS, failing, figure, names, share, signed, sure
from turnout.routing.collaboration.graph import Relations


def html(found: Measured, task_type: str = "") -> str:
    """The page of a graph, complete; of the relations for one type of task where one is named."""
    shown = found.by_type[task_type] if task_type else found
    worth = found.stability.get(task_type)
    template = Template(files("turnout.peers.graph").joinpath("page.html").read_text("utf-8"))
    return template.substitute(
        title=escape(f"Collaboration graph of {len(found.models)} models{f', {task_type}' if task_type else ''}"),
        who=escape(summary(found, shown)),
        traps="".join(f'<p class="trap">{escape(trap.what)}</p>' for trap in found.traps),
        models=_models(found, shown, task_type),
        types=_types(found),
        judges=_judges(found),
        notes=_listed(found.notes),
        manifest=_manifest(found),
        **{panel: svg(panel, shown, worth, found.d1) for panel in PANELS},
    )


def summary(found: Measured, shown: Relations) -> str:
    """A graph in a line: C, C', the settings, and how far C holds."""
    said = f"C: {names(shown.anchors)}. C': {names(shown.idiosyncratic)}. d1 {found.d1:g}, d2 {found.d2:g}, {found.edge_score}"
    flags = f"; {', '.join(shown.flags)}" if shown.flags else ""
    return f"{said}; graph {found.id}, scores of {found.manifest.made_at}{flags}"


def _models(found: Measured, shown: Relations, task_type: str) -> str:
    worth = found.stability.get(task_type)
    rows = []
    for model in found.models:
        cell = shown.category[model]
        rows.append(
            (
                model,
                figure(shown.given[model], worth.given[model] if worth else None),
                figure(shown.received[model], worth.received[model] if worth else None),
                sure(worth, model, cell),
                CELLS[cell] if cell else "not known",
                names(shown.voters[model]),
                names(shown.others[model]),
            )
        )
    return _table(("model", "Given", "Received", "category", "", "C_i: votes on its answers", "C'_i"), rows)


def _types(found: Measured) -> str:
    if not found.by_type:
        return ""
    rows = [
        (kind, str(one.questions), names(one.anchors), names(one.idiosyncratic), one.falls_back or "used")
        for kind, one in found.by_type.items()
    ]
    return "<h2>By type of task</h2>" + _table(("type", "questions", "C", "C'", ""), rows)


def _judges(found: Measured) -> str:
    if not found.judges:
        return ""
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
    return "<h2>Judges</h2>" + _table(headings, rows)


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


def _listed(notes: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
