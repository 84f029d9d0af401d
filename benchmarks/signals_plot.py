"""A plot of the figures: a panel per set of labels, a line per question and measure, a point with its interval per contender."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = ("#1f6f8b", "#c8641e")


def plot(report: dict[str, Any], wanted: dict[tuple[str, str], float], folder: Path) -> list[Path]:
    """Draw `report` (see signals.py) into `folder` as SVG and PNG: the figures, and the decisions by threshold.

    `wanted`: marks by question and measure.
    """
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
    made = [*_saved(figure, folder, "signals"), *_saved(_curves(report, sets), folder, "decisions")]
    pyplot.close("all")
    return made


def _saved(figure: Any, folder: Path, name: str) -> list[Path]:
    made = [folder / f"{name}.svg", folder / f"{name}.png"]
    for path in made:
        figure.savefig(path, dpi=120)
    return made


def _curves(report: dict[str, Any], sets: list[dict[str, Any]]) -> Any:
    """Capable model where needed against elsewhere, a point per threshold, the default marked."""
    sets = [one for one in sets if one["results"]]
    figure, axes = pyplot.subplots(1, len(sets), sharey=True, squeeze=False, figsize=(1.0 + 3.6 * len(sets), 4.4))
    for panel, one in zip(axes[0], sets, strict=True):
        for colour, name in zip(COLOURS, report["contenders"], strict=False):
            points = [at for at in one["curves"][name] if at["elsewhere"]["of"] and at["where needed"]["of"]]
            across = [at["elsewhere"]["value"] for at in points]
            upward = [at["where needed"]["value"] for at in points]
            panel.plot(across, upward, "o-", color=colour, markersize=4, label=name)
            default = [(x, y) for x, y, at in zip(across, upward, points, strict=True) if at["threshold"] == 0.5]
            for x, y in default:
                panel.plot(x, y, "o", color=colour, markersize=10, fillstyle="none")
        panel.set_title(one["name"], fontsize=10)
        panel.set_xlabel("capable model elsewhere", fontsize=9)
        panel.set_ylim(0, 1.02)
        panel.set_xlim(left=0)
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("capable model where needed", fontsize=9)
    axes[0][0].legend(frameon=False, fontsize=8, loc="lower right", title="ring: threshold 0.5", title_fontsize=8)
    figure.tight_layout()
    return figure
