"""Progress over results: recovery, waiting, loops, dithering, trends, production."""

# ruff: noqa: E501 (texts as programs print them)

import pytest
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.signals import Progress, observe, progress

TRACEBACK = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    g()\nValueError: bad value'
NOT_FOUND = "String to replace not found in file."
every_harness = pytest.mark.parametrize("harness", SHELLS)


def seen_in(story: Story, window: int = 3) -> Progress:
    return progress(observe(story.conversation), window)


def red(failed: int, passed: int = 5) -> str:
    return f"FAILED tests/t.py::test_{failed} - assert\n=== {failed} failed, {passed} passed in 0.20s ==="


# Success after failures

RECOVERIES = {
    "script": ("python x.py", TRACEBACK, "fine"),
    "build": ("make", "a.c:3:1: error: expected ';'", "cc -o a a.c"),
    "tests": ("pytest -q", red(2), "7 passed in 0.2s"),
    "cargo": ("cd /app && cargo test", "test result: FAILED. 1 passed; 2 failed; 0 ignored", "test result: ok. 3 passed; 0 failed; 0 ignored"),
    "lint": ("ruff check .", "a.py:1:1: F401 unused\nFound 1 error.", "All checks passed!"),
    "install": ("npm ci", "npm error code EUSAGE", "added 3 packages"),
    "push": ("git push", "error: failed to push some refs", "main -> main"),
}  # fmt: skip


@every_harness
@pytest.mark.parametrize(("command", "bad", "good"), RECOVERIES.values(), ids=RECOVERIES)
def test_the_same_command_succeeding_clears_its_failure(harness: str, command: str, bad: str, good: str) -> None:
    story = run(Story(), harness, command, bad, 1)
    assert seen_in(story).severity > 0
    run(story, harness, command, bad, 1)
    assert seen_in(story).repeated == 2
    run(story, harness, command, good, 0)
    found = seen_in(story)
    assert (found.severity, found.failures, found.repeated) == (0, 0, 0)


@every_harness
def test_another_command_succeeding_clears_nothing(harness: str) -> None:
    story = run(Story(), harness, "python x.py", TRACEBACK, 1)
    run(story, harness, "ls", "x.py")
    run(story, harness, "python other.py", "fine")
    assert seen_in(story).severity == 0.7


@every_harness
def test_a_failure_after_the_recovery_counts_again(harness: str) -> None:
    story = run(Story(), harness, "python x.py", TRACEBACK, 1)
    run(story, harness, "python x.py", "fine")
    assert seen_in(story).severity == 0
    run(story, harness, "python x.py", TRACEBACK, 1)
    assert seen_in(story).severity == 0.7


def test_where_no_exit_code_is_told_the_same_call_without_a_failure_clears_too() -> None:
    for tool in ("bash", "terminal", "execute_command"):
        story = Story().call(tool, {"command": "python x.py"}, TRACEBACK)
        assert seen_in(story).severity == 0.7
        story.call(tool, {"command": "python x.py"}, "result: 42")
        assert seen_in(story).severity == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "done"),
    [
        ("Edit", {"file_path": "/app/a.py"}, "The file /app/a.py has been updated."),
        ("edit", {"filePath": "/app/a.py"}, "Edit applied successfully."),
        ("str_replace_editor", {"command": "str_replace", "path": "/app/a.py"}, "The file /app/a.py has been edited."),
        ("replace_in_file", {"path": "/app/a.py"}, "The content was successfully saved to /app/a.py."),
    ],
)
def test_an_edit_that_goes_through_clears_the_one_that_did_not(tool: str, arguments: dict[str, str], done: str) -> None:
    story = Story().call(tool, {**arguments, "old_string": "x"}, NOT_FOUND, is_error=True)
    assert seen_in(story).severity > 0
    story.call(tool, {**arguments, "old_string": "y"}, done)
    assert seen_in(story).severity == 0
    assert seen_in(story).production > 0


@every_harness
def test_a_green_run_clears_red_runs_of_other_spelling(harness: str) -> None:
    story = run(Story(), harness, "pytest -q tests/test_a.py", red(1), 1)
    run(story, harness, "cd /app && python -m pytest -q", "40 passed in 2.0s")
    assert (seen_in(story).severity, seen_in(story).tests_passed) == (0, True)


# Waiting for something to come up

WAITS = {
    "health": ("sleep 5 && curl -s localhost:8080/health", 7, "curl: (7) Failed to connect to localhost port 8080: Connection refused"),
    "database": ("sleep 2; pg_isready -h localhost", 2, "localhost:5432 - no response"),
    "checks": ("sleep 60 && gh pr checks 4", 8, "build\tpending\t0\thttps://x"),
    "container": ("sleep 3 && docker ps | grep web", 1, ""),
    "port": ("sleep 1; nc -z localhost 5432", 1, ""),
}  # fmt: skip


@every_harness
@pytest.mark.parametrize(("command", "code", "text"), WAITS.values(), ids=WAITS)
def test_waiting_for_something_is_patience(harness: str, command: str, code: int, text: str) -> None:
    story = Story()
    for _ in range(4):
        run(story, harness, command, text, code)
    found = seen_in(story)
    assert (found.severity, found.failures, found.repeated, found.spinning) == (0, 0, 0, 0)


@every_harness
def test_patience_has_an_end(harness: str) -> None:
    command, code, text = WAITS["health"]
    story = Story()
    for _ in range(8):
        run(story, harness, command, text, code)
    assert seen_in(story).severity == 0.7


@every_harness
def test_a_refused_connection_without_waiting_is_a_failure(harness: str) -> None:
    refused = "curl: (7) Failed to connect to localhost port 8080: Connection refused"
    story = run(Story(), harness, "curl -s localhost:8080/api", refused, 7)
    run(story, harness, "curl -s localhost:8080/api", refused, 7)
    assert seen_in(story).severity == 0.7
    assert seen_in(story).repeated == 2


# Doing real work with tools nobody listed

WORKERS = {
    "mcp edit": ("mcp__editor__replace_lines", {"path": "a.py", "text": "x"}, '{"success": true}'),
    "mcp write": ("mcp__filesystem__write_file", {"path": "a.py", "content": "x"}, "Successfully wrote to a.py"),
    "camel": ("updateSpreadsheetCell", {"cell": "A1", "value": "3"}, '{"success": true}'),
    "business": ("modify_reservation", {"id": "R1", "cabin": "business"}, '{"success": true}'),
    "kebab": ("create-ticket", {"title": "x"}, '{"success": true}'),
    "dotted": ("notebook.insert_cell", {"index": "3"}, '{"success": true}'),
}


@pytest.mark.parametrize(("tool", "arguments", "text"), WORKERS.values(), ids=WORKERS)
def test_unlisted_tools_that_change_things_are_production(tool: str, arguments: dict[str, str], text: str) -> None:
    story = Story()
    for i in range(10):
        story.call(tool, {**arguments, "step": str(i)}, text)
    found = seen_in(story)
    assert (found.spinning, found.exploring) == (0, 0)
    assert found.production == 1
    assert all(o.change == "verified" for o in story.seen)


@pytest.mark.parametrize(("tool", "arguments", "text"), WORKERS.values(), ids=WORKERS)
def test_even_without_a_word_of_success_they_are_no_stall(tool: str, arguments: dict[str, str], text: str) -> None:
    story = Story()
    for i in range(10):
        story.call(tool, {**arguments, "step": str(i)}, f"row {i}")
    assert (seen_in(story).spinning, seen_in(story).exploring) == (0, 0)


def test_an_operator_overrides_what_is_built_in() -> None:
    signals = observe(Story().call("search_and_fix", {"q": "1"}, "row 1").conversation)
    assert progress(signals, 3, {"search_and_fix": "edit"}).production == 1
    built_in = observe(Story().call("Write", {"file_path": "a"}, "File created successfully at: a").conversation)
    assert progress(built_in, 3).production == 1
    assert progress(built_in, 3, {"write": "read"}).production == 0


# Reading, researching, planning

READ_ONLY = {
    "files": [("Read", {"file_path": f"/app/{i}.py"}, f"x = {i}") for i in range(20)],
    "web": [("WebSearch", {"query": f"q{i}"}, f"result {i}") for i in range(20)],
    "shell": [("bash", {"command": f"sed -n {i},40p a.py"}, f"<returncode>0</returncode>\n<output>\n{i}\n</output>") for i in range(20)],
    "mcp": [("mcp__db__query", {"sql": f"select {i}"}, f"[{i}]") for i in range(20)],
    "plan": [("TodoWrite", {"todos": [str(i)]}, f"Todos have been modified successfully {i}.") for i in range(20)],
    "mixed": [("Grep", {"pattern": f"p{i}"}, "No matches found") if i % 2 else ("Read", {"file_path": f"{i}"}, f"{i}") for i in range(20)],
    "probes": [("bash", {"command": f"grep -rn name{i} ."}, "<returncode>1</returncode>\n<output>\n</output>") for i in range(20)],
}  # fmt: skip


@pytest.mark.parametrize("calls", READ_ONLY.values(), ids=READ_ONLY)
def test_reading_and_planning_that_bring_something_new_are_no_stall(
    calls: list[tuple[str, dict[str, str], str]],
) -> None:
    story = Story("Explain how sessions are stored.")
    for tool, arguments, text in calls:
        story.call(tool, arguments, text)
        found = seen_in(story)
        assert (found.spinning, found.exploring, found.severity) == (0, 0, 0)


# Loops


@every_harness
def test_the_same_call_with_the_same_output_spins_without_an_error_word(harness: str) -> None:
    story = Story()
    for _ in range(10):
        run(story, harness, "./app --probe", "state: idle")
    assert seen_in(story).spinning == 1


@every_harness
@pytest.mark.parametrize("length", [2, 3, 4])
def test_alternating_cycles_spin(harness: str, length: int) -> None:
    story = Story()
    for i in range(6 * length):
        run(story, harness, f"./app --mode {i % length}", f"state: {i % length}")
    assert seen_in(story).spinning == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "/app/a.py"}), ("read", {"filePath": "/app/a.py"}), ("Grep", {"pattern": "x"}),
        ("mcp__tickets__list", {"open": "yes"}), ("view", {"path": "a.py"}),
    ],
)  # fmt: skip
def test_a_read_after_a_change_is_no_repeat(tool: str, arguments: dict[str, str]) -> None:
    story = Story()
    for i in range(6):
        story.call(tool, arguments, "same")
        story.call("Edit", {"file_path": "/app/a.py", "old_string": str(i)}, "The file /app/a.py has been updated.")
    story.call(tool, arguments, "same")
    assert seen_in(story).spinning == 0
    for _ in range(9):
        story.call(tool, arguments, "same")
    assert seen_in(story).spinning == 1


@every_harness
def test_the_same_call_with_new_output_is_no_loop(harness: str) -> None:
    story = Story()
    for i in range(12):
        run(story, harness, "./app --next", f"item {i}")
    assert seen_in(story).spinning == 0


@every_harness
@pytest.mark.parametrize("between", [3, 4])
def test_a_failure_that_comes_back_beyond_the_window_is_found(harness: str, between: int) -> None:
    story = Story()
    for i in range(3):
        run(story, harness, "python x.py", TRACEBACK, 1)
        if i < 2:
            for j in range(between):
                story.call("Read", {"file_path": f"/app/{i}{j}.py"}, f"x = {i}{j}")
    assert seen_in(story).repeated == 3


@every_harness
def test_a_loop_of_failing_and_reading_is_found_at_any_width(harness: str) -> None:
    story = Story()
    for _ in range(4):
        run(story, harness, "python x.py", TRACEBACK, 1)
        for name in "abcde":
            story.call("Read", {"file_path": f"/app/{name}.py"}, name)
    run(story, harness, "python x.py", TRACEBACK, 1)
    assert seen_in(story).repeated >= 3


# Failing counts

TRENDS = {
    "pytest": ("pytest -q", red),
    "unittest": ("python -m unittest", lambda n, p=5: f"Ran {n + p} tests in 0.1s\n\nFAILED (failures={n})"),
    "jest": ("npx jest", lambda n, p=5: f"Tests:       {n} failed, {p} passed, {n + p} total"),
    "cargo": ("cargo test", lambda n, p=5: f"test result: FAILED. {p} passed; {n} failed; 0 ignored"),
    "mocha": ("npx mocha", lambda n, p=5: f"  {p} passing (30ms)\n  {n} failing\n"),
    "maven": ("mvn test", lambda n, p=5: f"[ERROR] Tests run: {n + p}, Failures: {n}, Errors: 0, Skipped: 0"),
    "rspec": ("rspec", lambda n, p=5: f"{n + p} examples, {n} failures"),
    "dotnet": ("dotnet test", lambda n, p=5: f"Failed!  - Failed:     {n}, Passed:    {p}, Skipped:     0, Total:    {n + p}"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "text"), TRENDS.values(), ids=TRENDS)
@every_harness
def test_falling_counts_are_progress_and_growing_ones_are_not(harness: str, command: str, text) -> None:
    story = run(Story(), harness, command, text(9), 1)
    first = seen_in(story)
    assert (story.last.tests_failed, first.severity) == (9, 0.7)
    run(story, harness, command, text(4), 1)
    run(story, harness, command, text(2), 1)
    falling = seen_in(story)
    assert falling.repeated == 0
    assert falling.severity < first.severity
    run(story, harness, command, text(7), 1)
    assert seen_in(story).severity == 0.7


# Production

REJECTED = {
    "claude_code": ("Edit", {"file_path": "a.py"}, "String to replace not found in file.", True),
    "claude_code tag": ("Edit", {"file_path": "a.py"}, "<tool_use_error>String to replace not found in file.</tool_use_error>", None),
    "claude_code unread": ("Write", {"file_path": "a.py"}, "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>", None),
    "opencode": ("edit", {"filePath": "a.py"}, "Error: oldString not found in content", None),
    "codex": ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"}, "apply_patch verification failed: Failed to find expected lines in a.py", None),
    "swe_agent": ("str_replace_editor", {"command": "str_replace", "path": "/a.py"}, "No replacement was performed, old_str did not appear verbatim.", None),
    "openhands": ("str_replace_editor", {"command": "insert", "path": "/a.py"}, "ERROR:\nInvalid `insert_line` parameter: 99.", None),
    "cline": ("replace_in_file", {"path": "a.py"}, "The SEARCH section must exactly match an associated block", None),
    "gemini": ("replace", {"file_path": "a.py"}, "Failed to edit, could not find the string to replace.", None),
    "git apply": ("bash", {"command": "git apply fix.patch"}, "<returncode>1</returncode>\n<output>\nerror: patch failed: a.py:3\nerror: a.py: patch does not apply\n</output>", None),
    "business": ("update_order", {"id": "1"}, '{"error": "order is locked"}', None),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "text", "flag"), REJECTED.values(), ids=REJECTED)
def test_a_rejected_change_is_no_production(tool: str, arguments: dict[str, str], text: str, flag: bool | None) -> None:
    story = Story().call(tool, arguments, text, flag)
    assert (story.last.status, story.last.change) == ("failed", None)
    assert seen_in(story).production == 0
    assert seen_in(story).severity > 0


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "flag"),
    [REJECTED[k] for k in ("claude_code", "claude_code tag", "opencode", "swe_agent", "gemini")],
)
def test_a_rejected_edit_is_soft_once_and_hard_when_it_comes_again(
    tool: str, arguments: dict[str, str], text: str, flag: bool | None
) -> None:
    story = Story().call(tool, {**arguments, "n": "1"}, text, flag)
    assert seen_in(story).severity == 0.3
    story.call(tool, {**arguments, "n": "2"}, text, flag)
    assert seen_in(story).severity == 0.7


# Agents' own expected failures


@every_harness
def test_a_failing_reproduction_before_any_change_is_one_ordinary_failure(harness: str) -> None:
    story = run(Story("Fix the crash in f()."), harness, "cat > reproduce.py <<'EOF'\nf()\nEOF")
    run(story, harness, "python reproduce.py", TRACEBACK, 1)
    found = seen_in(story)
    assert found.severity < 1
    assert found.repeated == 0
