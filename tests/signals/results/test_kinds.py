"""Every kind of input that phrase tables read wrongly, read rightly."""

import json

import pytest
from tests.story import Story

from turnout.conversation import Conversation, Message, Opaque, Text, ToolCall, ToolResult
from turnout.signals import observe, progress

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/app/x.py", line 3, in <module>\n    f()\nValueError: bad value'
)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "/app/error.log"}),
        ("Grep", {"pattern": "Error", "path": "/app"}),
        ("WebFetch", {"url": "https://example.com", "prompt": "read"}),
        ("read_file", {"path": "error.log"}),
        ("Task", {"prompt": "look into it"}),
    ],
)
def test_text_that_merely_talks_about_failures_is_none(tool: str, arguments: dict[str, str]) -> None:
    text = f"{TRACEBACK}\nError: connection refused\nout of memory\n3 failed, 1 passed in 0.1s"
    seen = Story().call(tool, arguments, text).last
    assert (seen.error_class, seen.fingerprint, seen.tests_passed) == ("none", "", None)
    assert seen.status != "failed"


@pytest.mark.parametrize(
    "command", ["cat error.log", "grep -rn Error src", "git log -5", "sed -n 1,40p error.log", "rg panic | head -5"]
)
def test_what_a_shell_reads_with_exit_zero_is_none(command: str) -> None:
    assert Story().bash(command, TRACEBACK, 0).last.error_class == "none"


def test_what_a_shell_reads_with_no_exit_code_is_none() -> None:
    assert Story().bash("cat error.log", TRACEBACK).last.error_class == "none"


def test_a_flag_decides_whatever_the_text() -> None:
    for text in ("", "all good", "5 passed in 0.1s"):
        seen = Story().call("Bash", {"command": "pytest"}, text, is_error=True).last
        assert (seen.status, seen.evidence, seen.error_class) == ("failed", "flag", "capability")
        assert seen.fingerprint
        assert seen.tests_passed is False


def test_a_flagged_failure_with_empty_text_is_a_failure_for_every_tool() -> None:
    for tool in ("Bash", "Edit", "Write", "Read", "mcp__db__query", "whatever"):
        assert Story().call(tool, {}, "", is_error=True).last.status == "failed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code: 2\nWall time: 0.4 seconds\nOutput:\nboom", 2),
        ("Chunk ID: 1f\nWall time: 1.2 seconds\nProcess exited with code 3\nOutput:\nboom", 3),
        (json.dumps({"output": "boom", "metadata": {"exit_code": 4, "duration_seconds": 0.2}}), 4),
        ("Exit code 5\nboom", 5),
        ("<returncode>6</returncode>\n<output>\nboom\n</output>", 6),
        ("boom\n[The command completed with exit code 7.]\n[Current working directory: /app]", 7),
        (json.dumps({"returncode": 8, "output": "boom"}), 8),
        ("Command: x\nDirectory: (root)\nOutput: boom\nError: (none)\nExit Code: 9\nSignal: 0", 9),
    ],
)
def test_exit_codes_as_harnesses_print_them(text: str, code: int) -> None:
    seen = Story().bash("./run", text).last
    assert (seen.exit_code, seen.status, seen.evidence) == (code, "failed", "exit_code")
    zero = (
        text.replace(str(code), "0", 1)
        if "Wall" not in text
        else text.replace(f"ode: {code}", "ode: 0").replace(f"ode {code}", "ode 0")
    )
    zero = (
        zero.replace(f": {code}", ": 0")
        if '"' in zero or "Exit Code" in zero
        else zero.replace(f"code {code}.", "code 0.")
    )
    assert Story().bash("./run", zero).last.status == "ok"


def test_exit_code_of_the_recorded_row() -> None:
    assert Story().call("bash", {"command": "./run"}, "boom", returncode=3).last.exit_code == 3


def test_exit_code_zero_in_words_is_success() -> None:
    assert Story().bash("./run", "Process exited with code 0\nOutput:\nfine").last.status == "ok"


def test_a_mention_of_an_exit_code_deep_in_the_output_is_not_the_exit_code() -> None:
    assert (
        Story().bash("cat run.log", "first line\nsecond line\nExit code: 3\n" + "more\n" * 200).last.exit_code is None
    )


def test_claude_tool_use_error() -> None:
    seen = (
        Story()
        .call("Edit", {"file_path": "a.py"}, "<tool_use_error>String to replace not found in file.</tool_use_error>")
        .last
    )
    assert (seen.status, seen.error_class, seen.error_kind, seen.change) == (
        "failed",
        "capability",
        "edit_failed",
        None,
    )


@pytest.mark.parametrize(
    ("command", "code", "text", "expected"),
    [
        ("grep -n foo src/a.py", 1, "", ("informational", "no_match")),
        ("cd /app && rg foo", 1, "", ("informational", "no_match")),
        ("grep '[' a", 2, "grep: Invalid regular expression", ("capability", "usage")),
        ("diff a b", 1, "1c1\n< a\n> b", ("none", "differs")),
        ("test -f x", 1, "", ("informational", "false")),
        ("[ -f x ]", 1, "", ("informational", "false")),
        ("which ruff", 1, "", ("informational", "absent")),
        ("ls nope", 2, "ls: cannot access 'nope': No such file or directory", ("informational", "absent_path")),
        ("cat nope", 1, "cat: nope: No such file or directory", ("informational", "absent_path")),
        ("timeout 5 ./slow", 124, "", ("capability", "timeout")),
        ("./x", 126, "bash: ./x: Permission denied", ("capability", "permission_denied")),
        ("foo", 127, "bash: foo: command not found", ("capability", "command_not_found")),
        ("./x", 137, "Killed", ("capability", "killed")),
        ("./x", 139, "Segmentation fault (core dumped)", ("capability", "crash")),
        ("pytest -k nothing", 5, "=== no tests ran in 0.01s ===", ("informational", "no_tests")),
        ("gh pr checks 4", 8, "Test\tpending\t0\thttps://x", ("informational", "pending")),
        ("gh pr checks 4", 1, "Test\tfail\t23s\thttps://x", ("capability", "ci_failure")),
        ("git diff --exit-code", 1, "diff --git a b", ("none", "differs")),
    ],
)
def test_exit_codes_that_are_answers(command: str, code: int, text: str, expected: tuple[str, str]) -> None:
    seen = Story().bash(command, text, code).last
    assert (seen.error_class, seen.error_kind) == expected
    assert bool(seen.fingerprint) == (expected[0] in ("capability", "critical"))


def test_pipes_and_masked_statuses_are_unknown() -> None:
    red = "== FAILURES ==\n=== 2 failed, 3 passed in 0.20s ==="
    for command in ("pytest | tail -5", "pytest || true", "pytest; echo done", "python x.py 2>&1 | head"):
        assert Story().bash(command, red, 0).last.error_class == "capability"
    assert Story().bash("make 2>&1 | tail", "a.c:3:1: error: expected ';'", 0).last.error_kind == "compile"
    assert Story().bash("make", "warning: error: in prose only", 0).last.error_class == "none"


def test_a_compaction_counts_only_at_its_real_place() -> None:
    marker = "This session is being continued from a previous conversation that ran out of context."
    assert observe(Conversation((Message("user", (Text(marker),)),))).compacted
    talk = Story(f"What does '{marker}' mean?").bash("ls", "a", 0)
    assert not observe(talk.conversation).compacted
    assert not observe(Story().call("Read", {"file_path": "x"}, marker).conversation).compacted
    assert not observe(Story().say(marker, "assistant").conversation).compacted
    codex = Message("assistant", (Opaque("openai_responses", "compaction", {"encrypted_content": "x"}),))
    assert observe(Conversation((codex, Message("assistant", (Text("on"),))))).compacted
    summary = "Another language model started to solve this problem and produced a summary of its thinking process."
    assert observe(Conversation((Message("user", (Text("do it"),)), Message("user", (Text(summary),))))).compacted
    later = Story(marker).bash("ls", "a", 0).say("Now do the other thing.").bash("ls", "a", 0)
    assert not observe(later.conversation).compacted


def test_only_failures_have_fingerprints() -> None:
    assert Story().bash("python ok.py", "fine", 0).last.fingerprint == ""
    assert Story().bash("python x.py", TRACEBACK, 1).last.fingerprint


def test_the_same_command_succeeding_clears_its_failure() -> None:
    story = Story().bash("python x.py", TRACEBACK, 1)
    assert progress(observe(story.conversation), 3).severity == 0.7
    story.bash("python x.py", "fine", 0)
    assert progress(observe(story.conversation), 3).severity == 0
    story.bash("python x.py", TRACEBACK, 1)
    assert progress(observe(story.conversation), 3).severity == 0.7


def test_a_real_user_turn_is_a_boundary() -> None:
    signals = observe(Story().bash("python x.py", TRACEBACK, 1).say("Never mind, do something else.").conversation)
    assert (signals.observations, signals.depth, signals.user_turn, signals.results) == ((), 0, True, 1)


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>\nThe TODO list is empty.\n</system-reminder>",
        "<command-message>init is running</command-message>\n<command-name>/init</command-name>",
        "<local-command-stdout>ok</local-command-stdout>",
        "<environment_context>\n<cwd>/app</cwd>\n</environment_context>",
        "<user_instructions>\nBe brief.\n</user_instructions>",
        "<user-prompt-submit-hook>hi</user-prompt-submit-hook>",
        "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>x</INSTRUCTIONS>",
        "[Request interrupted by user for tool use]",
    ],
)
def test_what_a_harness_says_is_no_user_turn(text: str) -> None:
    signals = observe(Story().bash("python x.py", TRACEBACK, 1).say(text).conversation)
    assert len(signals.observations) == 1
    assert not signals.user_turn


def test_text_beside_an_envelope_is_a_user_turn() -> None:
    said = "<system-reminder>x</system-reminder>\nPlease add a test."
    assert observe(Story().bash("python x.py", TRACEBACK, 1).say(said).conversation).user_turn


def test_waiting_for_something_is_patience_and_has_an_end() -> None:
    story = Story()
    for _ in range(3):
        story.bash(
            "sleep 5 && curl -s localhost:8080/health",
            "curl: (7) Failed to connect to localhost port 8080: Connection refused",
            7,
        )
    found = progress(observe(story.conversation), 3)
    assert (found.severity, found.repeated) == (0.0, 0)
    for _ in range(4):
        story.bash(
            "sleep 5 && curl -s localhost:8080/health",
            "curl: (7) Failed to connect to localhost port 8080: Connection refused",
            7,
        )
    assert progress(observe(story.conversation), 3).severity == 0.7


@pytest.mark.parametrize(
    "text",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "[Request interrupted by user for tool use]",
        "The user doesn't want to take this action right now.",
        "exec command rejected by user",
    ],
)
def test_what_the_user_declines_is_its_own_kind(text: str) -> None:
    seen = Story().call("Bash", {"command": "rm -rf build"}, text, is_error=True).last
    assert (seen.error_class, seen.error_kind, seen.fingerprint) == ("informational", "declined", "")


def test_different_failures_under_one_banner_differ() -> None:
    other = TRACEBACK.replace("ValueError: bad value", "KeyError: 'name'")
    first = Story().bash("python x.py", TRACEBACK, 1).last
    assert first.fingerprint != Story().bash("python x.py", other, 1).last.fingerprint


def test_one_failure_with_changing_tokens_is_the_same() -> None:
    def failure(path: str, port: int, uid: str, when: str, address: str) -> str:
        return (
            Story()
            .bash(
                "python x.py",
                f"Traceback (most recent call last):\nOSError: {path} at {when} {uid} port {port} object {address}",
                1,
            )
            .last.fingerprint
        )

    assert failure(
        "/tmp/a1/b.py", 8080, "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "2025-01-02T10:11:12Z", "0x7f1a"
    ) == failure("/var/x/c.py", 19999, "aaaaaaaa-8b86-d011-b42d-00cf4fc964aa", "2026-11-12T20:31:52Z", "0xdeadbeef")


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("update_reservation_flights", "edit"),
        ("mcp__files__createDocument", "write"),
        ("gitmcp__fetch_generic_url_content", "read"),
        ("searchIssues", "search"),
        ("runPipeline", "execute"),
        ("task-master-ai__set_task_status", "plan"),
        ("memory__add_observations", "other"),
        ("frobnicate", "other"),
    ],
)
def test_unlisted_tools_are_read_by_their_verbs(tool: str, kind: str) -> None:
    assert Story().call(tool, {"a": 1}, "ok").last.kind == kind


def test_operators_may_override_the_kind() -> None:
    signals = observe(Story().call("frobnicate", {"a": 1}, "ok").conversation)
    assert progress(signals, 3).production == 0
    assert progress(signals, 3, {"frobnicate": "edit"}).production == 1


def test_read_only_work_is_no_stall() -> None:
    story = Story("Explain the code base.")
    for i in range(20):
        story.call("Read", {"file_path": f"/app/{i}.py"}, f"x = {i}")
    found = progress(observe(story.conversation), 3)
    assert (found.spinning, found.exploring) == (0, 0)


def test_the_same_call_with_the_same_output_spins_without_any_error_word() -> None:
    story = Story()
    for _ in range(10):
        story.bash("./build/app --probe", "state: idle", 0)
    assert progress(observe(story.conversation), 3).spinning == 1


def test_alternating_calls_spin() -> None:
    story = Story()
    for i in range(12):
        story.bash(f"./app --mode {i % 2}", f"state: {i % 2}", 0)
    assert progress(observe(story.conversation), 3).spinning == 1


def test_a_read_after_an_edit_is_no_repeat() -> None:
    story = Story()
    for i in range(6):
        story.call("Read", {"file_path": "/app/a.py"}, "same")
        story.call("Edit", {"file_path": "/app/a.py", "old_string": str(i)}, "The file /app/a.py has been updated.")
    story.call("Read", {"file_path": "/app/a.py"}, "same")
    assert progress(observe(story.conversation), 3).spinning == 0


def test_a_failure_that_comes_back_outside_the_window_is_found() -> None:
    story = Story()
    for i in range(3):
        story.bash("python x.py", TRACEBACK, 1)
        for j in range(3):
            story.call("Read", {"file_path": f"/app/{i}{j}.py"}, str(i * 10 + j))
    story.bash("python x.py", TRACEBACK, 1)
    assert progress(observe(story.conversation), 3).repeated == 4


def test_fewer_failing_tests_are_progress_even_when_red() -> None:
    def red(count: int) -> str:
        return f"FAILED tests/t.py::test_{count}\n=== {count} failed, 5 passed in 0.20s ==="

    story = Story().bash("pytest -q", red(5), 1)
    assert progress(observe(story.conversation), 3).severity == 0.7
    assert progress(observe(story.bash("pytest -q", red(2), 1).conversation), 1).severity == 0.3
    assert progress(observe(story.bash("pytest -q", red(4), 1).conversation), 1).severity == 0.7


def test_failing_tests_that_are_worked_off_are_no_repeated_failure() -> None:
    story = Story()
    for count in (9, 4, 1):
        story.bash("pytest -q", f"{count} failed, {12 - count} passed in 1.00s", 1)
    seen = progress(observe(story.conversation), 3)
    assert (seen.repeated, seen.failures, seen.severity) == (0, 1, 0.3)
    grown = progress(observe(story.bash("pytest -q", "12 failed in 1.00s", 1).conversation), 3)
    assert (grown.repeated, grown.failures, grown.severity) == (0, 2, 0.7)
    assert seen.trend > 0 > grown.trend


def test_production_is_successful_change_only() -> None:
    assert Story().call("Edit", {"file_path": "a"}, "String to replace not found", is_error=True).last.change is None
    assert Story().bash("grep x y > /dev/null 2>&1", "", 0).last.change is None
    assert Story().bash("pytest 2>/dev/null", "1 passed in 0.1s", 0).last.change is None
    assert Story().bash("sed -i s/a/b/ x.py", "", 0).last.change == "verified"
    assert Story().bash("cat > x.py <<'EOF'\nx = 1\nEOF", "", 0).last.change == "verified"
    assert Story().call("Write", {"file_path": "a"}, "File created successfully at: a").last.change == "verified"


def test_a_failed_edit_is_soft_and_hard_when_repeated() -> None:
    story = Story().call(
        "Edit", {"file_path": "a", "old_string": "x"}, "String to replace not found in file.", is_error=True
    )
    assert progress(observe(story.conversation), 3).severity == 0.3
    story.call("Edit", {"file_path": "a", "old_string": "y"}, "String to replace not found in file.", is_error=True)
    assert progress(observe(story.conversation), 3).severity == 0.7


def test_pass_words_in_prose_are_no_green_tests() -> None:
    for text in ("all checks passed in review", "the test passed", "✓ looks good", "5 passed the bar"):
        assert Story().bash("python notes.py", text, 0).last.tests_passed is not True


@pytest.mark.parametrize(
    ("text", "kind", "error_class"),
    [
        ("thread 'main' panicked at src/main.rs:2:5:\nboom", "panic", "capability"),
        ("error[E0308]: mismatched types", "compile", "capability"),
        ("panic: runtime error: index out of range [5]\n\ngoroutine 1 [running]:", "panic", "capability"),
        ("src/app.ts(3,5): error TS2322: Type 'x' is not assignable", "compile", "capability"),
        (
            'Exception in thread "main" java.lang.NullPointerException\n\tat Main.main(Main.java:3)',
            "exception",
            "capability",
        ),
        ("app.rb:3:in `foo': undefined method (NoMethodError)", "exception", "capability"),
        ("main.c:3:1: error: expected ';' before '}'", "compile", "capability"),
        ("Unhandled exception. System.NullReferenceException: Object reference", "exception", "capability"),
        ("cp: error writing 'x': No space left on device", "disk_full", "critical"),
        ("curl: (6) Could not resolve host: example.com", "unreachable", "critical"),
        ("MemoryError", "oom", "critical"),
        ("Fatal Python error: init_fs_encoding", "environment", "critical"),
        ("API Error: 529 overloaded_error", "provider", "critical"),
    ],
)
def test_the_main_ecosystems_are_read_by_anchored_lines(text: str, kind: str, error_class: str) -> None:
    seen = Story().bash("./run-it", text, 1).last
    assert (seen.error_kind, seen.error_class) == (kind, error_class)


def test_a_download_killed_by_the_time_limit_is_critical_and_a_slow_program_is_not() -> None:
    text = (
        "The last command <command>{}</command> timed out and has been killed.\nThe output was:\n <output>\n\n</output>"
    )
    slow = Story().bash("python solve.py", text.format("python solve.py")).last
    late = Story().bash("pip install torch", text.format("pip install torch")).last
    assert (slow.error_class, slow.error_kind) == ("capability", "timeout")
    assert (late.error_class, late.error_kind) == ("critical", "download_timeout")


def test_parallel_calls_are_paired_by_id() -> None:
    calls = (ToolCall("a", "Bash", '{"command": "pytest"}'), ToolCall("b", "Read", '{"file_path": "x"}'))
    results = (ToolResult("b", (Text("Error: in the file"),)), ToolResult("a", (Text("1 passed in 0.1s"),)))
    seen = observe(Conversation((Message("assistant", calls), Message("user", results)))).observations
    assert [(o.tool, o.part) for o in seen] == [("Read", 0), ("Bash", 1)]
    assert seen[1].tests_passed is True


def test_a_result_without_its_call_is_a_question_mark() -> None:
    seen = observe(Conversation((Message("tool", (ToolResult("gone", (Text(TRACEBACK),)),)),))).observations
    assert (seen[0].tool, seen[0].kind, seen[0].error_class) == ("?", "other", "none")


def test_evidence_holds_no_secret() -> None:
    seen = (
        Story()
        .bash(
            "./deploy", "fatal: authorization: sk-abcdefghijklmnop1234 refused for https://me:hunter22@example.com", 1
        )
        .last
    )
    assert "sk-abc" not in seen.evidence_text
    assert "hunter22" not in seen.evidence_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('[{"conclusion":"failure","status":"completed"}]', "ci_failure"),
        ('[{"conclusion":"","status":"in_progress"},{"conclusion":"failure","status":"completed"}]', "pending"),
        ('[{"conclusion":"success","status":"completed"},{"conclusion":"failure","status":"completed"}]', ""),
        ("build\tfail\t2m\thttps://x\nlint\tpass\t1s\thttps://x", "ci_failure"),
        ("build\tpass\t2m\thttps://x", ""),
    ],
)
def test_checks_of_continuous_integration(text: str, kind: str) -> None:
    assert Story().call("Bash", {"command": "gh run list --json conclusion,status"}, text).last.error_kind == kind


def test_warnings_alone_are_no_lint_failure() -> None:
    assert Story().bash("npm run lint | tail -3", "✖ 11 problems (0 errors, 11 warnings)", 0).last.error_class == "none"
    assert Story().bash("npm run lint | tail -3", "✖ 2 problems (2 errors, 0 warnings)", 0).last.error_kind == "lint"


def test_a_patch_tool_is_read_with_its_header() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    good = (
        Story()
        .call(
            "apply_patch",
            patch,
            "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\nM a.py",
        )
        .last
    )
    bad = (
        Story()
        .call("apply_patch", patch, "Exit code: 1\nWall time: 0.1 seconds\nOutput:\napply_patch verification failed: x")
        .last
    )
    assert (good.status, good.change, good.target) == ("ok", "verified", "a.py")
    assert (bad.status, bad.change, bad.error_kind) == ("failed", None, "edit_failed")
