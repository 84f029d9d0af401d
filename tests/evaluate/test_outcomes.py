"""Outcome tables are read line by line; what is damaged is counted with its line and loses nothing else."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outcomes import BIG, row, written

from turnout.errors import ClientError
from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.outcomes import Call, read

GOOD = row("a", "big", True, 0.5, harness="h", trial=2, steps=3, step_seq="RRE", repo="x/y")


def test_a_row_is_read_with_all_it_tells(tmp_path: Path) -> None:
    found = read(written(tmp_path / "o.jsonl", [GOOD]))
    (one,) = found.outcomes
    assert (one.line, one.task, one.arm, one.trial, one.success) == (1, "a", Arm("big", "h"), "2", True)
    assert (one.cost_usd, one.category, one.steps) == (0.5, "x/y", 3)


def test_query_ids_numbers_and_missing_costs_are_read(tmp_path: Path) -> None:
    rows = [{"query_id": 7, "model": "big", "success": 1}, {"task_id": "b", "model": "big", "success": 0}]
    found = read(written(tmp_path / "o.jsonl", rows))
    assert [(one.task, one.success, one.cost_usd) for one in found.outcomes] == [("7", True, None), ("b", False, None)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"task_id": "a", "model": "big", "succ', "malformed"),
        ("[]", "object"),
        (json.dumps(row("a", "big", "yes")), "success"),
        (json.dumps(row("a", "big", 2)), "success"),
        (json.dumps({"task_id": "a", "success": True}), "model"),
        (json.dumps({"model": "big", "success": True}), "task_id"),
        (json.dumps(row("", "big", True)), "task_id"),
        (json.dumps(row("a", "", True)), "model"),
        (json.dumps(row("a", "big", True, -1)), "cost_usd"),
        (json.dumps(row("a", "big", True, "0.5")), "cost_usd"),
        ('{"task_id": "a", "model": "big", "success": true, "cost_usd": NaN}', "malformed"),
        (json.dumps(row("a", "big", True, propensity=1.5)), "propensity"),
        (json.dumps(row("a", "big", True, calls=[[1, 2, 3, 0.1]])), "calls"),
    ],
)
def test_damaged_lines_are_counted_and_named(tmp_path: Path, line: str, reason: str) -> None:
    found = read(written(tmp_path / "o.jsonl", [GOOD, line, GOOD]))
    assert [one.line for one in found.outcomes] == [1, 3]
    assert (found.rows, found.damaged) == (3, 1)
    assert found.damaged_lines[0].line == 2
    assert reason in found.damaged_lines[0].reason.lower()


def test_other_encodings_and_empty_lines_lose_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "o.jsonl"
    text = json.dumps(GOOD).encode()
    file.write_bytes(b"\xef\xbb\xbf" + text + b"\n\n" + text.replace(b'"a"', b'"\xe4"') + b"\n" + text)
    found = read(file)
    assert [one.line for one in found.outcomes] == [1, 4]
    assert (found.rows, found.damaged) == (3, 1)


def test_an_archive_that_is_cut_off_gives_what_it_still_holds(tmp_path: Path) -> None:
    file = tmp_path / "o.jsonl.gz"
    whole = gzip.compress("".join(json.dumps({**GOOD, "note": str(i * 7919)}) + "\n" for i in range(2000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    found = read(file)
    assert 0 < len(found.outcomes) < 2000
    assert found.damaged == 1
    assert "cut off" in found.damaged_lines[0].reason


def test_unknown_success_is_counted_apart(tmp_path: Path) -> None:
    found = read(written(tmp_path / "o.jsonl", [GOOD, row("b", "big", None, 1.0)]))
    assert (len(found.outcomes), found.unknown_success, found.damaged) == (1, 1, 0)
    assert found.arms[Arm("big")] == 1


def test_only_wanted_arms_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    found = read(written(tmp_path / "o.jsonl", [row("a", "big", True), row("a", "other", True)]), [Wanted("big")])
    assert [one.arm for one in found.outcomes] == [BIG]
    assert found.arms == {BIG: 1, Arm("other"): 1}


def test_a_category_comes_from_the_named_field(tmp_path: Path) -> None:
    file = written(tmp_path / "o.jsonl", [row("a", "big", True, kind="x", repo="r"), row("b", "big", True, kind=3)])
    assert [one.category for one in read(file).outcomes] == ["r", ""]
    assert [one.category for one in read(file, by="kind").outcomes] == ["x", "3"]


def test_calls_are_read_in_either_spelling(tmp_path: Path) -> None:
    calls = [[10, 4, 2, 0.5], [12, 10, 1]]
    rows = [row("a", "big", True, calls=calls), row("b", "big", True, **{"per_call_usage[in,cached,out,cost]": calls})]
    for one in read(written(tmp_path / "o.jsonl", rows)).outcomes:
        assert one.calls == (Call(10, 4, 2, 0.5), Call(12, 10, 1, None))


def test_many_damaged_lines_are_all_counted_and_the_first_are_named(tmp_path: Path) -> None:
    found = read(written(tmp_path / "o.jsonl", ["{"] * 50))
    assert (found.damaged, len(found.damaged_lines)) == (50, 20)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_stop_the_reading(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    file = tmp_path_factory.mktemp("o") / "o.jsonl"
    noise = b"\n".join(line.replace(b"\n", b" ") for line in lines)
    file.write_bytes(b"\n" + noise + b"\n" + json.dumps(GOOD).encode())
    found = read(file)
    assert len(found.outcomes) == 1
    assert found.rows == found.damaged + 1


def test_an_arm_whose_rows_cannot_be_read_is_not_said_to_be_absent_without_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    path.write_text(
        '{"task_id": 1, "model": "small", "success": true}\n'
        '{"task_id": 1, "model": "large", "success": true, "cost_usd": -5}\n'
    )
    with pytest.raises(
        ClientError, match=r"no rows of large; .*1 of 2 rows cannot be read, the first in line 2: .*cost"
    ):
        read(path).arm(Wanted("large"))
    assert read(path).arm(Wanted("small")) == Arm("small")


def test_the_name_that_is_passed_on_does_not_say_whose_home_the_file_lay_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.evaluate.outcomes._lines", lambda _: iter([(1, json.dumps(GOOD))]))
    assert read(Path("/home/ann/work/o.jsonl")).file == "/home/user/work/o.jsonl"
