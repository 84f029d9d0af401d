"""Plots of a comparison as SVG text to put into a page. Needs matplotlib."""

from collections.abc import Sequence

from matplotlib.ticker import FuncFormatter

from turnout.evaluate.baselines import is_costed
from turnout.evaluate.evaluation import Evaluation
from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import QUADRANTS, oracle
from turnout.evaluate.spending import Kind, Spending
from turnout.evaluate.words import ARMS, dollars
from turnout.pages.plot import PERCENT, blank, svg

COLOURS = {
    "capable": "#7b3fa0",
    "efficient": "#1b7f4d",
    "routed": "#c2410c",
    "oracle": "#1d4ed8",
    "random_mix": "#6b7280",
}
_OTHER = "#9ca3af"
_MARKERS = {"cascade": "s", "held_out": "D", "oracle_by_rate": "^"}
"""Ways of choosing that the legend names; labels of their own would crowd the plot."""
_QUADRANT_COLOURS = {"SAFE": "#1b7f4d", "LOSS": "#b91c1c", "RESCUE": "#1d4ed8", "HARD": "#6b7280"}

_KIND_COLOURS: dict[Kind, str] = {
    "answers": "#1b7f4d",
    "cold after a switch": "#b91c1c",
    "cold otherwise": "#f59e0b",
    "judges": "#1d4ed8",
    "discarded": "#7c3aed",
    "failed": "#6b7280",
    "hung up": "#d1d5db",
}


def frontier_plot(found: Evaluation) -> str:
    """Success against cost per unit, with the line of random mixes and the frontier; "" without costs."""
    if found.frontier is None:
        return ""
    figure, axes = blank(7.2, 4.2)
    (cheap, low), (dear, high) = found.frontier.mix
    axes.plot(
        [cheap, dear], [low, high], "--", color=COLOURS["random_mix"], linewidth=1, label="random mixes", zorder=1
    )
    best = [point for point in found.frontier.points if point.on_frontier]
    axes.step(
        [p.cost_usd for p in best], [p.success for p in best], where="post", color="#bfdbfe", linewidth=1.5, zorder=0
    )
    restarts = [point for point in found.frontier.points if point.name.startswith("restart")]
    if restarts:
        label = "restart after N steps, simulated"
        axes.plot([p.cost_usd for p in restarts], [p.success for p in restarts], ".", color=_OTHER, label=label)
    middle = (found.frontier.points[0].cost_usd + found.frontier.points[-1].cost_usd) / 2
    for point in found.frontier.points:
        if point in restarts or point.name == "random_mix":
            continue
        said = ARMS.get(point.name, point.name)
        if point.name in _MARKERS:
            marker = _MARKERS[point.name]
            axes.plot(point.cost_usd, point.success, marker, color=_OTHER, markersize=6, label=said, linestyle="none")
            continue
        axes.plot(point.cost_usd, point.success, "o", color=COLOURS.get(point.name, _OTHER), markersize=7)
        # Labels lean inwards, and those of the two models stand below the line between them.
        right = point.cost_usd > middle
        place = (-7 if right else 7, -12 if point.name in ("capable", "efficient") else 5)
        side = "right" if right else "left"
        at = (point.cost_usd, point.success)
        axes.annotate(said, at, xytext=place, textcoords="offset points", ha=side, fontsize=9)
    axes.set_xlabel("USD per unit")
    axes.set_ylabel("success")
    axes.yaxis.set_major_formatter(PERCENT)
    axes.margins(x=0.08, y=0.12)
    axes.legend(loc="best", frameon=False, fontsize=8)
    return svg(figure, "frontier")


def waterfall_plot(found: Evaluation) -> str:
    """From the cost of capable-only to that of the routed run (else the oracle), by what each set of units saves; "" without
    costs."""
    if not found.n_cost:
        return ""
    end = "routed" if "routed" in found.spent_usd else "oracle"
    start, stop = found.spent_usd["capable"], found.spent_usd[end]
    figure, axes = blank(7.2, 3.4)
    level = sum(start.values())
    bars: list[tuple[str, float, float, str]] = [(ARMS["capable"], 0.0, level, COLOURS["capable"])]
    for name in QUADRANTS:
        change = stop[name] - start[name]
        bars.append((name, min(level, level + change), abs(change), _QUADRANT_COLOURS[name]))
        level += change
    bars.append((ARMS[end], 0.0, level, COLOURS[end]))
    bars.append((ARMS["efficient"], 0.0, sum(found.spent_usd["efficient"].values()), COLOURS["efficient"]))
    changes: dict[str, float] = {name: stop[name] - start[name] for name in QUADRANTS}
    for place, (label, bottom, height, colour) in enumerate(bars):
        axes.bar(place, height, bottom=bottom, color=colour, width=0.65)
        said = f"{'-' if changes[label] < 0 else '+'}{dollars(height)}" if label in changes else dollars(height)
        axes.annotate(
            said, (place, bottom + height), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8
        )
    axes.set_xticks(range(len(bars)), [name for name, *_ in bars], fontsize=9)
    axes.set_ylabel(f"USD, {found.n_cost} units")
    axes.margins(y=0.12)
    return svg(figure, "waterfall")


def spending_plot(found: Spending) -> str:
    """What turns cost, part after part, beside what one target alone would have cost; "" where nothing was spent."""
    if not found.known_usd:
        return ""
    figure, axes = blank(7.2, 3.8)
    level = 0.0
    bars: list[tuple[str, float, float, str]] = []
    for part in found.parts:
        bars.append(
            (f"{part.kind}\n{part.name}" if part.name else part.kind, level, part.usd, _KIND_COLOURS[part.kind])
        )
        level += part.usd
    bars.append(("in all", 0.0, level, "#374151"))
    if found.alone is not None:
        bars.append((f"{found.alone.target} alone\n(reckoned)", 0.0, found.alone.usd, COLOURS["capable"]))
    for place, (_, bottom, height, colour) in enumerate(bars):
        axes.bar(place, height, bottom=bottom, color=colour, width=0.65)
        at = (place, bottom + height)
        axes.annotate(dollars(height), at, xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8)
    axes.set_xticks(range(len(bars)), [name for name, *_ in bars], fontsize=8, rotation=20 if len(bars) > 6 else 0)
    axes.set_ylabel("USD")
    axes.margins(y=0.12)
    return svg(figure, "spending")


def tails_plot(found: Evaluation, units: Sequence[Unit]) -> str:
    """Which share of units costs at least so much, on logarithmic axes; "" without costs."""
    costed = [unit for unit in units if is_costed(unit)]
    costs = {
        "capable": [unit.capable.cost_usd for unit in costed],
        "efficient": [unit.efficient.cost_usd for unit in costed],
        "oracle": [oracle(unit).cost_usd for unit in costed],
        "routed": [unit.routed.cost_usd for unit in costed if unit.routed is not None],
    }
    figure, axes = blank(7.2, 3.4)
    drawn = 0
    for name, values in costs.items():
        known = sorted((value for value in values if value), reverse=True)
        if known:
            shares = [(rank + 1) / len(costed) for rank in range(len(known))]
            axes.step(known, shares, where="post", color=COLOURS[name], label=ARMS[name])
            drawn += 1
    if not drawn:
        return ""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("USD")
    axes.set_ylabel(f"share of {len(costed)} units that cost as much")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.2%}" if share < 0.01 else f"{share:.0%}"))
    axes.legend(frameon=False, fontsize=8)
    return svg(figure, "tails")
