"""A plot of the figures: a panel per set of labels, a line per question and measure, a point with its interval per contender."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = ("#1f6f8b", "#c8641e")


def plot(report: dict[str, Any], wanted: dict[tuple[str, str], float], folder: Path) -> list[Path]:
    """Draw `report` (see signals.py) into `folder` as SVG and PNG. `wanted`: marks by question and measure."""
    sets = [one for one in report["sets"] if one["results"] or one["windows"]]
    lines = list(dict.fromkeys((row["question"], row["measure"]) for one in sets for row in one["rows"]))
    height = 0.34 * len(lines) + 1.6
    figure, axes = pyplot.subplots(1, len(sets), sharey=True, squeeze=False, figsize=(4.6 + 3.4 * len(sets), height))
    for panel, one in zip(axes[0], sets, strict=True):
        for row in one["rows"]:
            at = len(lines) - 1 - lines.index((row["question"], row["measure"]))
            if (row["question"], row["measure"]) in wanted:
                mark = wanted[row["question"], row["measure"]]
                panel.plot([mark, mark], [at - 0.35, at + 0.35], color="#999999", linewidth=1.2, zorder=1)
            for place, name in enumerate(report["contenders"]):
                found = row["shares"].get(name)
                if found and found["value"] is not None:
                    level = at + (0.13 if not place else -0.13)
                    panel.plot([found["low"], found["high"]], [level, level], color=COLOURS[place], linewidth=1.6)
                    panel.plot(found["value"], level, "o", color=COLOURS[place], markersize=5)
        panel.set_title(f"{one['name']}\n{one['results']} results, {one['windows']} windows", fontsize=10)
        panel.set_xlim(-0.02, 1.02)
        panel.set_ylim(-0.6, len(lines) - 0.4)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_yticks(
        range(len(lines)), [f"{question}: {measure}" for question, measure in lines[::-1]], fontsize=9
    )
    handles = [
        pyplot.Line2D([], [], color=c, marker="o", label=n) for c, n in zip(COLOURS, report["contenders"], strict=False)
    ]
    handles.append(
        pyplot.Line2D([], [], color="#999999", marker="|", linestyle="", markersize=11, label="wanted at least")
    )
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.06 if height > 5 else 0.09, 1, 1))
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / "signals.svg", folder / "signals.png"]
    for path in made:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return made
