"""Plots of a calibration as SVG text: the sweep of one setting, all settings tried, what the score tells. Needs matplotlib."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from turnout.evaluate.calibration.figures import Side
from turnout.evaluate.calibration.result import Calibration, Point
from turnout.evaluate.report.plots import COLOURS
from turnout.pages.plot import PERCENT, blank, svg

_TRAIN, _HELD_OUT, _COST = "#1d4ed8", "#c2410c", "#6b7280"


def swept(found: Calibration) -> tuple[str, tuple[tuple[float, Point], ...]]:
    """The setting with the most values while all others are as chosen (else as in force), and the points by its value; ("", ())
    where none has two."""
    around = found.chosen or found.in_force
    best: tuple[str, tuple[tuple[float, Point], ...]] = ("", ())
    for name in found.in_force:
        by: dict[float, Point] = {}
        for point in found.points:
            whole = {**found.in_force, **point.settings}
            if all(whole[other] == around[other] for other in around if other != name):
                by.setdefault(float(whole[name]), point)
        if len(by) >= 2 and len(by) > len(best[1]):
            best = name, tuple(sorted(by.items()))
    return best


def sweep_plot(found: Calibration) -> str:
    """Tasks lost on both sides, and cost, against the values of one setting; "" where none was swept."""
    name, line = swept(found)
    if not line:
        return ""
    figure, axes = blank(7.2, 4.0)
    values = [value for value, _ in line]
    for side, colour, said in (("train", _TRAIN, "tasks to choose by"), ("held_out", _HELD_OUT, "held-out tasks")):
        of: list[Side] = [getattr(point, side) for _, point in line]
        axes.plot(values, [one.lost for one in of], "o-", color=colour, markersize=4, label=f"lost, {said}")
    bound = found.constraint.max_loss
    axes.axhline(bound, color="#b91c1c", linewidth=1, linestyle="--", label="the bound")
    marked = [(value, point) for value, point in line if point.chosen or point.in_force]
    for value, point in marked:
        axes.axvline(value, color=COLOURS["routed"] if point.chosen else "#9ca3af", linewidth=1, linestyle=":")
        at = (value, axes.get_ylim()[1])
        said = "chosen" if point.chosen else "in force"
        right = value > (values[0] + values[-1]) / 2
        place, side = ((-3, -10), "right") if right else ((3, -10), "left")
        axes.annotate(said, at, xytext=place, textcoords="offset points", fontsize=8, ha=side)
    costs = [(value, point.held_out.cost_usd) for value, point in line if point.held_out.cost_usd is not None]
    handles = axes.get_legend_handles_labels()[0]
    if costs:
        money = axes.twinx()
        money.spines[["top"]].set_visible(False)
        (drawn,) = money.plot(*zip(*costs, strict=True), color=_COST, linewidth=1, label="USD a unit, held out (right)")
        money.set_ylabel("USD a unit")
        handles = [*handles, drawn]
    axes.set_xlabel(name)
    axes.set_ylabel("tasks lost")
    axes.yaxis.set_major_formatter(PERCENT)
    figure.legend(handles=handles, frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    return svg(figure, "sweep")


def settings_plot(found: Calibration) -> str:
    """Tasks lost against cost of every setting on the tasks to choose by, and of the marked ones held out; "" without costs."""
    known = [point for point in found.points if point.train.cost_usd is not None]
    if not known:
        return ""
    figure, axes = blank(7.2, 4.0)
    for allowed, colour, said in ((True, "#1b7f4d", "keeps the bound"), (False, "#d1d5db", "does not")):
        of = [point for point in known if point.allowed == allowed]
        _dots(axes, [point.train for point in of], ".", colour, said)
    for point in known:
        if point.chosen or point.in_force:
            said = "chosen" if point.chosen else "in force"
            _dots(axes, [point.train], "o", COLOURS["routed"] if point.chosen else "#374151", f"{said}, to choose by")
            _dots(axes, [point.held_out], "D", COLOURS["routed"] if point.chosen else "#374151", f"{said}, held out")
    axes.axhline(found.constraint.max_loss, color="#b91c1c", linewidth=1, linestyle="--")
    axes.set_xlabel("USD a unit")
    axes.set_ylabel("tasks lost")
    axes.yaxis.set_major_formatter(PERCENT)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    return svg(figure, "settings")


def reliability_plot(found: Calibration) -> str:
    """How many runs fail by their highest score, with intervals; "" where the router gives no score."""
    bins = [one for one in found.reliability if one.n]
    if not bins:
        return ""
    figure, axes = blank(7.2, 4.0)
    for of, colour, shift, said in (
        ("failed", "#6b7280", -0.01, "the efficient run failed"),
        ("lost", "#b91c1c", 0.01, "and the capable one did not"),
    ):
        figures = [(one.score if one.score is not None else one.low, getattr(one, of)) for one in bins]
        axes.errorbar(
            [score + shift for score, _ in figures],
            [figure.value for _, figure in figures],
            yerr=[[f.value - f.low for _, f in figures], [f.high - f.value for _, f in figures]],
            fmt="o-",
            color=colour,
            markersize=5,
            capsize=2,
            label=said,
        )
    for one in bins:
        axes.annotate(f"n {one.n}", (one.score or one.low, 1.02), fontsize=8, ha="center", color="#6b7280")
    axes.set_ylim(-0.03, 1.09)
    axes.set_xlabel("highest score in the run (positive = capable)")
    axes.set_ylabel("share of held-out units")
    axes.yaxis.set_major_formatter(PERCENT)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    return svg(figure, "reliability")


def _dots(axes: Axes, sides: Sequence[Side], marker: str, colour: str, said: str) -> None:
    points = [(one.cost_usd, one.lost) for one in sides if one.cost_usd is not None]
    if points:
        axes.plot(*zip(*points, strict=True), marker, color=colour, label=said)
