"""Label files: the three ways to name a result, what is withheld, and what is said of rows that name none."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import needs_recordings, shared

from turnout.errors import ConfigError
from turnout.evaluate.labels import Labelled, labelled


def call(number: int, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    asked = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [asked]}


def result(number: int, text: str, **known: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text, **known}


MESSAGES = [
    {"role": "user", "content": "Make it build."},
    call(1, "make"),
    result(1, "make: *** [all] Error 2", returncode=2),
    {"role": "user", "content": "And the tests?"},
    call(2, "pytest -q"),
    result(2, "3 passed in 0.10s", returncode=0),
]


def written(folder: Path, *rows: object) -> Path:
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def collection(folder: Path, name: str = "sessions.jsonl.gz") -> None:
    other = {"messages": [{"role": "user", "content": "Hello"}]}
    text = "".join(json.dumps(row) + "\n" for row in (other, {"messages": MESSAGES}))
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


@pytest.mark.parametrize("name", ["sessions", "sessions.jsonl", "sessions.jsonl.gz", "traces/sessions.jsonl.gz"])
def test_labels_point_into_collections(tmp_path: Path, name: str) -> None:
    collection(tmp_path, name)
    row = {"file": "sessions", "row": 1, "message_index": 2, "error_class": "capability"}
    (one,) = labelled(written(tmp_path, row), tmp_path).results
    assert (one.seen.tool, one.seen.exit_code, one.seen.error_class) == ("bash", 2, "capability")
    assert one.place == "sessions:1:2"
    assert json.loads(one.call) == {"command": "make"}
    assert one.row == row


def test_collections_are_looked_for_beside_the_labels(tmp_path: Path) -> None:
    collection(tmp_path)
    assert labelled(written(tmp_path, {"file": "sessions", "row": 1, "message_index": 5, "tests_passed": True})).results


@pytest.mark.parametrize(
    "row",
    [
        {"tool": "bash", "args": {"command": "pytest -q"}, "result": "3 passed in 0.10s", "returncode": 0},
        {"tool": "bash", "args": '{"command": "pytest -q"}', "result": "3 passed in 0.10s"},
        {"messages": MESSAGES},
        {"messages": MESSAGES, "message_index": 5},
        # Where the collection is not at hand, the row speaks for itself.
        {"file": "no", "row": 3, "message_index": 9, "tool": "sh", "args": {"command": "pytest -q"}, "result": "3 passed in 1s"},
    ],
)  # fmt: skip
def test_a_row_may_carry_its_own_call_and_result(tmp_path: Path, row: dict[str, Any]) -> None:
    (one,) = labelled(written(tmp_path, row | {"tests_passed": True, "tool_kind": "test"})).results
    assert (one.seen.kind, one.seen.tests_passed, one.seen.tests_run) == ("test", True, 3)
    assert json.loads(one.call) == {"command": "pytest -q"}


def test_what_recorders_know_can_be_withheld(tmp_path: Path) -> None:
    collection(tmp_path)
    own = {"tool": "run", "result": "", "returncode": 3, "is_error": True}
    file = written(tmp_path, *(row | {"error_class": "none"} for row in (
        {"file": "sessions", "row": 1, "message_index": 2}, {"messages": MESSAGES, "message_index": 2}, own,
    )))  # fmt: skip

    def codes(read: Labelled) -> list[int | None]:
        return [one.seen.exit_code for one in read.results]

    assert codes(labelled(file)) == [2, 2, 3]
    assert codes(labelled(file, withhold=("returncode",))) == [None, None, None]
    assert labelled(file, withhold=("returncode",)).results[2].seen.evidence == "flag"
    assert labelled(file, withhold=("returncode", "is_error")).results[2].seen.evidence != "flag"


def test_windows_hold_exactly_the_labelled_calls_across_user_turns(tmp_path: Path) -> None:
    collection(tmp_path)
    referring = {"file": "sessions", "row": 1, "message_indices": [2, 5], "repeated": False}
    own = {"calls": [{"tool": "bash", "args": {"command": "date"}, "result": "now"}] * 4, "spinning": True}
    read = labelled(written(tmp_path, referring, own))
    assert not read.results
    first, second = read.windows
    assert [o.message for o in first.seen] == [2, 5]
    assert (first.label.repeated, first.label.spinning) == (False, None)
    assert len(second.seen) == 4
    assert len({o.call for o in second.seen}) == 1


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("{", "labels.jsonl:1:"),
        ({"file": "sessions", "row": 1, "message_index": 2}, "labels nothing"),
        ({"file": "sessions", "row": 1, "message_index": 2, "error_class": "bad"}, "error_class`; one of: none, "),
        ({"file": "sessions", "row": 1, "error_class": "none"}, "`message_index` is missing"),
        ({"file": "sessions", "row": 1, "message_index": 1, "error_class": "none"}, "no tool result in message 1"),
        ({"file": "sessions", "row": 1, "message_index": 99, "error_class": "none"}, "no tool result in message 99"),
        ({"file": "sessions", "row": 7, "message_index": 2, "error_class": "none"}, "no line 7"),
        ({"file": "absent", "row": 7, "message_index": 2, "error_class": "none"}, "no absent, absent.jsonl"),
        ({"error_class": "none"}, "names no result"),
        ({"tool": "bash", "result": 3, "error_class": "none"}, "result"),
        ({"file": "sessions", "row": 1, "repeated": True}, "`message_indices` is missing"),
        ({"calls": [], "repeated": True}, "holds no call"),
        ({"file": "sessions", "row": 1, "message_indices": [2, 3], "repeated": True}, "no tool result in message 3"),
        ({"messages": [], "error_class": "none"}, "no tool result in message"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, row: object, told: str) -> None:
    collection(tmp_path)
    file = written(tmp_path, row)
    if isinstance(row, str):
        file.write_text(row)
    with pytest.raises(ConfigError) as caught:
        labelled(file)
    assert str(caught.value).startswith(f"{file}:1:")
    assert told in str(caught.value)


@needs_recordings
@pytest.mark.parametrize("name", ["labels_tool_results.jsonl", "labels_windows.jsonl"])
def test_every_shared_label_points_to_what_it_quotes(name: str) -> None:
    folder = shared()
    assert folder is not None
    file = folder / "data" / "traces" / name
    read = labelled(file)
    assert len(read.results) + len(read.windows) == len(file.read_text("utf-8").splitlines())
    for one in read.results:
        assert one.seen.tool == one.row["tool"]
        assert one.call == one.row["args"]
    for window in read.windows:
        assert [o.tool for o in window.seen] == [x["tool"] for x in window.row["calls"]]
