"""Damaged files: what is not hit survives, what is hit is counted, and nothing ends an import."""

import gzip
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.evaluate.importers.ledgers import imported, turns
from tests.evaluate.importers.samples import CSV, RECORDS, SAMPLES, claude_code, codex, lines, table

from turnout.evaluate.importers import source as source_module
from turnout.evaluate.importers.formats import BY_NAME
from turnout.evaluate.importers.source import Source

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(data: bytes, format: str) -> tuple[list[dict[str, Any]], Source]:
    """The records of a file, and the source that counted."""
    importer = BY_NAME[format]
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        Path(file.name).write_bytes(data)
        source = Source(Path(file.name))
        assert importer.looks is not None
        return [record.value for record in source.records(importer.looks)], source


def add_up(records: list[dict[str, Any]], source: Source) -> None:
    """Every record there was is either given or counted as skipped."""
    assert source.tally.records == len(records) + sum(source.tally.skipped.values())


formats = st.sampled_from(sorted(RECORDS))


@quick
@given(formats, st.data())
def test_a_cut_costs_only_the_records_it_hits(format: str, data: st.DataObject) -> None:
    rows = RECORDS[format](6)
    whole = lines(rows)
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, min(start + 400, len(whole))))
    found, source = read(whole[:start] + whole[end:], format)
    spans, at = [], 0
    for row in rows:
        size = len(lines([row]))
        spans.append((at, at + size - 1))
        at += size
    untouched = [row for row, (a, b) in zip(rows, spans, strict=True) if b <= start or a >= end]
    assert all(row in found for row in untouched)
    add_up(found, source)


@quick
@given(formats, st.data(), st.binary(min_size=1, max_size=60))
def test_bytes_that_got_in_cost_only_the_record_they_are_in(format: str, data: st.DataObject, garbage: bytes) -> None:
    rows = RECORDS[format](5)
    whole = lines(rows)
    at = data.draw(st.integers(0, len(whole)))
    found, source = read(whole[:at] + garbage + whole[at:], format)
    begin = 0
    for row in rows:
        size = len(lines([row]))
        if at <= begin or at >= begin + size - 1:
            assert row in found
        begin += size
    add_up(found, source)


@quick
@given(formats, st.integers(0, 5), st.integers(1, 4096))
def test_nul_bytes_between_records_cost_nothing(format: str, at: int, n: int) -> None:
    rows = RECORDS[format](5)
    parts = [lines([row]) for row in rows]
    found, source = read(b"".join([*parts[:at], b"\0" * n, *parts[at:]]), format)
    assert found == rows
    assert source.tally.skipped == {}


@quick
@given(st.lists(st.sampled_from(range(6)), max_size=6, unique=True), st.sampled_from(["latin-1", "cp1252"]))
def test_lines_of_another_encoding_are_read(odd: list[int], encoding: str) -> None:
    rows = [{**row, "harness": "façade"} for row in table(6)]
    parts = [(lines([row]).decode().encode(encoding) if i in odd else lines([row])) for i, row in enumerate(rows)]
    found, source = read(b"".join(parts), "table")
    assert found == rows
    assert source.tally.mended.get("not UTF-8", 0) == len(odd)


keys = st.sampled_from(
    ["type", "message", "content", "usage", "payload", "timestamp", "role", "id", "tool_calls", "messages"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
)


@quick
@given(st.lists(anything, max_size=8), st.sampled_from([sample.format for sample in SAMPLES]))
def test_wrong_types_end_no_import(values: list[Any], format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(lines(values))
        imported(path, Path(folder) / "a.db", format=format)


ROWS = {"claude-code": claude_code(1, 3), "codex": codex(3)}
FIELDS = [
    "content",
    "message",
    "usage",
    "timestamp",
    "payload",
    "arguments",
    "output",
    "id",
    "name",
    "input",
    "sessionId",
]
ODD: list[Any] = [None, True, 17, -1.5, "x", [], [1], {}, {"a": [None]}, 10**400, "2026-99-99", 1e300]


def _put(value: Any, field: str, odd: Any) -> Any:
    """The value with every field of this name, at any depth, replaced."""
    if isinstance(value, dict):
        return {k: odd if k == field else _put(v, field, odd) for k, v in value.items()}
    return [_put(v, field, odd) for v in value] if isinstance(value, list) else value


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(ROWS)), st.data(), st.sampled_from(FIELDS), st.sampled_from(ODD))
def test_a_field_of_a_wrong_type_costs_at_most_its_record(
    format: str, data: st.DataObject, field: str, odd: Any
) -> None:
    rows = list(ROWS[format])
    at = data.draw(st.integers(0, len(rows) - 1))
    rows[at] = _put(rows[at], field, odd)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.jsonl").write_bytes(lines(rows))
        (Path(folder) / "whole.jsonl").write_bytes(lines(ROWS[format]))
        report = imported(Path(folder) / "a.jsonl", Path(folder) / "a.db", format=format)
        whole = imported(Path(folder) / "whole.jsonl", Path(folder) / "w.db", format=format)
        assert whole.turns - 1 <= report.turns <= whole.turns + 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_cut_log_keeps_the_other_turns(data: st.DataObject) -> None:
    rows = claude_code(1, 6)
    whole = lines(rows)
    start = data.draw(st.integers(len(lines(rows[:2])), len(whole) - 1))
    end = data.draw(st.integers(start, min(start + 100, len(whole))))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.jsonl").write_bytes(whole)
        (Path(folder) / "b.jsonl").write_bytes(whole[:start] + whole[end:])
        imported(Path(folder) / "a.jsonl", Path(folder) / "a.db")
        report = imported(Path(folder) / "b.jsonl", Path(folder) / "b.db")
        kept = {t.id: t.usage for t in turns(Path(folder) / "b.db")}
        spans, at = {}, 0
        for row in rows:
            size = len(lines([row]))
            if row["type"] == "assistant":
                spans.setdefault(row["message"]["id"], []).append((at, at + size - 1))
            at += size
        untouched = [all(b <= start or a >= end for a, b in spans[f"msg_0_{n}"]) for n in range(1, 7)]
        for turn, sound in zip(turns(Path(folder) / "a.db"), untouched, strict=True):
            assert not sound or kept[turn.id] == turn.usage
        assert report.records >= sum(report.skipped.values())


def test_a_cut_compressed_file_gives_what_it_still_holds(tmp_path: Path) -> None:
    data = gzip.compress(lines({**row, "note": str(i * 7919)} for i, row in enumerate(table(5000))))
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    report = imported(path, tmp_path / "a.db")
    assert 1000 < report.outcomes < 4000
    assert sum(report.skipped.values()) in (1, 2)  # the file, and the line that it ends in
    assert "the compressed file is damaged from here on" in report.skipped


def test_a_huge_line_is_skipped_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "LINE_AT_MOST", 10_000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(table(2)) + b'{"task_id": "' + b"x" * 50_000 + b'"}\n' + lines(table(3)))
    report = imported(path, tmp_path / "a.db")
    assert report.outcomes == 5
    assert sum(report.skipped.values()) == 1
    assert report.examples[0].line == 3


def test_a_quote_that_nothing_closes_does_not_swallow_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"u{i},small,true,0.1,3,plain" for i in range(200)]
    rows.insert(50, 'broken,small,true,0.1,3,"open')
    path.write_text(CSV + "\n".join(rows) + "\n", "utf-8")
    report = imported(path, tmp_path / "a.db")
    assert report.outcomes == 203
    assert sum(report.skipped.values()) == 1


def test_a_damaged_array_gives_its_whole_elements(tmp_path: Path) -> None:
    sample = next(s for s in SAMPLES if s.format == "tau-bench")
    path = tmp_path / "a.json"
    path.write_bytes(sample.data[: len(sample.data) - 40])
    report = imported(path, tmp_path / "a.db")
    assert report.outcomes == 1
    assert report.skipped == {"damaged: cut or overwritten": 1}


def test_everything_skipped_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(table(2)) + b"garbage\n[1, 2]\n" + lines(table(1)))
    report = imported(path, tmp_path / "a.db")
    assert [(one.line, one.reason) for one in report.examples] == [
        (3, "damaged: cut or overwritten"),
        (4, "not an object"),
    ]
    assert report.records == 5
    assert {one.file for one in report.examples} == {str(path)}
