"""The report of a calibration: the sweep, the choice, its judgement on held-out tasks, what the score tells. Needs matplotlib."""

from collections.abc import Sequence
from html import escape

from turnout.evaluate.calibration.reliability import EDGES, Bin
from turnout.evaluate.calibration.result import Calibration, Result, Tried
from turnout.evaluate.calibration.words import said
from turnout.evaluate.quadrants import DEFINITIONS, QUADRANTS
from turnout.evaluate.report.calibration_plots import reliability_plot, settings_plot, sweep_plot, swept
from turnout.evaluate.words import ARMS, dollars, percent, points
from turnout.pages.page import (
    Cell,
    Page,
    Preset,
    Rows,
    Section,
    Tone,
    absent,
    defined,
    link,
    listed,
    render,
    table,
    tile,
)
from turnout.statistics.interval import Interval

_TONES: dict[Result, Tone] = {"better": "good", "not better": "open", "none allowed": "bad"}
_NAMES = {**ARMS, "chosen": "chosen", "in_force": "in force", "random_mix": "random mix at the same cost"}


def html(found: Calibration) -> str:
    """The page, complete."""
    name, _ = swept(found)
    sections = [
        Section(
            f"The sweep of {name}" if name else "The sweep",
            sweep_plot(found) or absent("One value only."),
            _others(found, name),
        ),
        Section("All settings tried", settings_plot(found) or absent("Costs are not known."), beside=True),
        Section("Judged on held-out tasks", _judged(found), escape(found.assumption)),
        Section("Chosen less each of them, held out", _against(found)),
        Section(
            "What the score tells",
            reliability_plot(found) or absent("The router gives no score."),
            "Of held-out units, by the highest score that the chosen router gives in the efficient run.",
        ),
        Section("Score by score", _reliability(found), beside=True),
        Section("Notes", listed(found.notes)),
        Section("Definitions", defined(_definitions(found))),
    ]
    arms = " · ".join(f"<b>{name}</b> {escape(str(arm))}" for name, arm in found.data.arms.items())
    return render(
        Page(
            title=f"Calibration of {found.route}",
            kicker=f"Which settings for route {found.route}?",
            verdict=found.verdict,
            tone=_TONES[found.result],
            who=f"{arms}<br>{link(f'{found.data.n} units', 'units')} of {found.data.tasks} tasks: {escape(found.split.words)}",
            tiles=_tiles(found),
            sections=sections,
            tables=(_units(found), _points(found)),
            presets=(
                Preset("all units", "units"),
                Preset("to choose by", "units", {"side": "train"}),
                Preset("held out", "units", {"side": "held_out"}),
                *(Preset(f"held out, {name}", "units", {"side": "held_out", "quadrant": name}) for name in QUADRANTS),
                Preset("settings tried", "points"),
            ),
            figures=found,
        )
    )


def _others(found: Calibration, name: str) -> str:
    around = found.chosen or found.in_force
    others = {other: value for other, value in around.items() if other != name}
    which = "chosen" if found.chosen else "in force"
    return escape(f"All others as {which}: {said(others)}." if name and others else "")


def _tiles(found: Calibration) -> str:
    tiles = []
    for name in ("chosen", "in_force", "capable", "efficient"):
        one = found.held_out.get(name)
        if one is None:
            continue
        settings = {"chosen": found.chosen, "in_force": found.in_force}.get(name)
        lines = [
            (link(_share(one.success), "units", side="held_out"), f"succeed, {_bounds(one.success)}"),
            (link(dollars(one.cost_usd.value), "units", side="held_out", costed=True), "a unit"),
            (link(_share(one.lost), "units", **_lost(name, "held_out")), f"lost, {_bounds(one.lost)}"),
        ]
        tiles.append(tile(f"{_NAMES[name]}: {said(settings)}" if settings else _NAMES[name], lines))
    return "".join(tiles)


def _share(figure: Interval) -> str:
    return "unknown" if figure.value is None else f"{figure.value:.1%}"


def _bounds(figure: Interval) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f"{figure.low * 100:.1f} to {figure.high * 100:.1f} %"


def _judged(found: Calibration) -> str:
    rows = []
    for side, judged in (("held_out", found.held_out), ("train", found.train)):
        for name, one in judged.items():
            cost = one.cost_usd
            rows.append(
                (
                    "held out" if side == "held_out" else "to choose by",
                    escape(_NAMES.get(name, name)),
                    link(percent(one.success), "units", side=side),
                    link(dollars(cost.value, cost.low, cost.high), "units", side=side, costed=True),
                    link(percent(one.lost), "units", **_lost(name, side)),
                    percent(one.moved),
                )
            )
    return table(("tasks", "", "success", "USD a unit", "lost", "moved to capable"), rows)


def _lost(name: str, side: str) -> dict[str, Cell]:
    """The units that a way of choosing loses, where they have something in common: those of LOSS that it leaves to the end."""
    if name in ("chosen", "in_force"):
        return {"side": side, "quadrant": "LOSS", name: None}
    return {"side": side, "quadrant": "LOSS"} if name == "efficient" else {"side": side}


def _against(found: Calibration) -> str:
    if not found.against:
        return absent("Nothing was chosen.")
    rows = []
    for name, one in found.against.items():
        cost = one.cost_usd
        money = "unknown" if cost.value is None else f"{cost.value:+.4g} [{cost.low:+.4g} {cost.high:+.4g}]"
        # The mix costs the same by how it is made, so no number of tasks would tell.
        needed = "" if one.tasks_needed is None or name == "random_mix" else f"{one.tasks_needed:,}"
        rows.append((escape(_NAMES.get(name, name)), points(one.success), money, points(one.lost), needed))
    return table(("", "success", "USD a unit", "lost", "tasks to settle the cost"), rows)


def _reliability(found: Calibration) -> str:
    rows = [
        (
            _bin(one.low, one.high),
            link(str(one.n), "units", side="held_out", bin=_bin(one.low, one.high)),
            "" if one.score is None else f"{one.score:.2f}",
            percent(one.failed) if one.n else "",
            percent(one.lost) if one.n else "",
        )
        for one in found.reliability
    ]
    return table(("score", "units", "mean", "efficient failed", "only capable succeeded"), rows) if rows else ""


def _bin(low: float, high: float) -> str:
    return f"{low:g} to {high:g}"


def _bin_of(score: float | None, bins: Sequence[Bin]) -> str:
    if score is None:
        return ""
    one = next((one for one in bins if one.low < score <= one.high or one.low == score == EDGES[0]), None)
    return _bin(one.low, one.high) if one is not None else ""


def _definitions(found: Calibration) -> dict[str, str]:
    bound = found.constraint
    weights = ", ".join(f"{weight:g} ({name or 'all others'})" for name, weight in bound.loss_weights.items())
    return {
        "lost": "units that the capable model solves and these settings do not, as a share of all",
        "the bound": f"at most {bound.max_loss:.1%} lost on the tasks to choose by, by the {bound.by}; weights {weights}",
        "moved": "units that the settings ever move to the capable model",
        "method": found.method,
        "data": f"{found.data.files}, {found.data.rows:,} rows, {found.data.damaged:,} damaged; {found.data.digest}",
        **{name: DEFINITIONS[name] for name in QUADRANTS},
    }


def _units(found: Calibration) -> Rows:
    columns = (*Tried.__struct_fields__, "costed", "bin")
    rows: list[tuple[Cell, ...]] = []
    for one in found.units:
        fields = tuple(getattr(one, name) for name in Tried.__struct_fields__)
        costed = one.capable_usd is not None and one.efficient_usd is not None
        rows.append((*fields, costed, _bin_of(one.score, found.reliability)))
    words = "A row is a task in a trial; in_force and chosen: after how many replies of the efficient run these settings move."
    return Rows("units", columns, rows, ("capable_line", "efficient_line"), found.data.files, words)


def _points(found: Calibration) -> Rows:
    names = tuple(found.in_force)
    sides = tuple(
        f"{side}_{name}" for side in ("train", "held_out") for name in ("success", "cost_usd", "lost", "moved")
    )
    rows: list[tuple[Cell, ...]] = []
    for number, one in enumerate(found.points):
        whole = {**found.in_force, **one.settings}
        figures = [
            getattr(getattr(one, s), n) for s in ("train", "held_out") for n in ("success", "cost_usd", "lost", "moved")
        ]
        rows.append(
            (number, *(whole[n] for n in names), *figures, one.lost_high, one.allowed, one.chosen, one.in_force)
        )
    columns = ("point", *names, *sides, "lost_high", "allowed", "chosen", "in_force")
    return Rows("points", columns, rows, ("point",), "the sweep", "A row is a setting that was tried.")
