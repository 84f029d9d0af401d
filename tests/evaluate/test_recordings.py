"""Conversation files: what is read from them, and what is said of lines that hold none."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import needs_recordings, rows

from turnout.conversation import ToolResult
from turnout.errors import ConfigError
from turnout.evaluate.recordings import conversations, read_conversation

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "false"}'}}
ROW: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "", "is_error": True, "returncode": 1},
    ],
    "headers": {"X-Claude-Code-Session-Id": "s1"},
}


def results(row: dict[str, Any]) -> list[ToolResult]:
    recorded = read_conversation(json.dumps(row).encode())
    return [p for m in recorded.conversation.messages for p in m.parts if isinstance(p, ToolResult)]


def test_flags_and_return_codes_reach_the_result() -> None:
    (result,) = results(ROW)
    assert result.is_error is True
    assert result.extra["returncode"] == 1
    assert result.call_id == "c1"


def test_what_the_recorder_did_not_know_stays_unknown() -> None:
    plain = {**ROW, "messages": [*ROW["messages"][:3], {"role": "tool", "tool_call_id": "c1", "content": "x"}]}
    (result,) = results(plain)
    assert result.is_error is None
    assert result.extra == {}


def test_messages_keep_their_place_and_headers_their_value() -> None:
    recorded = read_conversation(json.dumps(ROW).encode(), 4)
    assert recorded.line == 4
    assert list(recorded.conversation.roles) == ["system", "user", "assistant", "tool"]
    assert [m.role for m in recorded.conversation.messages] == list(recorded.conversation.roles)
    assert recorded.headers == {"x-claude-code-session-id": "s1"}


def test_plain_and_zipped_files_read_alike(tmp_path: Path) -> None:
    text = (json.dumps(ROW) + "\n\n" + json.dumps(ROW) + "\n").encode()
    plain, zipped = tmp_path / "c.jsonl", tmp_path / "c.jsonl.gz"
    plain.write_bytes(text)
    zipped.write_bytes(gzip.compress(text))
    lines = [recorded.line for recorded in conversations(plain)]
    assert lines == [0, 2]
    assert [recorded.line for recorded in conversations(zipped)] == lines


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"messages": 3}',
        '{"messages": [{"role": "wizard"}]}',
        '{"messages": [7]}',
        '{"messages": [{"role": "user", "content": 7}]}',
    ],
)
def test_a_line_that_holds_no_conversation_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + line + "\n")
    with pytest.raises(ConfigError) as caught:
        list(conversations(file))
    assert (caught.value.file, caught.value.line) == (str(file), 2)


@needs_recordings
def test_recorded_sessions_can_be_read() -> None:
    sessions = rows("traces/sessions_coding_agents.jsonl.gz")
    for row in sessions:
        recorded = read_conversation(json.dumps(row).encode())
        assert len(recorded.conversation.messages) == len(row["messages"])
        found = sum(isinstance(p, ToolResult) for m in recorded.conversation.messages for p in m.parts)
        assert found == sum(message["role"] == "tool" for message in row["messages"])
    assert sessions


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "marked.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\r\n" + json.dumps(ROW).encode())
    assert [recorded.line for recorded in conversations(file)] == [0, 1]
