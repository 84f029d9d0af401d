"""Outcomes of tasks that a ledger holds, imported or reported, as an outcome table."""

import functools
from collections.abc import Callable, Sequence

from turnout.evaluate import outcomes
from turnout.evaluate.arms import Wanted
from turnout.evaluate.outcomes import Progress, Read, Row, Tally
from turnout.ledger.outcome import Outcome, Reported
from turnout.ledger.store import Ledger


def read_ledger(
    ledger: Ledger,
    url: str,
    wanted: Sequence[Wanted] | None = None,
    progress: Progress | None = None,
    completed: Callable[[Outcome, outcomes.Outcome], outcomes.Outcome] | None = None,
) -> Read:
    """The outcomes that name a task, as `read` gives those of a file. `line`: how manieth outcome it is, from 1. `completed`: as
    there, given the outcome as it was reported.

    Judge costs, shares and propensities are among an outcome's `metrics`, by the names they have in a file.
    """
    tally = Tally(url, wanted)
    with ledger.task_outcomes() as found:
        for number, reported in enumerate(found, 1):
            if progress is not None and number % 10_000 == 0:
                progress("reading the ledger", number, 0)
            try:
                more = None if completed is None else functools.partial(completed, reported.outcome)
                tally.add(number, _row(reported), reported.outcome.category, more)
            except ValueError as error:
                tally.damage(number, str(error))
    return tally.read()


def _row(reported: Reported) -> Row:
    outcome = reported.outcome
    metrics = outcome.metrics
    return Row(
        model=outcome.model,
        success=outcome.success,
        task_id=outcome.task,
        harness=outcome.harness or None,
        trial=outcome.trial or None,
        cost_usd=outcome.cost_usd,
        steps=outcome.steps,
        judge_cost_usd=metrics.get("judge_cost_usd"),
        efficient_share=metrics.get("efficient_share"),
        propensity=metrics.get("propensity"),
        candidate_propensity=metrics.get("candidate_propensity"),
        at=reported.at,
    )
