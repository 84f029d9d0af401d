"""The frontier of routers on recorded runs: a line for each router over its settings, with intervals at its defaults."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import msgspec
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from turnout.evaluate.evaluation import Evaluation
from turnout.evaluate.switching import ASSUMPTION
from turnout.statistics.interval import Interval

COLOURS = ("#1f6f8b", "#7b3fa0", "#c8641e")
BASELINES = {
    "capable": ("capable only", "o"),
    "efficient": ("efficient only", "o"),
    "oracle": ("oracle", "*"),
    "cascade": ("efficient first, perfect verifier", "s"),
}


def plot(
    found: Evaluation, costed: Mapping[str, tuple[Interval, Interval]], defaults: Mapping[str, str], folder: Path
) -> list[Path]:
    """Draw success against cost over the units whose costs are known, as SVG and PNG. `defaults`: routers by the beginnings of
    their names, with the name of each at its default setting; `costed`: cost and success of these with intervals."""
    assert found.frontier is not None, "no costs are known"
    places = {point.name: (point.cost_usd, point.success) for point in found.frontier.points}
    figure = Figure(figsize=(8.6, 6.4))
    axes = figure.add_subplot()
    (cheap, low), (dear, high) = found.frontier.mix
    axes.plot([cheap, dear], [low, high], "--", color="#6b7280", linewidth=1.2, label="random mix of the two models")
    blind = sorted(place for name, place in places.items() if name.startswith("restart after "))
    axes.plot(
        *zip(*blind, strict=True), ":.", color="#9ca3af", linewidth=1, label="restart after N steps, whatever they show"
    )
    for colour, line in zip(COLOURS, defaults, strict=True):
        mine = sorted(place for name, place in places.items() if name.startswith(f"route {line} "))
        if not mine:
            continue
        axes.plot(*zip(*mine, strict=True), "-", color=colour, linewidth=1.4, alpha=0.8)
        axes.plot(*zip(*mine, strict=True), ".", color=colour, markersize=5)
        _marked(axes, costed[defaults[line]], colour)
        axes.plot([], [], "-D", color=colour, label=f"{line} (diamond: its default)")
    for name, (said, marker) in BASELINES.items():
        axes.plot(*places[name], marker, color="#111827", markersize=12 if marker == "*" else 7)
        axes.annotate(said, places[name], xytext=(8, 5), textcoords="offset points", fontsize=9)
    axes.set_xlabel("USD a unit")
    axes.set_ylabel("success, costed units")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eeeeee")
    axes.margins(x=0.1)
    axes.set_ylim(0.08)
    axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    said = f"{ASSUMPTION[0].upper()}{ASSUMPTION[1:]}; {found.restarts.weak_cost}"
    caption = (
        f"n = {found.n_cost} of {found.n} units (costs known for both models) of {found.n_tasks} tasks. Capable: "
        f"{found.arms['capable']}; efficient: {found.arms['efficient'].model}, mini-swe-agent. {said}. Bars: 95 %, "
        "bootstrap over tasks. Success over all units is in the table."
    )
    figure.text(0.02, 0.01, "\n".join(textwrap.wrap(caption, 140)), fontsize=7.5, va="bottom", color="#374151")
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / "routers.svg", folder / "routers.png"]
    # Letters stay letters, and the same figures give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "routers"}):
        for path in made:
            figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)
    return made


def _marked(axes: Axes, figures: tuple[Interval, Interval], colour: str) -> None:
    """A diamond with the intervals of cost and success."""
    (x, left, right), (y, low, high) = (msgspec.structs.astuple(one) for one in figures)
    axes.plot([left, right], [y, y], color=colour, linewidth=0.9, alpha=0.55)
    axes.plot([x, x], [low, high], color=colour, linewidth=0.9, alpha=0.55)
    axes.plot(x, y, "D", color=colour, markersize=8)
