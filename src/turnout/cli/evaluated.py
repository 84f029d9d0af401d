"""How `turnout evaluate` prints what it found, for people."""

from typing import TYPE_CHECKING

from turnout.cli import output
from turnout.evaluate.switching import ASSUMPTION as FIRST_MOVE
from turnout.evaluate.words import arms_of, counted_words, dollars, percent, points

if TYPE_CHECKING:
    from turnout.evaluate.evaluation import Evaluation


def print_evaluation(found: "Evaluation") -> None:
    """Print the verdict, the tables and what they rest on."""
    output.emit_text(found.verdict + "\n")
    for name, arm in found.arms.items():
        output.emit_text(f"{name:9}  {arm}")
    output.emit_text(f"{found.n} units of {found.n_tasks} tasks; costs known for {found.n_cost}\n")
    _baselines(found)
    _routers(found)
    _quadrants(found)
    _categories(found)
    _comparison(found)
    _off_policy(found)
    _criteria(found)
    for note in found.notes:
        output.emit_text(f"note: {note}")
    output.emit_text("\nDefinitions")
    for name, text in found.definitions.items():
        output.emit_text(f"  {name}: {text}")
    method = found.method
    output.emit_text(f"  intervals: {method.intervals}; {method.resamples:,} resamples, seed {method.seed}")
    output.emit_text(f"  pairing: {method.pairing}; percentiles: {method.percentiles}")
    output.emit_text(f"  {found.decision.power}")
    counted = found.counted
    output.emit_text(counted_words(counted.rows, counted.damaged, counted.unknown_success))
    for line, reason in counted.damaged_lines:
        output.emit_text(f"  line {line}: {reason}")
    left = ", ".join(f"{count} of {arm}" for arm, count in counted.left_over.items() if count)
    if left:
        output.emit_text(f"runs without a partner, left out: {left}")
    if counted.repeated:
        output.emit_text(f"runs whose task, trial and arm had been read before, left out: {counted.repeated}")


def _baselines(found: "Evaluation") -> None:
    table = output.table(
        "", "success", "USD a unit", "USD a completed one", "total", "P50", "P90", "P95", "max", "risk"
    )
    for name, one in arms_of(found).items():
        cost, tails = one.cost_usd, one.cost_usd.tails
        spread = (dollars(x) for x in (tails.p50, tails.p90, tails.p95, tails.max)) if tails else ("",) * 4
        done = cost.per_completed
        table.row(
            name,
            percent(one.success),
            dollars(cost.value, cost.low, cost.high),
            dollars(done.value, done.low, done.high),
            dollars(cost.total.value),
            *spread,
            points(one.risk).split(" points", 1)[0],
        )
    table.print()
    output.emit_text(
        "risk: tasks lost against the capable model, weighted, less tasks gained, in points"
        + "".join(
            f"; weight {weight:g} {name or 'for all others'}" for name, weight in found.method.loss_weights.items()
        )
    )
    if found.restarts.arms:
        output.emit_text(f"{found.restarts.assumption}; {found.restarts.weak_cost}")
    elif found.n:
        output.emit_text(found.restarts.reason)
    without = [
        f"{name} {dollars(tails.mean_without)} a unit (they are {tails.dearest_share:.0%} of all)"
        for name, one in (("capable", found.capable), ("efficient", found.efficient))
        if (tails := one.cost_usd.tails) is not None and tails.dearest_share is not None
    ]
    if without:
        output.emit_text(f"without the dearest 1 % of units: {', '.join(without)}")


def _routers(found: "Evaluation") -> None:
    if not found.routers:
        return
    table = output.table("route", "never moves", "success against capable", "USD against capable", "above the mix")
    for name, one in found.routers.items():
        cost = one.cost_difference_usd
        table.row(
            name,
            percent(one.figures.efficient_share),
            points(one.success_difference),
            dollars(cost.value, cost.low, cost.high),
            points(one.above_mix),
        )
    table.print()
    output.emit_text(f"{FIRST_MOVE}; {found.restarts.weak_cost}")
    output.emit_text(
        "above the mix: success above that of a random mix of the two models at the same cost, costed units only"
    )


def _quadrants(found: "Evaluation") -> None:
    table = output.table("", "units", "share", "capable against itself", "efficient against itself")
    for name, count in found.quadrants.items():
        own = [
            "no control" if (one := getattr(found.control, arm, None)) is None else percent(getattr(one, name))
            for arm in ("capable", "efficient")
        ]
        table.row(name, str(count), percent(found.quadrant_shares[name]), *own)
    table.print()


def _categories(found: "Evaluation") -> None:
    if not found.categories:
        return
    table = output.table(
        "category", "n", "capable", "efficient", "oracle", "LOSS", "RESCUE", "USD capable", "USD efficient"
    )
    for one in found.categories:
        arms = one.arms
        table.row(
            one.name or "(none)",
            str(one.n),
            *(percent(arms[name].success) for name in ("capable", "efficient", "oracle")),
            str(one.quadrants["LOSS"]),
            str(one.quadrants["RESCUE"]),
            *(dollars(arms[name].cost_usd.value) for name in ("capable", "efficient")),
        )
    table.print()


def _comparison(found: "Evaluation") -> None:
    tests = found.tests
    output.emit_text(
        f"capable above efficient: {points(found.success_difference)}; oracle above the better: {points(found.headroom)}"
    )
    if found.control is not None and found.control.headroom_beyond_noise is not None:
        output.emit_text(
            f"oracle beyond the noise of the better model: {found.control.headroom_beyond_noise * 100:+.1f} points"
        )
    if tests.mcnemar.p is not None and tests.sign_flip_p is not None:
        output.emit_text(
            f"{tests.mcnemar.name}: p = {tests.mcnemar.p:.3g} ({tests.mcnemar.only_first} against {tests.mcnemar.only_second} of "
            f"{tests.mcnemar.pairs} tasks, first trials); sign-flip permutation over tasks: p = {tests.sign_flip_p:.3g}"
        )
    if found.gap_closed is not None:
        closed = found.gap_closed
        output.emit_text(
            f"of the way to the oracle: success {percent(closed.success)} from the better model, "
            f"{percent(closed.success_from_mix)} from the mix; cost {percent(closed.cost)} from capable-only"
        )
        output.emit_text(f"judges: {percent(found.judge_share)} of the routed cost")
    for name, effect in found.cache.items():
        if effect.recorded is not None:
            output.emit_text(
                f"{name}, {effect.runs} runs at list price: as cached {dollars(effect.recorded)}, caches always warm "
                f"{dollars(effect.warm)}, always cold {dollars(effect.cold)}"
            )


def _off_policy(found: "Evaluation") -> None:
    for one in found.off_policy or ():
        if one.refused or one.success is None:
            output.emit_text(f"{one.policy}, off-policy: refused, {one.refused}")
            continue
        output.emit_text(
            f"{one.policy}, off-policy from {one.runs} logged runs (worth {one.effective:.0f}): "
            f"success IPS {percent(one.success.ips)}, doubly robust {percent(one.success.doubly_robust)}"
        )


def _criteria(found: "Evaluation") -> None:
    words = {True: "yes", False: "no", None: "open"}
    table = output.table("", "below", "difference", "holds", "tasks needed")
    for one in found.decision.criteria:
        needed = "" if one.tasks_needed is None else f"{one.tasks_needed:,}"
        table.row(one.name, f"{one.bound:g}", str(one.difference), words[one.holds], needed)
    table.print()
