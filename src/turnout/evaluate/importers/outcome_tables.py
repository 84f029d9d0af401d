"""Outcome tables: one row a task and model, as JSON Lines, CSV, TSV or Parquet. Columns go by the names in common use."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnout.evaluate.importers.events import Event, Told
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, json_text, moment, name_of, number, table, text, truth
from turnout.ledger.outcome import Outcome

TASK = ("task_id", "query_id", "instance_id", "task", "question_id", "problem_id", "id")
MODEL = ("model", "model_name", "model_id", "model_name_or_path")
SUCCESS = ("success", "resolved", "passed", "is_resolved", "correct", "solved", "outcome")
COST = ("cost_usd", "cost", "instance_cost", "total_cost_usd", "total_cost")
STEPS = ("steps", "n_steps", "api_calls", "turns", "num_turns")
IN = ("tokens_in", "input_tokens", "prompt_tokens", "tokens_sent")
OUT = ("tokens_out", "output_tokens", "completion_tokens", "tokens_received")
TRIAL = ("trial", "run", "attempt", "seed")
HARNESS = ("harness", "agent", "scaffold")
SECONDS = ("seconds", "agent_seconds", "latency_s", "duration_s")
ROWS = 50
"""Lines over which a quoted field of a CSV file may run; beyond, its quote is taken for damage."""


def looks(value: dict[str, Any]) -> bool:
    """Whether an object is a row of an outcome table."""
    if any(key in value for key in ("messages", "trajectory", "traj", "type")):
        return False
    found = task_of(value) and any(key in value for key in (*SUCCESS, "score"))
    return bool(
        found and (_first(value, MODEL) or any(isinstance(value.get(key), dict) for key in (*SUCCESS, "score")))
    )


def task_of(row: dict[str, Any]) -> str:
    """The task a row is about, "" when it says none."""
    return text(_first(row, TASK))


def outcome_of(row: dict[str, Any]) -> Outcome | None:
    """The outcome a row states; None when it names no task or session, or nothing of how that went or what it cost."""
    success, cost, steps = truth(_first(row, SUCCESS)), number(_first(row, COST)), count(_first(row, STEPS))
    task = task_of(row)
    if success is None and cost is None and (not task or (steps is None and not _metrics(row))):
        return None
    return Outcome(
        session=text(row.get("session_id")),
        success=success,
        metrics=_metrics(row),
        note=text(row.get("failure_mode")) or text(row.get("error_type")) or text(row.get("exit_status")),
        task=task,
        category=text(row.get("category")) or text(row.get("benchmark")) or text(row.get("repo")),
        model=text(_first(row, MODEL)),
        harness=text(_first(row, HARNESS)),
        trial=text(_first(row, TRIAL)),
        cost_usd=cost,
        cost_source=text(row.get("cost_source")) or ("recorded" if cost is not None else ""),
        steps=steps,
        input_tokens=count(_first(row, IN)),
        output_tokens=count(_first(row, OUT)),
    )


def _metrics(row: dict[str, Any]) -> dict[str, float]:
    names = {
        "score": "score",
        "tests_passed": "tests_passed",
        "tests_total": "tests_total",
        "tokens_cached": "tokens_cached",
    }
    found = {ours: n for theirs, ours in names.items() if (n := number(row.get(theirs))) is not None}
    seconds = number(_first(row, SECONDS))
    return {**found, "seconds": seconds} if seconds is not None else found


def read(source: Source) -> Iterator[Event]:
    """The outcomes of a table, whatever holds it."""
    kind = layout(source)
    if kind == "parquet":
        rows = _of_parquet(source)
    elif kind in ("csv", "tsv"):
        rows = _of_csv(source, "\t" if kind == "tsv" else ",")
    else:
        rows = source.records(looks)
    for record in rows:
        yield from _told(source, record)


def layout(source: Source) -> str:
    """`parquet`, `csv`, `tsv` or `json`, by the content."""
    head = source.head()
    if head[:4] == b"PAR1":
        return "parquet"
    first = next((line for line in head.split(b"\n") if line.strip()), b"").decode(errors="replace").lower()
    if first.lstrip()[:1] in ("{", "["):
        return "json"
    for kind, mark in (("tsv", "\t"), ("csv", ",")):
        names = {name.strip().strip('"') for name in first.split(mark)}
        if names & set(TASK) and names & {*SUCCESS, *COST, "score"}:
            return kind
    return ""


def _told(source: Source, record: Record) -> Iterator[Event]:
    row = record.value
    wide = next((key for key in (*SUCCESS, "score") if isinstance(row.get(key), dict)), None)
    rows = [row] if wide is None else [{**row, wide: v, "model": model} for model, v in row[wide].items()]
    if not task_of(row):
        source.skip(record.line, "names no task", ", ".join(list(row)[:8]))
        return
    found = [(one, outcome) for one in rows if (outcome := outcome_of(one)) is not None]
    if not found:
        source.skip(record.line, "says nothing of how the task went", ", ".join(list(row)[:8]))
        return
    for one, outcome in found:
        # Equal rows are told apart by their line where no trial does, for both happened.
        place = "" if outcome.trial else str(record.line)
        name = name_of(outcome.task, outcome.model, outcome.harness, outcome.trial, record.digest, place)
        yield Told(name, outcome, moment(one.get("timestamp")) or moment(one.get("at")) or moment(one.get("date")))


def _of_csv(source: Source, mark: str) -> Iterator[Record]:
    header: list[str] = []
    held: list[tuple[int, str]] = []
    for number_, line in source.texts():
        held.append((number_, line))
        while held:
            fields, used = _fields(held, mark)
            if fields is None:
                break
            place = held[0][0]
            joined = "\n".join(text for _, text in held[:used])
            del held[:used]
            if not header:
                header = [name.strip().lower() for name in fields]
                continue
            yield from _row(source, place, header, fields, joined)
    while held:  # a quote that nothing closed: its line is damaged, those after it may be whole
        source.tally.records += 1
        source.skip(held[0][0], "damaged: cut or overwritten", held[0][1][:80])
        del held[0]
        while held:
            fields, used = _fields(held, mark)
            if fields is None:
                break
            yield from _row(source, held[0][0], header, fields, held[0][1])
            del held[:used]


def _fields(held: list[tuple[int, str]], mark: str) -> tuple[list[str] | None, int]:
    """The fields of the first row that is held and how many lines it takes; None while a quote is open."""
    for used in range(1, min(len(held), ROWS) + 1):
        joined = "\n".join(line for _, line in held[:used])
        if joined.count('"') % 2 == 0:
            try:
                return next(csv.reader(io.StringIO(joined), delimiter=mark)), used
            except (csv.Error, StopIteration):
                break
    # Too long for one field: take the first line as it stands, its quote for damage.
    return ([], 1) if len(held) >= ROWS else (None, 0)


def _row(source: Source, line: int, header: list[str], fields: list[str], joined: str) -> Iterator[Record]:
    source.tally.records += 1
    if len(fields) != len(header):
        source.skip(line, f"has not the {len(header)} columns of the header", joined[:80])
        return
    value = {name: field if field != "" else None for name, field in zip(header, fields, strict=True)}
    yield Record(line, value, name_of(joined))


def _of_parquet(source: Source) -> Iterator[Record]:
    import polars

    batch = 50_000
    table_ = polars.scan_parquet(source.path)
    line = 0
    try:
        while True:
            rows = table_.slice(line, batch).collect()
            for row in rows.iter_rows(named=True):
                line += 1
                source.tally.records += 1
                value = {str(name).lower(): _plain(one) for name, one in row.items()}
                yield Record(line, value, name_of(json_text(value)))
            if rows.height < batch:
                return
    except polars.exceptions.PolarsError as error:
        source.tally.records += 1
        source.skip(line + 1, "the Parquet file is damaged from here on", str(error).splitlines()[0])


def _plain(value: Any) -> Any:
    """A value of a column as JSON knows it."""
    if isinstance(value, list | dict):
        return {k: _plain(v) for k, v in table(value).items()} or [_plain(v) for v in items(value)]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None and row[name] != ""), None)


def is_table(path: Path) -> bool:
    """Whether a file's name is that of a table."""
    return path.suffix.lower() in (".csv", ".tsv", ".parquet")
