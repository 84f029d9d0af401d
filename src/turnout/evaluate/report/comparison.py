"""The report of a comparison: the verdict first, then every figure with the units it was made from. Needs matplotlib."""

from collections.abc import Iterable, Sequence
from html import escape

from turnout.evaluate.baselines import Baseline, is_costed
from turnout.evaluate.evaluation import Category, Evaluation
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import QUADRANTS, oracle, quadrant
from turnout.evaluate.report.plots import frontier_plot, tails_plot, waterfall_plot
from turnout.evaluate.switching import ASSUMPTION as FIRST_MOVE
from turnout.evaluate.verdict import Answer
from turnout.evaluate.words import ARMS, arms_of, counted_words, dollars, percent, points
from turnout.pages.page import (
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

COLUMNS = (
    "unit", "task", "trial", "category", "quadrant", "costed", "oracle",
    "capable line", "capable success", "capable USD",
    "efficient line", "efficient success", "efficient USD",
    "routed line", "routed success", "routed USD",
)  # fmt: skip
"""Of the units. `oracle`: whose run it takes. Lines count from 1 in the outcome file."""

KEY = ("capable line", "efficient line", "routed line")

_TONES: dict[Answer, Tone] = {"pays": "good", "does not pay": "bad", "not enough data": "open"}
_HOLDS = {True: "yes", False: "no", None: "open"}


def html(found: Evaluation, units: Sequence[Unit], source: str = "") -> str:
    """The page, complete. `source`: where the units' lines stand; the file's name if absent."""
    tails = tails_plot(found, units) or absent("No costs, no tails.")
    sections = [
        Section(
            "Success and cost",
            frontier_plot(found) or absent("No frontier: no unit has a known cost for every arm."),
            _frontier_caption(found),
        ),
        Section("Who solves what", _quadrants(found), beside=True),
        Section("Baselines", _baselines(found)),
        Section(
            "Where the money goes",
            waterfall_plot(found) or absent("No costs, no waterfall."),
            "From capable-only to the router (else the oracle), by set.",
        ),
        Section("Tails", tails, beside=True),
        Section("How costs are spread", _tails(found)),
        Section("By category", _categories(found.categories)),
        Section("What the verdict rests on", _criteria(found) + _tests(found)),
        Section("Notes", listed(found.notes)),
        Section("Definitions", _definitions(found)),
        Section("What was read", _counted(found)),
    ]
    return render(
        Page(
            title=f"Does routing pay? {' and '.join(arm.model for arm in found.arms.values())}",
            kicker="Does routing pay?",
            verdict=found.verdict,
            tone=_TONES[found.decision.answer],
            who=_who(found),
            tiles=_tiles(found),
            sections=sections,
            tables=(_rows(units, source or found.counted.file),),
            presets=[
                Preset("all", "units"),
                Preset("costed", "units", {"costed": True}),
                *(Preset(name, "units", {"quadrant": name}) for name in QUADRANTS),
            ],
            figures=found,
        )
    )


def _who(found: Evaluation) -> str:
    arms = " · ".join(f"<b>{name}</b> {escape(str(arm))}" for name, arm in found.arms.items())
    units, costed = link(f"{found.n} units", "units"), _costed(str(found.n_cost))
    return f"{arms}<br>{units} of {found.n_tasks} tasks; costs known for {costed}"


def _tiles(found: Evaluation) -> str:
    shown = [name for name in ("capable", "efficient", "routed", "oracle") if getattr(found, name) is not None]
    return "".join(_tile(ARMS[name], getattr(found, name), found) for name in shown)


def _tile(name: str, one: Baseline, found: Evaluation) -> str:
    cost = one.cost_usd
    unit = "a unit" if found.n_cost in (0, found.n) else f"a unit, of {found.n_cost} with costs"
    success = "unknown" if one.success.value is None else f"{one.success.value:.1%}"
    money = f"{unit}; {dollars(cost.per_completed.value)} a completed one"
    return tile(
        name,
        ((link(success, "units"), f"{_bounds(one.success)} succeed"), (_costed(dollars(cost.value)), money)),
    )


def _costed(said: str) -> str:
    return link(said, "units", costed=True)


def _bounds(figure: Interval) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f"{figure.low * 100:.1f} to {figure.high * 100:.1f} %"


def _frontier_caption(found: Evaluation) -> str:
    if found.frontier is None:
        return ""
    said = (
        f"n = {found.frontier.n} units whose costs are known for every arm, success too is of those. "
        "Oracles know outcomes beforehand; no router does."
    )
    if found.restarts.arms:
        said += f" {found.restarts.assumption[0].upper()}{found.restarts.assumption[1:]}; {found.restarts.weak_cost}."
    if found.routers:
        said += f" Routes are {FIRST_MOVE}."
    return escape(said)


def _quadrants(found: Evaluation) -> str:
    def cell(name: str, said: str) -> str:
        count = found.quadrants[name]  # type: ignore[index]  # one of the four
        own = [
            f"{arm} against itself {percent(getattr(one, name))}"
            for arm in ("capable", "efficient")
            if (one := getattr(found.control, arm, None)) is not None
        ]
        return (
            f"<td class={name}><b>{name}</b><p class=big>{link(str(count), 'units', quadrant=name)}</p><p "
            f"class=range>{percent(found.quadrant_shares[name])}"
            f"<br>{said}<br>{'<br>'.join(own) or 'no control'}</p></td>"
        )

    return (
        "<table class=matrix><tr><td></td><th>efficient succeeds<th>efficient fails</tr>"
        f"<tr><th>capable succeeds</th>{cell('SAFE', 'both succeed')}{cell('LOSS', 'a downgrade loses')}</tr>"
        f"<tr><th>capable fails</th>{cell('RESCUE', 'the cheaper one rescues')}{cell('HARD', 'both fail')}</tr></table>"
    )


def _baselines(found: Evaluation) -> str:
    heads = (
        "",
        "success",
        "USD a unit",
        "USD a completed one",
        "USD in all",
        "efficient share",
        "risk, points",
        "assumption",
    )
    rows = []
    for name, one in arms_of(found).items():
        cost, done = one.cost_usd, one.cost_usd.per_completed
        rows.append(
            (
                escape(name),
                link(percent(one.success), "units"),
                _costed(dollars(cost.value, cost.low, cost.high)),
                _costed(dollars(done.value, done.low, done.high)),
                _costed(dollars(cost.total.value, cost.total.low, cost.total.high)),
                percent(one.efficient_share),
                points(one.risk).replace(" points", ""),
                escape(one.assumption or "simulated, see the caption above"),
            )
        )
    weights = ", ".join(
        f"{weight:g} ({escape(name or 'all others')})" for name, weight in found.method.loss_weights.items()
    )
    said = f"<p>Risk: tasks lost against the capable model, weighted {weights}, less tasks gained.</p>"
    return table(heads, rows) + said


def _tails(found: Evaluation) -> str:
    heads = ("", "P50", "P90", "P95", "max", "mean", "mean without the dearest 1 %", "their share")
    rows = []
    for name, one in arms_of(found).items():
        tails = one.cost_usd.tails
        if tails is not None:
            money = (tails.p50, tails.p90, tails.p95, tails.max, one.cost_usd.value, tails.mean_without)
            share = "" if tails.dearest_share is None else f"{tails.dearest_share:.1%} ({tails.dearest} units)"
            rows.append((escape(name), *(_costed(dollars(value)) for value in money), share))
    return table(heads, rows)


def _categories(categories: Sequence[Category]) -> str:
    if not categories:
        return absent("The rows name no categories, or only one.")
    arms = [name for name in ("capable", "efficient", "routed", "oracle") if name in categories[0].arms]
    heads = (
        "category",
        "units",
        *arms,
        "SAFE",
        "LOSS",
        "RESCUE",
        "HARD",
        *(f"USD {name}" for name in arms),
        "loss weight",
    )
    rows = []
    for one in categories:
        rows.append(
            (
                escape(one.name or "(none)"),
                link(str(one.n), "units", category=one.name),
                *(percent(one.arms[name].success) for name in arms),
                *(link(str(n), "units", quadrant=name, category=one.name) for name, n in one.quadrants.items()),
                *(dollars(one.arms[name].cost_usd.value) for name in arms),
                f"{one.loss_weight:g}",
            )
        )
    return table(heads, rows)


def _criteria(found: Evaluation) -> str:
    heads = ("criterion", "has to be below", "difference", "holds", "tasks needed")
    rows = [
        (
            escape(one.name),
            f"{one.bound:g}",
            str(one.difference),
            _HOLDS[one.holds],
            "" if one.tasks_needed is None else f"{one.tasks_needed:,}",
        )
        for one in found.decision.criteria
    ]
    return table(heads, rows) + f"<p>{escape(found.decision.power)}.</p>"


def _tests(found: Evaluation) -> str:
    one = found.tests.mcnemar
    lines = [
        f"Capable above efficient: {points(found.success_difference)}; oracle above the better model: {points(found.headroom)}.",
    ]
    if one.p is not None and found.tests.sign_flip_p is not None:
        lines.append(
            f"{one.name}: p = {one.p:.3g} ({one.only_first} tasks only by capable, {one.only_second} only by efficient, "
            f"{one.pairs} tasks, first trials). Sign-flip permutation over tasks: p = {found.tests.sign_flip_p:.3g}."
        )
    if found.control is None:
        lines.append("No control: no model tried a task twice.")
    elif found.control.headroom_beyond_noise is not None:
        lines.append(
            "Oracle above the better model, less what it would gain from two runs of that model: "
            f"{found.control.headroom_beyond_noise * 100:+.1f} points."
        )
    if found.gap_closed is not None:
        closed = found.gap_closed
        lines.append(
            f"Of the way to the oracle: success {percent(closed.success)} from the better model, "
            f"{percent(closed.success_from_mix)} "
            f"from the random mix; cost {percent(closed.cost)} from capable-only. Judges: {percent(found.judge_share)} of "
            f"the cost."
        )
    for policy in found.off_policy or ():
        if policy.refused or policy.success is None:
            lines.append(f"Off-policy, {policy.policy}: refused, {policy.refused}.")
        else:
            success = policy.success
            lines.append(
                f"Off-policy, {policy.policy}, {policy.runs} logged runs: success IPS {percent(success.ips)}, doubly robust "
                f"{percent(success.doubly_robust)}."
            )
    return listed(lines)


def _definitions(found: Evaluation) -> str:
    method = found.method
    pairs = {
        **found.definitions,
        "intervals": f"{method.intervals}; {method.resamples:,} resamples, seed {method.seed}",
        "pairing": method.pairing,
        "percentiles": method.percentiles,
    }
    return defined(pairs)


def _counted(found: Evaluation) -> str:
    counted = found.counted
    lines = [f"{counted.file}: {counted_words(counted.rows, counted.damaged, counted.unknown_success)}"]
    lines += [f"line {line}: {reason}" for line, reason in counted.damaged_lines]
    lines += [f"{count} runs of {arm} without a partner" for arm, count in counted.left_over.items() if count]
    lines += [
        f"{count} runs of {name} whose cost is not known" for name, count in counted.unknown_cost.items() if count
    ]
    if counted.repeated:
        lines.append(f"{counted.repeated} runs that repeat task, trial and arm of an earlier line")
    return listed(lines)


def _rows(units: Iterable[Unit], source: str) -> Rows:
    rows = [
        (
            unit.number,
            unit.task,
            unit.trial,
            unit.category,
            quadrant(unit),
            is_costed(unit),
            "capable" if oracle(unit) is unit.capable else "efficient",
            *_run(unit.capable),
            *_run(unit.efficient),
            *_run(unit.routed),
        )
        for unit in units
    ]
    said = "A row is a task in a trial, run by every arm; lines are those of the outcome file."
    return Rows("units", COLUMNS, rows, KEY, source, said)


def _run(run: Outcome | None) -> tuple[int | None, bool | None, float | None]:
    return (None, None, None) if run is None else (run.line, run.success, run.cost_usd)
