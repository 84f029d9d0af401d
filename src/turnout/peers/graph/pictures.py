"""Pictures of a graph: the scores, who gives and gets how much, and who looks at whose answers. Needs matplotlib."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from turnout.pages.plot import svg
from turnout.peers.graph.relations import percentile
from turnout.peers.graph.stability import Stability
from turnout.routing.collaboration.graph import Category, Relations

COLOURS: dict[Category | None, str] = {
    "LH": "#1b7f4d",
    "HH": "#1d4ed8",
    "LL": "#c2410c",
    "HL": "#6b7280",
    "MID": "#a16207",
    None: "#d1d5db",
}
_SHORT = 22
"""Letters of a model's name that are drawn."""

Panel: TypeAlias = Callable[[Axes, Relations, Stability | None, float], None]


def heat_map(axes: Axes, found: Relations, worth: Stability | None, d1: float) -> None:
    """The scores, a row for each judge from the strictest to the most lenient, authors from the best scored to the worst."""
    judges = sorted(found.given, key=lambda m: _or(found.given[m], math.inf))
    authors = sorted(found.received, key=lambda m: -_or(found.received[m], -math.inf))
    rows = [[_or(found.scores[j].get(i), math.nan) for i in authors] for j in judges]
    known = [value for row in rows for value in row if not math.isnan(value)] or [0.0]
    axes.imshow(rows, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(authors)), [_short(m) for m in authors], rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(judges)), [_short(m) for m in judges], fontsize=8)
    axes.set_xlabel("author, best scored first")
    axes.set_ylabel("judge, strictest first")
    if len(judges) <= 16:
        middle = (min(known) + max(known)) / 2
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                if not math.isnan(value):
                    colour = "white" if value < middle else "black"
                    axes.text(x, y, f"{value:.3g}", ha="center", va="center", fontsize=7, color=colour)


def quadrants(axes: Axes, found: Relations, worth: Stability | None, d1: float) -> None:
    """Every model by what it gives and gets, with 95 % intervals where they are known and the percentiles that part low from
    high."""
    shown = [m for m in found.given if found.given[m] is not None and found.received[m] is not None]
    given, received = ([_or(side[m], 0.0) for m in shown] for side in (found.given, found.received))
    if not shown:
        return
    for at in sorted({d1, 100 - d1}):
        axes.axvline(percentile(given, at), color="#d1d5db", linewidth=1, zorder=0)
        axes.axhline(percentile(received, at), color="#d1d5db", linewidth=1, zorder=0)
    for model, x, y in zip(shown, given, received, strict=True):
        colour = COLOURS[found.category[model]]
        if worth is not None and (across := worth.given[model]) and (upright := worth.received[model]):
            axes.plot(across, (y, y), color=colour, linewidth=1, alpha=0.5)
            axes.plot((x, x), upright, color=colour, linewidth=1, alpha=0.5)
        axes.plot(x, y, "o", color=colour)
        axes.annotate(_short(model), (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    for x, y, said, cell in ((0.01, 0.99, "C", "LH"), (0.01, 0.01, "C'", "LL")):
        side = "top" if y > 0.5 else "bottom"
        axes.text(x, y, said, transform=axes.transAxes, va=side, fontsize=13, color=COLOURS[cell])  # type: ignore[index]
    axes.set_xlabel("Given: mean score it hands out")
    axes.set_ylabel("Received: mean score it gets")
    axes.margins(0.15)


def drawing(axes: Axes, found: Relations, worth: Stability | None, d1: float) -> None:
    """The graph: an arrow from each voter to the author whose answers it looks at, C_i whole and C'_i dashed, thinner where other
    questions might not have drawn it. C stands inside, all others outside."""
    places = _places(found)
    for author in found.given:
        for judges, style in ((found.voters[author], "-"), (found.others[author], (0, (4, 3)))):
            for judge in judges:
                sure = 1.0 if worth is None else worth.C_i[author].get(judge, worth.C_prime_i[author].get(judge, 0.0))
                arrow = FancyArrowPatch(
                    places[judge],
                    places[author],
                    connectionstyle="arc3,rad=0.12",
                    arrowstyle="-|>",
                    mutation_scale=9,
                    shrinkA=9,
                    shrinkB=11,
                    linestyle=style,
                    linewidth=0.4 + 1.2 * sure,
                    color=COLOURS[found.category[judge]],
                    alpha=0.35 + 0.5 * sure,
                )
                axes.add_patch(arrow)
    for model, (x, y) in places.items():
        axes.plot(x, y, "o", color=COLOURS[found.category[model]], markersize=13)
        below = y < -0.05
        axes.annotate(
            _short(model),
            (x, y),
            xytext=(0, -10 if below else 10),
            textcoords="offset points",
            ha="center",
            va="top" if below else "bottom",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
        )
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.margins(0.22)


PANELS: dict[str, Panel] = {"scores": heat_map, "quadrants": quadrants, "graph": drawing}


def _places(found: Relations) -> dict[str, tuple[float, float]]:
    inner = list(found.anchors)
    outer = [m for m in found.given if m not in inner]
    # One anchor stands in the middle; without any, or with all of them, there is one ring.
    radius = 0.0 if len(inner) == 1 else 0.5 if outer else 1.0
    return {
        model: (far * math.sin(turn), far * math.cos(turn))
        for ring, far, offset in ((inner, radius, 0.5), (outer, 1.0, 0.0))
        for at, model in enumerate(ring)
        for turn in [2 * math.pi * (at + offset) / len(ring)]
    }


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _short(model: str) -> str:
    return model if len(model) <= _SHORT else model[: _SHORT - 1] + "…"


def drawn(panel: str, found: Relations, worth: Stability | None, d1: float) -> str:
    """One picture as an `svg` element; the same graph gives the same text."""
    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    PANELS[panel](figure.add_subplot(), found, worth, d1)
    return svg(figure, panel)


def save(path: Path, found: Relations, worth: Stability | None, d1: float, title: str) -> None:
    """All pictures side by side in one file; its ending says of which kind. Raises ValueError for one that is not known."""
    figure = Figure(figsize=(18, 5.6), layout="constrained")
    figure.suptitle(title, fontsize=11)
    for axes, panel in zip(figure.subplots(1, len(PANELS)), PANELS.values(), strict=True):
        panel(axes, found, worth, d1)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "graph"}):
        kind = path.suffix.removeprefix(".").lower()
        metadata = {"Date": None} if kind == "svg" else {"Software": None} if kind == "png" else None
        figure.savefig(path, format=kind or None, dpi=130, metadata=metadata)
