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


LABELS = [
    {"id": "a", "team": "blue", "tool": "bash", "args": {"command": "pytest -q"}, "result": "2 passed in 0.10s",
     "error_class": "none", "tool_kind": "test", "tests_passed": True},
    {"id": "b", "team": "blue", "tool": "bash", "args": {"command": "make"}, "result": "", "returncode": 2,
     "error_class": "capability", "tool_kind": "execute", "tests_passed": False},
    {"id": "c", "team": "red", "tool": "bash", "args": {"command": "ls [x]"}, "result": "a.py", "returncode": 0,
     "error_class": "capability", "tool_kind": "execute", "note": "the [wrong] label"},
]  # fmt: skip
WINDOW = {
    "id": "w",
    "calls": [{"tool": "bash", "args": {"command": "date"}, "result": str(i), "returncode": 0} for i in range(4)],
    "spinning": True,
}


def labels(tmp_path: Path, *rows: object) -> str:
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def test_labels_give_figures_with_intervals_and_the_confusion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = labels(tmp_path, *LABELS)
    assert run(["observe", "--labels", file]) == 0
    out = capsys.readouterr().out
    figures = next(line for line in out.splitlines() if "capability or critical" in line)
    # Found is one of two labelled, and nothing else: P 1/1, R 1/2, F1 2/3, with their Wilson intervals.
    assert " ".join(figures.split()) == (
        "capability or critical 1.00 [0.21 1.00] 0.50 [0.09 0.91] 0.67 [0.17 0.95] 2 1 1"
    )
    assert "tool kind: 2 of 3 agree" in out
    assert next(line for line in out.splitlines() if line.startswith(" capability ")).split()
    assert "Wilson" in out
    assert "[wrong]" not in out


def test_errors_list_each_miss_with_call_evidence_and_what_was_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["observe", "--labels", labels(tmp_path, *LABELS), "--errors"]) == 0
    told = capsys.readouterr().out.split("\nc ")[1]
    assert "error_class capability, observed none" in told
    assert "tool_kind execute, observed" in told
    assert '"command": "ls [x]"' in told or '"command":"ls [x]"' in told
    assert "exit_code" in told
    assert "the [wrong] label" in told
    assert run(["observe", "--labels", labels(tmp_path, LABELS[0]), "--errors"]) == 0
    assert "no label and observation differ" in capsys.readouterr().out


def test_labels_as_json_hold_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = labels(tmp_path, *LABELS, WINDOW)
    assert run(["observe", "--labels", file, "--errors", "--json"]) == 0
    (told,) = printed(capsys)
    assert told["results"] == 3
    matters = told["scores"]["capability or critical"]  # type: ignore[index]
    assert (matters["labelled"], matters["called"], matters["right"]) == (2, 1, 1)
    assert told["confusion"]["capability"]["none"] == 1  # type: ignore[index]
    assert told["windows"]["spinning"]["labelled"] == 1  # type: ignore[index]
    (miss,) = (one for one in told["errors"] if one["id"] == "c")  # type: ignore[attr-defined]
    assert miss["expected"]["error_class"] == "capability"
    assert miss["observed"]["error_class"] == "none"


def test_figures_come_apart_by_a_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = labels(tmp_path, *LABELS, WINDOW)
    assert run(["observe", "--labels", file, "--by", "team", "--json"]) == 0
    (told,) = printed(capsys)
    groups = told["groups"]
    assert {name: (one["results"], one["window_count"]) for name, one in groups.items()} == {  # type: ignore[attr-defined]
        "(none)": (0, 1), "blue": (2, 0), "red": (1, 0),
    }  # fmt: skip
    assert run(["observe", "--labels", file, "--by", "team"]) == 0
    assert f"{file}, team red: 1 result" in capsys.readouterr().out
    assert run(["observe", "--labels", file, "--where", "team=blue", "--json"]) == 0
    (told,) = printed(capsys)
    assert (told["results"], told["window_count"]) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give FILE.jsonl, or --labels FILE"),
        (["c.jsonl", "--labels", "labels.jsonl"], "do not go together"),
        (["c.jsonl", "--errors"], "go with --labels"),
        (["--labels", "absent.jsonl"], "absent.jsonl"),
        (["--labels", "labels.jsonl", "--data", "absent"], "no such folder"),
        (["--labels", "labels.jsonl"], "holds no labels"),
        (["--labels", "labels.jsonl", "--where", "team=green"], "holds no labels with team=green"),
        (["--labels", "labels.jsonl", "--where", "team"], "expected FIELD=VALUE"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(["observe", *arguments]) == 2
    assert told in capsys.readouterr().err


CONFIG = """
[upstreams.local]
format = "openai_chat"
base_url = "http://127.0.0.1:8000/v1"
[targets.small]
upstream = "local"
model = "small-model"
[routes.coder]
type = "passthrough"
target = "small"
[[signals.patterns]]
match = "^quota of .* exhausted"
class = "critical"
kind = "quota_exhausted"
"""


def test_a_configuration_says_what_ones_own_tools_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "turnout.toml"
    config.write_text(CONFIG)
    told = "quota of the month exhausted"
    file = written(tmp_path, [{"role": "user", "content": "Go."}, call(1, "./deploy"), result(1, told, returncode=0)])
    label = labels(
        tmp_path, {"tool": "bash", "args": {"command": "./deploy"}, "result": told, "error_class": "critical"}
    )
    seen = []
    for more in ([], ["--config", str(config)]):
        assert run(["observe", str(file), *more]) == 0
        seen.append(printed(capsys)[0]["error_class"])
        assert run(["observe", "--labels", label, "--json", *more]) == 0
        seen.append(printed(capsys)[0]["scores"]["critical"]["right"])  # type: ignore[index]
    assert seen == ["none", 0, "critical", 1]
