"""What `turnout trial` prints at the end."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from turnout.cli import output
from turnout.evaluate.trials.summary import ArmSummary, Summary, summary

if TYPE_CHECKING:
    from turnout.evaluate.trials.journal import State
    from turnout.evaluate.trials.trial import Asked


def show(state: "State", asked: "Asked", arms: Sequence[str], halted: str, as_json: bool) -> None:
    """The summary, what was noticed, and the next command."""
    found = summary(state, asked.runs, arms)
    step = _next(asked, arms) if not halted else ""
    if as_json:
        told = {"outcomes": str(asked.out / "outcomes.jsonl"), "halted": halted or None, "next": step or None}
        output.emit({**asdict(found), **told, "notes": list(_notes(found, asked))})
        return
    _table(found)
    for note in _notes(found, asked):
        output.emit_text(note)
    output.emit_text(f"wrote {asked.out / 'outcomes.jsonl'}; logs of each run are in {asked.out / 'logs'}")
    if halted:
        output.emit_text(f"{halted}: {found.over} of {found.planned} runs are over; the same command goes on from here")
    elif step:
        output.emit_text(f"next: {step}")


def _table(found: Summary) -> None:
    table = output.table(
        "arm", "runs", "success", "cost", "USD a run", "P50", "P90", "turns", "tokens in / out", "tools", "retries",
        "errors", "irreversible", "timed out",
    )  # fmt: skip
    for arm in found.arms:
        table.row(
            arm.arm,
            f"{arm.over} of {arm.planned}",
            f"{arm.succeeded} of {arm.known} ({arm.succeeded / arm.known:.1%})" if arm.known else "unknown",
            output.usd(arm.cost_usd),
            output.usd(arm.cost_usd / arm.over) if arm.cost_usd is not None and arm.over else "unknown",
            *("" if s is None else output.duration(s) for s in (arm.latency_p50_s, arm.latency_p90_s)),
            str(arm.turns),
            f"{_number(arm.input_tokens)} / {_number(arm.output_tokens)}",
            _number(arm.tool_calls),
            str(arm.retries),
            str(arm.errors),
            _number(arm.irreversible_errors),
            str(arm.timed_out),
        )
    table.print()


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _notes(found: Summary, asked: "Asked") -> "list[str]":
    notes = []
    if found.given_up:
        notes.append(
            f"{output.count(found.given_up, 'run')} begun and not finished, made again since or still to make; known cost "
            f"{output.usd(found.given_up_usd)}, in no arm's figures"
        )
    for arm in found.arms:
        notes += _notes_of(arm)
    if found.over and not any(arm.succeeded for arm in found.arms) and any(arm.known for arm in found.arms):
        notes.append(f"no run succeeded; what they printed is in {asked.out / 'logs'}")
    if len(found.arms) < 2:
        return notes
    if found.differences:
        notes.append("runs that were compared differ in more than the arm:")
        notes += [f"  {difference} ({output.count(n, 'time')})" for difference, n in found.differences.items()]
    else:
        notes.append("manifests compared: runs of one task and trial differ in nothing but the arm")
    return notes


def _notes_of(arm: ArmSummary) -> list[str]:
    notes = []
    if arm.silent:
        notes.append(
            f"{arm.arm}: {output.count(arm.silent, 'run')} of {arm.over} sent no turn to the gateway, so their cost is unknown; "
            "the command must use OPENAI_BASE_URL or ANTHROPIC_BASE_URL as it is set for it"
        )
    if arm.cost_notes:
        notes.append(f"{arm.arm}: not every cost is known: {'; '.join(arm.cost_notes)}")
    if arm.strays:
        notes.append(
            f"{arm.arm}: {output.count(arm.strays, 'turn')} asked for another model than {arm.arm}; the command is told which "
            "by TURNOUT_ARM and {arm}"
        )
    if arm.known < arm.over:
        notes.append(f"{arm.arm}: of {output.count(arm.over - arm.known, 'run')} nobody told whether they succeeded")
    return notes


def _next(asked: "Asked", arms: Sequence[str]) -> str:
    if len(arms) < 2:
        return ""
    words = ["turnout", "evaluate", str(asked.out / "outcomes.jsonl"), "--capable", arms[0], "--efficient", arms[1]]
    if len(arms) > 2:
        words += ["--routed", arms[2]]
    return shlex.join(words)
