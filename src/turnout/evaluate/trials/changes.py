"""What has changed since a trial began."""

from msgspec.structs import replace

from turnout.evaluate.trials.journal import State
from turnout.evaluate.trials.manifest import differences, digest
from turnout.evaluate.trials.plan import Planned
from turnout.evaluate.trials.trial import Asked


def changes(state: State, asked: Asked) -> list[str]:
    """In what the runs that are over differ from those that would follow, in words. Further arms, tasks and trials are none."""
    if not state.runs:
        return []
    # How many runs go on at once may change: it is reported with the results, as latencies depend on it.
    now = asked.conditions
    found = [] if state.newest is None else differences(replace(state.newest, jobs=now.jobs), now)
    for run in asked.runs:
        done = state.runs.get(run.key)
        if done is not None:
            found += _of_run(run, done.manifest.fields, done.manifest.policy, asked.policies.get(run.arm, ""))
    return list(dict.fromkeys(found))


def _of_run(run: Planned, fields: str, policy: str, now: str) -> list[str]:
    found = []
    if digest(run.task.fields) != fields:
        found.append(f"task {run.task.id}: its fields")
    if policy and now and policy != now:
        found.append(f"policy of {run.arm}: {policy} became {now}")
    return found
