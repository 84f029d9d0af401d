"""Plots of training and evaluation: means with intervals, curves by step, where the time went, P. Needs matplotlib."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes

from turnout.pages.plot import PERCENT, panels, svg
from turnout.train.bench import Line
from turnout.train.credit import Calibration, Route
from turnout.train.evaluation import Mean
from turnout.train.results import Run

MEANS = {
    "f1": "F1",
    "em": "exact match",
    "shortcut_share": "right without the evidence",
    "p": "P, the path's F1",
    "coverage": "gold covered",
    "uar": "answer in no evidence",
    "turns": "turns",
    "lookups": "look-ups",
}
"""Figures of a line that are drawn and listed, and what they are called."""
SHARES = ("f1", "em", "shortcut_share", "p", "coverage", "uar")

PROGRESS = {
    "path/correct": "right answers",
    "path/coverage": "gold covered, C",
    "path/p": "P, the path's F1",
    "path/lookups": "look-ups, one turn less than all",
    "reward": "reward",
    "completions/mean_length": "tokens of a trajectory",
}
TEACHING = {
    "teacher/kl": "KL to the teacher, all tokens",
    "teacher/kl_reasoning": "KL, reasoning",
    "teacher/kl_query": "KL, queries",
    "teacher/kl_answer": "KL, answers",
    "teacher/kl_other": "KL, other tokens",
    "teacher/lambda": "weight of the teacher, lambda",
}
"""Metrics of a step, and what they are called; natural units, KL in nats."""

_ROUTES = {
    Route.FAITHFUL: ("right, by the evidence", "#1b7f4d"),
    Route.SHORTCUT: ("right without it", "#c2410c"),
    Route.EVIDENCE: ("evidence, wrong answer", "#1d4ed8"),
    Route.FAILURE: ("neither", "#9ca3af"),
}
_PARTS = {
    "model": ("the model's turns", "#1b7f4d"),
    "retrieval": ("search", "#1d4ed8"),
    "teacher": ("teacher", "#7b3fa0"),
    "student_forward": ("student beside the teacher", "#c2410c"),
    "rest": ("loss, update and the rest", "#9ca3af"),
}
_MOST = 20
"""Runs that have a colour of their own; further ones take the first colours again."""


def means_plot(lines: Sequence[Line], salt: str) -> str:
    """The lines of one setting: a panel for each figure, a group for each world, a bar for each arm with its 95 % interval."""
    worlds = list(dict.fromkeys(line.world for line in lines))
    arms = list(dict.fromkeys(line.title for line in lines))
    shown = [name for name in MEANS if any(getattr(line, name) is not None for line in lines)]
    figure, axes = panels(len(shown))
    width = 0.8 / len(arms)
    for one, name in zip(axes, shown, strict=True):
        for place, arm in enumerate(arms):
            found = [(worlds.index(line.world), getattr(line, name)) for line in lines if line.title == arm]
            known: list[tuple[float, Mean]] = [(x + (place + 0.5) * width - 0.4, m) for x, m in found if m is not None]
            one.bar(
                [x for x, _ in known],
                [mean.value for _, mean in known],
                width=0.9 * width,
                color=_colour(place),
                yerr=[[m.value - m.low for _, m in known], [m.high - m.value for _, m in known]],
                error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#374151"},
                label=arm if one is axes[0] else None,
            )
        one.set_xticks(range(len(worlds)), worlds, fontsize=8, rotation=20 if len(worlds) > 4 else 0)
        one.set_title(MEANS[name], fontsize=9)
        one.set_ylim(bottom=0)
        if name in SHARES:
            one.yaxis.set_major_formatter(PERCENT)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=min(5, len(arms)))
    return svg(figure, salt)


def routes_plot(runs: Sequence[Run]) -> str:
    """What kinds of outcomes the trajectories of each step were, a panel for each run; "" without any."""
    known = [run for run in runs if any(f"route/{Route.FAITHFUL}" in step for step in run.steps)]
    if not known:
        return ""
    figure, axes = panels(len(known))
    for one, run in zip(axes, known, strict=True):
        steps = [step for step in run.steps if f"route/{Route.FAITHFUL}" in step]
        shares = [[step.get(f"route/{route}", 0.0) for step in steps] for route in _ROUTES]
        names = [said if one is axes[0] else "" for said, _ in _ROUTES.values()]
        colours = [colour for _, colour in _ROUTES.values()]
        one.stackplot([step["step"] for step in steps], *shares, labels=names, colors=colours, linewidth=0)
        one.set_title(run.name, fontsize=9)
        one.set_ylim(0, 1)
        one.yaxis.set_major_formatter(PERCENT)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    return svg(figure, "routes")


def curves_plot(runs: Sequence[Run], metrics: Mapping[str, str], salt: str) -> str:
    """Metrics by step: a panel for each, a line for each run; "" where no run has any."""
    shown = [name for name in metrics if any(name in step for run in runs for step in run.steps)]
    if not shown:
        return ""
    figure, axes = panels(len(shown))
    named: set[str] = set()
    for one, name in zip(axes, shown, strict=True):
        for place, run in enumerate(runs):
            points = [(step["step"], step[name]) for step in run.steps if step.get(name) is not None]
            if points:
                label = None if run.name in named else run.name
                one.plot(*zip(*points, strict=True), color=_colour(place), linewidth=1.2, label=label)
                named.add(run.name)
        one.set_title(metrics[name], fontsize=9)
        one.set_xlabel("step", fontsize=8)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    return svg(figure, salt)


def parts(run: Run) -> dict[str, float]:
    """Seconds of a mean step by part, which add up to the whole step."""
    mean = {
        name: sum(step.get(f"seconds/{name}", 0.0) for step in run.steps) / len(run.steps)
        for name in ("rollout", "retrieval", "teacher", "student_forward")
    }
    whole = sum(step["step_time"] for step in run.steps) / len(run.steps)
    rest = whole - mean["rollout"] - mean["teacher"] - mean["student_forward"]
    # Searches are made within rollouts.
    named = {"model": mean.pop("rollout") - mean["retrieval"], **mean, "rest": rest}
    return {name: max(0.0, seconds) for name, seconds in named.items()}


def time_plot(runs: Sequence[Run]) -> str:
    """Where the time of a mean step went, a bar for each run; "" without any step."""
    known = [run for run in runs if run.steps]
    if not known:
        return ""
    figure, (axes,) = panels(1, 1, 7.2, 1.2 + 0.32 * len(known))
    axes.grid(visible=False)
    left = [0.0] * len(known)
    took = [parts(run) for run in known]
    for name, (said, colour) in _PARTS.items():
        seconds = [one[name] for one in took]
        axes.barh(range(len(known)), seconds, left=left, color=colour, height=0.65, label=said)
        left = [a + b for a, b in zip(left, seconds, strict=True)]
    axes.set_yticks(range(len(known)), [run.name for run in known], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("seconds a step")
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    return svg(figure, "time")


def paths_plot(found: Mapping[str, Calibration]) -> str:
    """How P is spread and where theta_P would be put, a panel for each set of answers."""
    figure, axes = panels(len(found))
    for one, (name, calibration) in zip(axes, found.items(), strict=True):
        _histogram(one, calibration)
        one.set_title(name, fontsize=9)
    return svg(figure, "paths")


def _histogram(axes: Axes, found: Calibration) -> None:
    widths = [high - low for low, high in zip(found.edges, found.edges[1:], strict=False)]
    axes.bar(
        found.edges[:-1], found.counts, width=widths, align="edge", color="#93c5fd", edgecolor="white", linewidth=0.5
    )
    axes.axvline(found.suggested, color="#c2410c", linewidth=1.2, linestyle="--")
    at = (found.suggested, max(found.counts))
    axes.annotate(f" {found.suggested:.3f}", at, fontsize=8, color="#c2410c", va="top")
    axes.set_xlabel("P", fontsize=8)
    axes.set_ylabel("answers", fontsize=8)


def _colour(place: int) -> str:
    return str(matplotlib.colors.to_hex(matplotlib.colormaps["tab20"](place % _MOST)))
