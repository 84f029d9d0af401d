"""A trial's runs as an outcome table, as `turnout evaluate` reads it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnout.evaluate.trials.journal import Run, State
from turnout.evaluate.trials.manifest import Manifest


def rows(state: State, arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row for each run that is over: by task, trial and arm. `arms`: the first is the capable one, the second the efficient
    one; runs of others come after theirs."""
    done = sorted(state.runs.values(), key=lambda run: _place(run.manifest, arms))
    efficient = {
        target
        for run in done
        if len(arms) > 1 and run.manifest.arm == arms[1]
        for target in run.finished.figures.served
    }
    for run in done:
        yield row(run, None if run.manifest.arm in arms[:2] else _share(run.finished.figures.served, efficient))


def row(run: Run, efficient_share: float | None) -> dict[str, Any]:
    """The outcome of a run. What is unknown is null."""
    manifest, finished = run.manifest, run.finished
    ended, figures = finished.ended, finished.figures
    found: dict[str, Any] = {
        "task_id": manifest.task,
        "trial": manifest.trial,
        "model": manifest.arm,
        "success": finished.success,
        "cost_usd": figures.cost_usd,
        "category": manifest.category or None,
        "steps": figures.turns,
        "latency_s": round(ended.seconds, 3),
        "model_s": round(figures.model_s, 3),
        "input_tokens": figures.input_tokens,
        "cached_tokens": figures.cached_tokens,
        "output_tokens": figures.output_tokens,
        "tool_calls": figures.tool_calls,
        "retries": figures.retries,
        "errors": figures.errors + figures.refused,
        "irreversible_errors": figures.irreversible,
        "severe_failures": figures.severe,
        "rollbacks": figures.rollbacks,
        "takeovers": figures.takeovers,
        "critical_failures": figures.critical,
        "exit_code": ended.code,
        "timed_out": ended.timed_out,
        "check_code": finished.check.code if finished.check is not None else None,
        "judge_cost_usd": figures.judge_usd,
        "efficient_share": efficient_share,
        "cost_note": figures.cost_note or None,
        "served": figures.served,
        "session": manifest.session,
        "seed": manifest.seed,
        "conditions": manifest.conditions,
        "at": run.at,
    }
    if figures.calls:
        found["calls"] = figures.calls
    return found


def write(path: Path, lines: Iterator[dict[str, Any]]) -> None:
    """Write a JSON Lines file; it is the old one or the new one, never half of either."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        for line in lines:
            file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _share(served: Mapping[str, int], efficient: set[str]) -> float | None:
    total = sum(served.values())
    return (
        sum(count for target, count in served.items() if target in efficient) / total if total and efficient else None
    )


def _place(manifest: Manifest, arms: Sequence[str]) -> tuple[int, str, int, int, str]:
    number = int(manifest.task) if manifest.task.isdecimal() else 1 << 62
    arm = arms.index(manifest.arm) if manifest.arm in arms else len(arms)
    return number, manifest.task, manifest.trial, arm, manifest.arm
