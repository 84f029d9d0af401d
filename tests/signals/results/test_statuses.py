"""Where a result's status comes from: flags, exit codes, what harnesses print, what the command line prints itself."""

# ruff: noqa: E501

import json
from typing import Any

import pytest
from msgspec.structs import replace
from tests.story import Story

from turnout.conversation import Conversation, Image, Media, Message, Opaque, Text, ToolCall, ToolResult
from turnout.signals import Observation, observe
from turnout.signals.task.repetition import outcome_of


@pytest.mark.parametrize(
    "echo", ['echo "exit: $?"', "echo exit: $?", "echo 'exit: '$?", 'echo "exit: ${PIPESTATUS[0]}"']
)
def test_a_status_that_the_command_prints_itself_counts(echo: str) -> None:
    red = Story().bash(f"./run; {echo}", "some output\nexit: 3", 0).last
    assert (red.status, red.evidence, red.exit_code) == ("failed", "exit_code", 3)
    green = Story().bash(f"./run; {echo}", "some output\nexit: 0", 0).last
    assert (green.status, green.error_class) == ("ok", "none")
    assert Story().bash("./run", "some output\nexit: 3", 0).last.status == "ok"


def test_a_failure_that_the_command_line_provides_for_is_an_answer() -> None:
    seen = Story().bash("python -c 'import numpy' 2>/dev/null || echo 'no numpy'", "no numpy", 0).last
    assert (seen.status, seen.error_class) == ("failed", "informational")
    assert Story().bash("python -c 'import numpy' || echo 'no numpy'", "", 0).last.status == "ok"
    told = "ModuleNotFoundError: No module named 'numpy'\nno numpy"
    assert Story().bash("python x.py || echo 'no numpy'", told, 0).last.error_class == "capability"
    assert Story().bash("which ruff || echo 'no ruff'", "no ruff", 0).last.error_class == "informational"


@pytest.mark.parametrize("text", ["Error: Tag not found.\nVersion: 1", "Error: nothing of the kind"])
def test_answers_of_mcp_servers_are_read_through_their_list_of_blocks(text: str) -> None:
    for shown in (text, json.dumps([{"type": "text", "text": text}]), json.dumps([{"text": text, "type": "text"}])):
        seen = Story().call("mcp__tasks__add_task", {"title": "x"}, shown).last
        assert (seen.status, seen.error_class, seen.evidence) == ("failed", "capability", "text")
    fine = json.dumps([{"type": "text", "text": "Added. Error: is a word in it"}])
    assert Story().call("mcp__tasks__add_task", {"title": "x"}, fine).last.error_class == "none"


def test_a_tool_error_around_a_shell_output_is_read_like_the_output() -> None:
    text = "Exit code 2\nls: cannot access 'x': No such file or directory"
    plain = Story().call("Bash", {"command": "ls x"}, text, is_error=True).last
    wrapped = Story().call("Bash", {"command": "ls x"}, f"<tool_use_error>{text}</tool_use_error>").last
    assert (wrapped.exit_code, wrapped.error_class, wrapped.error_kind) == (2, "informational", "absent_path")
    assert (plain.exit_code, plain.error_class, plain.error_kind) == (2, "informational", "absent_path")
    assert (plain.evidence, wrapped.evidence) == ("flag", "structure")


@pytest.mark.parametrize("text", ["No result was recorded for this call.", "(no result: the call was interrupted)"])
def test_a_stand_in_for_a_lost_result_is_no_result(text: str) -> None:
    for is_error in (True, None):
        assert Story().call("Bash", {"command": "x"}, text, is_error=is_error).seen == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Output: 3 passed in 0.02s", (None, True)),
        ("Command: pytest\nDirectory: (root)\nOutput: a\n3 passed in 0.02s\nError: (none)\nExit Code: 0\nSignal: 0", (0, True)),
        ("Command: pytest\nDirectory: a\nStdout: 1 failed in 0.02s\nStderr: x\nError: (none)\nExit Code: 1\nSignal: (none)"
         "\nBackground PIDs: (none)\nProcess Group PGID: 22", (1, False)),
    ],
)  # fmt: skip
def test_gemini_cli_labels_its_output(text: str, expected: tuple[int | None, bool]) -> None:
    seen = Story().call("run_shell_command", {"command": "pytest"}, text).last
    assert (seen.exit_code, seen.tests_passed) == expected


def test_the_provider_failing_inside_a_transcript_is_critical() -> None:
    text = "Unexpected error: litellm.APIConnectionError: overloaded\nTraceback (most recent call last):"
    seen = observe(
        Conversation((Message("tool", (ToolResult("x", (Text(text),), name="aider_output"),)),))
    ).observations
    assert (seen[0].error_class, seen[0].error_kind) == ("critical", "provider")


@pytest.mark.parametrize(
    ("command", "text", "critical"),
    [
        ("pip install torch", "Downloading torch-2.whl (887 MB)", True),
        ("conda env create -f e.yml", "Solving environment: ...working...", True),
        ("git clone https://example.com/x", "Cloning into 'x'...", True),
        ("python evaluate.py", "Fetching 12 files:  10%|#   | 12.1M/120M [00:50<10:01, 1.2MB/s]", True),
        ("python -c 'from datasets import load_dataset; load_dataset(\"x\")'", "", True),
        ("python evaluate.py", "epoch 3", False),
        ("pytest", "....", False),
    ],
)
def test_a_download_that_the_time_limit_kills_is_critical(command: str, text: str, critical: bool) -> None:
    killed = f"The last command <command>{command}</command> timed out and has been killed.\nThe output of the command was:\n <output>\n{text}\n</output>"
    for shown in (killed, f"Command timed out after 2m 0s\n{text}"):
        seen = Story().bash(command, shown).last
        assert (seen.status, seen.error_class) == ("failed", "critical" if critical else "capability")


def native(*items: tuple[str, dict[str, Any]], form: Any = "openai_responses") -> tuple[Observation, ...]:
    messages = [Message("user", (Text("Do it."),))]
    for kind, value in items:
        role: Any = "tool" if kind.endswith("_output") else "assistant"
        messages.append(Message(role, (Opaque(form, kind, {"type": kind, **value}),)))
    return observe(Conversation(tuple(messages))).observations


def test_built_in_shells_of_responses_are_observed() -> None:
    call = {"call_id": "a", "action": {"type": "exec", "command": ["bash", "-lc", "pytest -q"]}}
    local = native(
        ("local_shell_call", call), ("local_shell_call_output", {"call_id": "a", "output": "1 passed in 0.1s"})
    )
    assert [(o.tool, o.kind, o.tests_passed) for o in local] == [("local_shell", "test", True)]
    outputs = [{"stdout": "x", "stderr": "boom", "outcome": {"type": "exit", "exit_code": 3}}]
    asked = {"call_id": "b", "action": {"commands": ["./run", "echo x"]}}
    shell = native(("shell_call", asked), ("shell_call_output", {"call_id": "b", "output": outputs}))
    assert [(o.kind, o.exit_code, o.status, o.evidence) for o in shell] == [("execute", 3, "failed", "exit_code")]
    late = [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}]
    timed = native(("shell_call", asked), ("shell_call_output", {"call_id": "b", "output": late}))
    assert (timed[0].status, timed[0].error_kind) == ("failed", "timeout")


def test_built_in_patches_of_responses_are_observed() -> None:
    operation = {"type": "update_file", "path": "src/a.py", "diff": "@@\n-old\n+newer\n"}
    call = ("apply_patch_call", {"call_id": "a", "operation": operation})
    good = native(call, ("apply_patch_call_output", {"call_id": "a", "status": "completed"}))[0]
    bad = native(call, ("apply_patch_call_output", {"call_id": "a", "status": "failed", "output": "no match"}))[0]
    assert (good.kind, good.target, good.change, good.change_size, good.status) == (
        "edit",
        "src/a.py",
        "verified",
        8,
        "ok",
    )
    assert (bad.change, bad.change_size, bad.status, bad.error_kind) == (None, None, "failed", "edit_failed")


def test_calls_that_servers_ran_are_observed() -> None:
    value = {"id": "m", "server_label": "db", "name": "run_query", "arguments": "{}", "error": "boom", "output": None}
    failed = native(("mcp_call", value))
    assert [(o.tool, o.status) for o in failed] == [("db__run_query", "failed")]
    assert native(("mcp_call", {**value, "error": None, "output": "3 rows"}))[0].status == "ok"
    use = ("server_tool_use", {"id": "s", "name": "bash_code_execution", "input": {"command": "pytest"}})
    content = {"type": "bash_code_execution_result", "stdout": "1 failed in 0.1s", "stderr": "", "return_code": 1}
    ran = native(
        use, ("bash_code_execution_tool_result", {"tool_use_id": "s", "content": content}), form="anthropic_messages"
    )
    assert [(o.kind, o.exit_code, o.tests_failed) for o in ran] == [("test", 1, 1)]


def test_pictures_are_never_the_same_output() -> None:
    def looked(*parts: Any) -> Observation:
        messages = (Message("assistant", (ToolCall("a", "look", "{}"),)), Message("tool", (ToolResult("a", parts),)))
        return observe(Conversation(messages)).observations[0]

    image = Image(Media("base64", "AAAA", "image/png"))
    native = looked(Text("done"), image)
    chat = looked(Text("done\n[image: see the next user message]"))
    assert (native.digest, native.size) == (chat.digest, chat.size) == ("", 4)
    assert looked(Text("done")).digest
    again = replace(native, message=7)
    assert outcome_of(native) != outcome_of(again)


def test_a_free_form_call_and_its_function_form_are_the_same_call() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    raw = Story().call("apply_patch", patch, "ok").last
    assert raw.call == Story().call("apply_patch", {"input": patch}, "ok").last.call


@pytest.mark.parametrize(
    ("tool", "arguments", "size"),
    [
        ("Edit", {"file_path": "a", "old_string": "abc", "new_string": "de"}, 5),
        ("Write", {"file_path": "a", "content": "abcd"}, 4),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "a", "new_string": "bc"}, {"old_string": "", "new_string": "d"}]}, 4),
        ("apply_patch", "*** Begin Patch\n*** Update File: a\n@@\n-abc\n+de\n ctx\n*** End Patch", 5),
        ("bash", {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a\n@@\n-abc\n+de\n*** End Patch\nE"}, 5),
        ("str_replace_editor", {"command": "create", "path": "/a", "file_text": "abc"}, 3),
        ("bash", {"command": "cat <<'E' > a.py\nx = 1\nE"}, 6),
        ("delete_file", {"path": "a"}, None),
        ("bash", {"command": "sed -i s/a/b/ x"}, None),
    ],
)  # fmt: skip
def test_how_much_a_change_moves(tool: str, arguments: Any, size: int | None) -> None:
    seen = Story().call(tool, arguments, "done", is_error=False).last
    assert (seen.change, seen.change_size) == ("verified", size)
    assert Story().call(tool, arguments, "no", is_error=True).last.change_size is None


def test_retries_point_at_what_they_try_again() -> None:
    story = Story().bash("python x.py", "ValueError: x", 1).bash("ls", "a", 0).bash("python x.py", "ValueError: x", 1)
    story.bash("python x.py", "fine", 0).bash("python x.py", "fine", 0)
    assert [o.retry_of for o in story.seen] == [0, 0, 2, 1, 0]
    edits = Story().call("Edit", {"file_path": "a", "old_string": "1", "new_string": "2"}, "no", is_error=True)
    edits.call("Edit", {"file_path": "a", "old_string": "3", "new_string": "2"}, "ok", is_error=False)
    edits.call("Edit", {"file_path": "b", "old_string": "3", "new_string": "2"}, "ok", is_error=False)
    assert [o.retry_of for o in edits.seen] == [0, 1, 0]


def test_observations_name_their_agent() -> None:
    conversation = Story().bash("ls", "a", 0).conversation
    assert [o.agent for o in observe(conversation, agent="reviewer").observations] == ["reviewer"]
    assert [o.agent for o in observe(conversation).observations] == [""]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Command timed out after 2m 0s\nsome output", 120.0),
        ("Command timed out after 30s", 30.0),
        ("command timed out after 10000 milliseconds", 10.0),
        ("exec command timed out after 1500 ms", 1.5),
        ("Exit code: 0\nWall time: 2.5 seconds\nOutput:\nfine", 2.5),
        (json.dumps({"output": "x", "metadata": {"exit_code": 0, "duration_seconds": 0.25}}), 0.25),
        ("fine", None),
    ],
)
def test_how_long_a_call_took_where_the_harness_says_so(text: str, seconds: float | None) -> None:
    assert Story().bash("./run", text).last.duration_s == seconds
