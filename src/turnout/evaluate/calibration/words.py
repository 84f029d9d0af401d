"""What a calibration says: a verdict in a sentence, and what a reader has to know beside it. Pure."""

from collections.abc import Mapping

from turnout.evaluate.calibration.figures import Judged
from turnout.evaluate.calibration.result import Calibration, Result
from turnout.evaluate.calibration.settings import Number, Settings
from turnout.evaluate.words import dollars, percent, points
from turnout.statistics.interval import Interval


def judgement(found: Calibration, changes: Settings | None) -> tuple[Result, str]:
    """Whether the chosen settings are better than those in force, on the held-out tasks. `changes`: what differs, None = no
    point is allowed."""
    bound = f"{found.constraint.max_loss:.1%}"
    if changes is None:
        least = min(found.points, key=lambda point: point.train.lost)
        return "none allowed", (
            f"None allowed: no setting loses at most {bound} of the tasks to choose by; the least is {least.train.lost:.1%} "
            f"({said(least.settings) or 'as in force'})."
        )
    if not changes:
        return "not better", (
            "Not better than what you have: of the settings tried, those in force are the ones to choose. "
            f"{_losing(found)}"
        )
    against = found.against["in_force"]
    was = ", ".join(f"{name} {_number(found.in_force[name])}" for name in changes)
    chosen = f"{said(changes)} (was {was})"
    cheaper = against.cost_usd.high is not None and against.cost_usd.high < 0
    safer = (found.held_out["in_force"].lost.value or 0.0) > found.constraint.max_loss and (
        against.lost.high or 0.0
    ) < 0
    cost = "costs are not known" if against.cost_usd.value is None else f"cost {_change(against.cost_usd)} a unit"
    shown = f"on held-out tasks {cost}, success {points(against.success)}, against what is in force. {_losing(found)}"
    theirs = found.held_out["in_force"].lost
    if (theirs.value or 0.0) > found.constraint.max_loss:
        shown += f" What is in force loses {percent(theirs)}."
    if not found.holds:
        return "not better", f"Not better than what you have: {chosen} was chosen, but does not keep its bound; {shown}"
    if safer or cheaper:
        how = "cheaper" if cheaper else "it keeps the bound, which what is in force does not"
        return "better", f"Better than what you have ({how}): {chosen}; {shown}"
    more = ""
    if against.tasks_needed is not None and against.tasks_needed > len(found.split.held_out):
        more = f" About {against.tasks_needed - len(found.split.held_out):,} more held-out tasks would settle the cost."
    return "not better", f"Not better than what you have, as far as can be told: {chosen}; {shown}{more}"


def _losing(found: Calibration) -> str:
    """Whether the bound holds on the held-out tasks, and how surely."""
    name = "chosen" if "chosen" in found.held_out else "in_force"
    lost, bound = found.held_out[name].lost, found.constraint.max_loss
    if lost.value is None or lost.high is None or lost.low is None:
        return "Tasks lost are not known."
    word = "surely within" if lost.high <= bound else "within" if lost.value <= bound else "beyond"
    open_ = ", though the interval reaches beyond" if lost.value <= bound < lost.high else ""
    return f"Tasks lost against the capable model: {percent(lost)}, {word} {bound:.1%}{open_}."


def _change(cost: Interval) -> str:
    assert cost.value is not None
    if cost.value == cost.low == cost.high == 0:
        return "unchanged"
    sign = "-" if cost.value < 0 else "+"
    bounds = "" if cost.low is None or cost.high is None else f" [{cost.low:+.3g} {cost.high:+.3g}]"
    return f"{sign}{dollars(abs(cost.value))}{bounds}"


def said(settings: Mapping[str, Number]) -> str:
    """Settings as they read."""
    return ", ".join(f"{name} {_number(value)}" for name, value in settings.items())


def _number(value: Number) -> str:
    return f"{value:g}"


def notes(found: Calibration) -> tuple[str, ...]:
    """What a reader has to know."""
    data, told = found.data, []
    if data.damaged:
        told.append(f"{data.damaged:,} of {data.rows:,} rows could not be read and are left out")
    if data.n_cost < data.n:
        told.append(
            f"costs are known for both models in {data.n_cost} of {data.n} units; the cost figures are of those, nothing is "
            "filled in"
        )
    if not data.n_cost:
        told.append("no costs are known: chosen is what moves fewest runs to the capable model")
    if data.n > data.tasks:
        told.append(f"{data.n} units are {data.tasks} tasks: split and intervals go by tasks")
    lost: Judged | None = found.held_out.get("chosen")
    if lost is not None and 1 / len(found.split.held_out) > found.constraint.max_loss > 0:
        told.append(
            f"{len(found.split.held_out)} held-out tasks cannot show a loss as small as {found.constraint.max_loss:.1%}: one "
            f"task is {1 / len(found.split.held_out):.1%}"
        )
    mix = found.against.get("random_mix")
    if mix is not None and mix.success.low is not None and mix.success.low <= 0:
        told.append(
            f"a random mix of the two models at the same cost is not surely worse: success {points(mix.success)} against it"
        )
    if found.refused:
        told.append(f"{found.refused} settings were refused by the router and not tried")
    if not found.reliability:
        told.append("this router gives no scores, so nothing is said of how reliable they are")
    return tuple(told)
