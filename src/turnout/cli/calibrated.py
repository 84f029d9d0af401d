"""How `turnout calibrate` prints what it found, for people."""

from typing import TYPE_CHECKING

from turnout.cli import output
from turnout.evaluate.calibration.words import said
from turnout.evaluate.words import ARMS, dollars, percent, points

if TYPE_CHECKING:
    from turnout.evaluate.calibration.result import Calibration

_NAMES = {"chosen": "chosen", "in_force": "in force", **ARMS}
SHOWN = 12
"""Points that are printed."""


def print_calibration(found: "Calibration") -> None:
    """Print the verdict, how it was judged, and what it rests on."""
    data, bound = found.data, found.constraint
    output.emit_text(found.verdict + "\n")
    output.emit_text(f"route {found.route} ({found.router}), in force: {said(found.in_force)}")
    output.emit_text(f"{data.n} units of {data.tasks} tasks, costs known for {data.n_cost}; {found.split.words}")
    heavy = [f"{name or 'others'} {weight:g}" for name, weight in bound.loss_weights.items() if weight != 1]
    weights = f"; a lost task counts: {', '.join(heavy)}" if heavy else ""
    output.emit_text(
        f"bound: {bound.max_loss:.1%} of tasks lost against the capable model, by the {bound.by}{weights}\n"
    )
    output.emit_text("Held-out tasks, judged once")
    _judged(found)
    _points(found)
    _reliability(found)
    for note in found.notes:
        output.emit_text(f"note: {note}")
    output.emit_text(f"{found.assumption}\n{found.method}\ndata {data.digest}")


def _judged(found: "Calibration") -> None:
    table = output.table("", "success", "USD a unit", "tasks lost", "moved", "chosen less this: success", "USD")
    for name, one in found.held_out.items():
        against = found.against.get(name)
        cost = one.cost_usd
        less = ("", "")
        if against is not None:
            c = against.cost_usd
            less = (
                points(against.success),
                "unknown" if c.value is None else f"{c.value:+.3f} [{c.low:+.3f} {c.high:+.3f}]",
            )
        table.row(
            _NAMES[name],
            percent(one.success),
            dollars(cost.value, cost.low, cost.high),
            percent(one.lost),
            percent(one.moved),
            *less,
        )
    table.print()


def _points(found: "Calibration") -> None:
    """The frontier of what was tried, on the tasks to choose by: what is cheapest for each share of tasks lost."""
    costed = [point for point in found.points if point.train.cost_usd is not None]
    ordered = sorted(costed, key=lambda point: (point.train.lost, point.train.cost_usd or 0.0))
    best, least = [], float("inf")
    for point in ordered:
        if (point.train.cost_usd or 0.0) < least:
            least = point.train.cost_usd or 0.0
            best.append(point)
    own = [point for point in found.points if (point.chosen or point.in_force) and point not in best]
    shown = best if len(best) <= SHOWN else [best[n * (len(best) - 1) // (SHOWN - 1)] for n in range(SHOWN)]
    output.emit_text(
        f"{len(found.points)} settings tried; the cheapest for each share of tasks lost, on the tasks to choose by"
    )
    table = output.table("", "tasks lost", "up to", "USD a unit", "success", "moved", "changed settings")
    for point in sorted([*shown, *own], key=lambda point: point.train.lost):
        mark = "chosen" if point.chosen else "in force" if point.in_force else "allowed" if point.allowed else ""
        one = point.train
        figures = (
            f"{one.lost:.1%}",
            f"{point.lost_high:.1%}",
            dollars(one.cost_usd),
            f"{one.success:.1%}",
            f"{one.moved:.1%}",
        )
        table.row(mark, *figures, said(point.settings) or "as in force")
    table.print()


def _reliability(found: "Calibration") -> None:
    if not found.reliability:
        return
    output.emit_text("Runs by the highest score the chosen router gives them, held out: how many of them failed")
    table = output.table("score", "runs", "mean", "efficient run failed", "only capable solved")
    for one in found.reliability:
        if one.n:
            table.row(
                f"{one.low:+.1f} to {one.high:+.1f}",
                str(one.n),
                f"{one.score:+.2f}",
                percent(one.failed),
                percent(one.lost),
            )
    table.print()
