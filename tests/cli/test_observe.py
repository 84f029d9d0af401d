"""`turnout observe`: one observation per tool result, in order."""

import json
from pathlib import Path

import pytest
from tests.recorded import needs_recordings, rows, shared

from turnout.cli.app import run

CONTRACT = {
    "conversation", "message", "tool", "kind", "status", "error_class", "error_kind", "tests_passed", "fingerprint", "evidence",
}  # fmt: skip


def call(number: int, command: str) -> dict[str, object]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str, **known: object) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text, **known}


def written(tmp_path: Path, *conversations: list[dict[str, object]]) -> Path:
    file = tmp_path / "c.jsonl"
    file.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in conversations))
    return file


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_flags_and_return_codes_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(
        tmp_path,
        [
            {"role": "user", "content": "Build it."},
            call(1, "make"),
            result(1, "", is_error=True),
            {"role": "user", "content": "Again, please."},
            call(2, "make"),
            result(2, "done", returncode=0),
        ],
        [{"role": "user", "content": "Hello"}],
        [{"role": "user", "content": "Try."}, call(3, "./run"), result(3, "", returncode=3)],
    )
    assert run(["observe", str(file)]) == 0
    seen = printed(capsys)
    assert all(set(row) >= CONTRACT for row in seen)
    assert [(row["conversation"], row["message"], row["status"]) for row in seen] == [
        (0, 2, "failed"),
        (0, 5, "ok"),
        (2, 2, "failed"),
    ]
    assert [row["evidence"] for row in seen] == ["flag", "exit_code", "exit_code"]


def test_long_stretches_between_user_turns_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Go on."}]
    for number in range(200):
        messages += [call(number, f"echo {number}"), result(number, f"{number}\n", returncode=0)]
    assert run(["observe", str(written(tmp_path, messages))]) == 0
    assert [row["message"] for row in printed(capsys)] == list(range(2, 401, 2))


def test_a_bad_line_is_named_after_the_good_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, [{"role": "user", "content": "Try."}, call(3, "x"), result(3, "", returncode=3)])
    file.write_text(file.read_text() + "{\n")
    assert run(["observe", str(file)]) == 2
    caught = capsys.readouterr()
    assert len(caught.out.splitlines()) == 1
    assert f"{file}:2:" in caught.err


def test_the_table_shows_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, [{"role": "user", "content": "Try."}, call(3, "make"), result(3, "", returncode=3)])
    assert run(["observe", str(file), "--table"]) == 0
    out = capsys.readouterr().out
    assert "bash" in out
    assert "failed" in out


@needs_recordings
def test_every_result_of_the_recorded_sessions_is_observed_once_and_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shared()
    assert folder is not None
    assert run(["observe", str(folder / "data" / "traces" / "sessions_coding_agents.jsonl.gz")]) == 0
    seen = [(row["conversation"], row["message"]) for row in printed(capsys)]
    expected = [
        (line, index)
        for line, row in enumerate(rows("traces/sessions_coding_agents.jsonl.gz"))
        for index, message in enumerate(row["messages"])
        if message["role"] == "tool"
    ]
    assert [pair for pair in seen if pair in set(expected)] == expected
    assert seen == sorted(seen)
