"""What a trial showed so far: figures by arm, and whether the arms ran under equal conditions."""

import math
from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.trials.journal import Run, State
from turnout.evaluate.trials.manifest import unequal
from turnout.evaluate.trials.plan import Planned


class ArmSummary(Struct, frozen=True):
    """The runs of an arm. `known`: of those that are over, those whose success is known. `cost_usd`: of all that are over, None
    where one is unknown, and `cost_notes` say why; `known_usd`: the known part. Seconds of whole runs by nearest rank. Of the
    rest sums, None where one is unknown. `silent`: runs of which no turn reached the gateway. `strays`: turns that asked for
    another model than the arm."""

    arm: str
    planned: int
    over: int
    known: int
    succeeded: int
    cost_usd: float | None
    known_usd: float
    cost_notes: tuple[str, ...]
    latency_p50_s: float | None
    latency_p90_s: float | None
    turns: int
    input_tokens: int | None
    output_tokens: int | None
    tool_calls: int | None
    retries: int
    errors: int
    irreversible_errors: int | None
    timed_out: int
    silent: int
    strays: int
    policies: tuple[str, ...]


class Summary(Struct, frozen=True):
    """`arms` in their order. `differences`: in what runs of one task and trial differed besides the arm, each with the number of
    times. `given_up`: runs that were begun and never finished; `given_up_usd`: what they are known to have cost."""

    arms: tuple[ArmSummary, ...]
    planned: int
    over: int
    given_up: int
    given_up_usd: float
    known_usd: float
    differences: dict[str, int]


def summary(state: State, runs: Sequence[Planned], arms: Sequence[str]) -> Summary:
    """The summary of a trial's runs."""
    over = [state.runs[run.key] for run in runs if run.key in state.runs]
    return Summary(
        tuple(_arm(arm, sum(r.arm == arm for r in runs), [r for r in over if r.manifest.arm == arm]) for arm in arms),
        len(runs),
        len(over),
        len(state.given_up),
        sum(figures.known_usd for figures in state.given_up.values() if figures is not None),
        state.known_usd,
        differences(state, over),
    )


def differences(state: State, over: Sequence[Run]) -> dict[str, int]:
    """In what runs of one task and trial differ besides the arm, and those of one arm in its policy."""
    units: dict[tuple[str, int], list[Run]] = {}
    policies: dict[str, set[str]] = {}
    for run in over:
        units.setdefault((run.manifest.task, run.manifest.trial), []).append(run)
        policies.setdefault(run.manifest.arm, set()).update(run.finished.figures.policies)
    found: dict[str, int] = {}
    for together in units.values():
        for difference in unequal((run.manifest for run in together), state.conditions):
            found[difference] = found.get(difference, 0) + 1
    for arm, seen in policies.items():
        if len(seen) > 1:
            found[f"policy of {arm}: {', '.join(sorted(seen))}"] = sum(run.manifest.arm == arm for run in over)
    return found


def _arm(arm: str, planned: int, runs: Sequence[Run]) -> ArmSummary:
    figures = [run.finished.figures for run in runs]
    known = [run.finished.success for run in runs if run.finished.success is not None]
    costs = [one.cost_usd for one in figures]
    seconds = sorted(run.finished.ended.seconds for run in runs)
    return ArmSummary(
        arm=arm,
        planned=planned,
        over=len(runs),
        known=len(known),
        succeeded=sum(known),
        cost_usd=None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        known_usd=sum(one.known_usd for one in figures),
        cost_notes=tuple(sorted({one.cost_note for one in figures if one.cost_gap})),
        latency_p50_s=_rank(seconds, 0.5),
        latency_p90_s=_rank(seconds, 0.9),
        turns=sum(one.turns for one in figures),
        input_tokens=_sum([one.input_tokens for one in figures]),
        output_tokens=_sum([one.output_tokens for one in figures]),
        tool_calls=_sum([one.tool_calls for one in figures]),
        retries=sum(one.retries for one in figures),
        errors=sum(one.errors + one.refused for one in figures),
        irreversible_errors=_sum([one.irreversible for one in figures]),
        timed_out=sum(run.finished.ended.timed_out for run in runs),
        silent=sum(one.turns == 0 for one in figures),
        strays=sum(count for one in figures for model, count in one.asked_for.items() if model != arm),
        policies=tuple(sorted({policy for one in figures for policy in one.policies})),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(value for value in values if value is not None)


def _rank(values: Sequence[float], share: float) -> float | None:
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None
