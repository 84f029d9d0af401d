"""Words are no evidence: what results talk about, what was seen before, and what only looks like a green run."""

import pytest
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.signals import Progress, observe, progress

PYTHON = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    g()\nValueError: bad value'
NODE = "TypeError: Cannot read properties of undefined (reading 'a')\n    at f (/app/x.js:3:7)\n    at Module._compile"
RUST = "thread 'main' panicked at src/main.rs:2:5:\ncalled `Option::unwrap()` on a `None` value"
JAVA = 'Exception in thread "main" java.lang.NullPointerException\n\tat app.Main.main(Main.java:3)'
SYSTEM = "cp: error writing 'b': No space left on device\nconnect: Connection refused\nout of memory"
GERMAN = "Fehler: Datei oder Verzeichnis nicht gefunden\nAusnahme: Verbindung abgelehnt\nTest fehlgeschlagen"
JAPANESE = "エラー: ファイルが見つかりません\nテスト失敗: 接続が拒否されました"
PYTEST_RED = "FAILED tests/test_a.py::test_b - assert 1 == 2\n=== 1 failed, 3 passed in 0.12s ==="
TALK = {
    "python": PYTHON, "node": NODE, "rust": RUST, "java": JAVA, "system": SYSTEM, "german": GERMAN, "japanese": JAPANESE,
    "red summary": PYTEST_RED, "go": "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\texample.com/a\t0.01s",
    "exit code in prose": "The job ended with exit code 137 and exit status 1.",
    "lint": "src/a.py:3:1: F401 `os` imported but unused\nFound 1 error.",
}  # fmt: skip

READERS: dict[str, tuple[str, dict[str, str]]] = {
    "claude_code read": ("Read", {"file_path": "/app/error.log"}),
    "claude_code grep": ("Grep", {"pattern": "Error", "path": "/app", "output_mode": "content"}),
    "claude_code web": ("WebFetch", {"url": "https://example.com/q/1", "prompt": "what failed?"}),
    "claude_code search": ("WebSearch", {"query": "ValueError: bad value"}),
    "opencode": ("read", {"filePath": "/app/error.log"}),
    "codex": ("view", {"path": "error.log"}),
    "cline": ("read_file", {"path": "error.log"}),
    "gemini": ("read_many_files", {"paths": "*.log"}),
    "swe_agent": ("str_replace_editor", {"command": "view", "path": "/app/error.log"}),
    "mcp": ("mcp__github__get_issue", {"issue_number": "4"}),
    "mcp search": ("mcp__docs__search", {"query": "errors"}),
    "business": ("get_ticket", {"id": "T1"}),
}


def seen_in(story: Story, window: int = 3) -> Progress:
    return progress(observe(story.conversation), window)


@pytest.mark.parametrize("talk", TALK.values(), ids=TALK)
@pytest.mark.parametrize(("tool", "arguments"), READERS.values(), ids=READERS)
def test_what_is_read_tells_nothing_of_the_call(tool: str, arguments: dict[str, str], talk: str) -> None:
    seen = Story().call(tool, arguments, talk).last
    assert (seen.error_class, seen.error_kind, seen.fingerprint) == ("none", "", "")
    assert seen.status != "failed"
    assert seen.tests_passed is None
    assert seen.tests_failed is None


@pytest.mark.parametrize("talk", TALK.values(), ids=TALK)
@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(
    "command", ["cat build.log", "git show HEAD", "grep -rn -i fail src", "curl -s https://example.com"]
)
def test_what_a_shell_shows_with_exit_code_zero_is_no_failure(harness: str, talk: str, command: str) -> None:
    seen = run(Story(), harness, command, talk).last
    assert (seen.status, seen.error_class, seen.fingerprint) == ("ok", "none", "")
    assert seen.tests_passed is None


@pytest.mark.parametrize("talk", TALK.values(), ids=TALK)
def test_the_same_words_fail_where_a_command_is_run_and_its_exit_code_says_so(talk: str) -> None:
    seen = run(Story(), "mini_swe_agent", "./build.sh", talk, 1).last
    assert seen.status == "failed"
    assert seen.error_class in ("capability", "critical")
    assert seen.fingerprint


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(
    "text",
    [
        "12 warnings, 0 errors",
        "Compiled successfully. Errors: 0",
        "error handling is described in docs/errors.md",
        "No errors found.",
        "added test_failure.py\nrenamed FailureReport.java",
        "Running error_test ... ok",
        "Imported ValueError and KeyError from builtins.",
        "0 failed, 0 errors",
        "The operation timed out 0 times.",
        "warning: unused variable `error`",
    ],
)
def test_words_of_failure_in_a_run_that_went_well_are_none(harness: str, text: str) -> None:
    seen = run(Story(), harness, "./build.sh", text).last
    assert (seen.status, seen.error_class) == ("ok", "none")


def test_content_seen_again_is_no_repeated_failure() -> None:
    for tool, arguments in READERS.values():
        story = Story()
        for _ in range(4):
            story.call(tool, arguments, PYTHON)
        found = seen_in(story)
        assert (found.repeated, found.severity, found.failures) == (0, 0, 0)
    for harness in SHELLS:
        story = Story()
        for _ in range(4):
            run(story, harness, "cat error.log", PYTHON)
        assert (seen_in(story).repeated, seen_in(story).severity) == (0, 0)
    story = Story()
    for name in ("a", "b", "c"):
        story.call("Read", {"file_path": f"/app/{name}.py"}, "def fail():\n    raise ValueError('bad value')")
    assert seen_in(story).repeated == 0


GREEN_WORDS = {
    "prose": "All of the tests passed when I ran this yesterday.",
    "review": "Review: all checks passed",
    "sentence": "5 passed the bar and 2 failed the exam in 2021",
    "tick": "✓ looks good",
    "ok line": "ok everything is fine",
    "changelog": "- test ok: no longer flaky",
    "passed in": "The bill was passed in 1999",
    "cargo in prose": "it printed `test result: ok` on my machine",
    "readme": "Badge: tests passing",
    "german": "Alle Tests bestanden.",
}


@pytest.mark.parametrize("text", GREEN_WORDS.values(), ids=GREEN_WORDS)
@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize("command", ["python notes.py", "cat CHANGELOG.md", "git log -3", "./summarise"])
def test_pass_words_in_prose_are_no_green_run(harness: str, command: str, text: str) -> None:
    story = run(Story(), harness, command, text)
    assert story.last.tests_passed is not True
    assert not seen_in(story).tests_passed


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize("text", GREEN_WORDS.values(), ids=GREEN_WORDS)
def test_pass_words_end_no_failure(harness: str, text: str) -> None:
    story = run(Story(), harness, "pytest -q", PYTEST_RED, 1)
    run(story, harness, "cat notes.md", text)
    assert (seen_in(story).severity, seen_in(story).tests_passed) == (0.7, False)


GREEN = {
    "pytest": ("pytest -q", "......\n6 passed in 0.31s"),
    "pytest with skips": ("python -m pytest", "=== 4 passed, 2 skipped, 1 warning in 1.02s ==="),
    "unittest": ("python -m unittest", "..\n" + "-" * 70 + "\nRan 2 tests in 0.001s\n\nOK"),
    "jest": ("npx jest", "Test Suites: 2 passed, 2 total\nTests:       9 passed, 9 total\nTime:        1.2 s"),
    "vitest": ("npx vitest run", " Test Files  2 passed (2)\n      Tests  30 passed (30)\n   Duration  512ms"),
    "mocha": ("npx mocha", "  12 passing (30ms)\n"),
    "go": ("go test ./...", "ok  \texample.com/a\t0.012s\nok  \texample.com/b\t(cached)"),
    "cargo": ("cargo test", "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"),
    "nextest": ("cargo nextest run", "     Summary [   0.123s] 12 tests run: 12 passed, 0 skipped"),
    "maven": ("mvn -q test", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0"),
    "rspec": ("bundle exec rspec", "Finished in 0.1 seconds\n7 examples, 0 failures"),
    "phpunit": ("vendor/bin/phpunit", "OK (5 tests, 7 assertions)"),
    "ctest": ("ctest", "100% tests passed, 0 tests failed out of 10"),
    "dotnet": ("dotnet test", "Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12"),
    "node": ("node --test", "# tests 3\n# pass 3\n# fail 0"),
    "exunit": ("mix test", "5 tests, 0 failures"),
    "cd first": ("cd /app && FOO=1 timeout 60 pytest -q tests", "3 passed in 0.02s"),
    "colours": ("pytest", "\x1b[32m===== \x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.02s\x1b[0m\x1b[32m =====\x1b[0m"),
}


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(("command", "text"), GREEN.values(), ids=GREEN)
def test_runners_summaries_are_green_runs(harness: str, command: str, text: str) -> None:
    story = run(Story(), harness, command, text)
    assert (story.last.kind, story.last.tests_passed, story.last.error_class) == ("test", True, "none")
    assert seen_in(story).tests_passed


NOT_GREEN = {
    "none ran": ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK"),
    "none collected": ("pytest -q", "no tests ran in 0.01s"),
    "all skipped": ("pytest -q", "4 skipped in 0.02s"),
    "all deselected": ("pytest -k x", "=== 7 deselected in 0.10s ==="),
    "cargo filter": ("cargo test nothing", "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out"),
    "go none": ("go test ./...", "?   \texample.com/a\t[no test files]"),
    "go no match": ("go test -run X ./...", "ok  \texample.com/a\t0.01s [no tests to run]"),
    "lint": ("ruff check .", "All checks passed!"),
    "types": ("mypy src", "Success: no issues found in 12 source files"),
    "eslint": ("npx eslint .", ""),
    "format": ("black --check .", "All done! ✨ 🍰 ✨\n3 files would be left unchanged."),
    "phpunit none": ("vendor/bin/phpunit", "No tests executed!"),
    "collected only": ("pytest --collect-only -q", "tests/test_a.py::test_b\n\n1 test collected in 0.01s"),
    "version": ("pytest --version", "pytest 8.3.2"),
}  # fmt: skip


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(("command", "text"), NOT_GREEN.values(), ids=NOT_GREEN)
def test_a_run_of_no_test_is_no_green_run(harness: str, command: str, text: str) -> None:
    story = run(Story(), harness, command, text)
    assert story.last.tests_passed is not True
    assert not seen_in(story).tests_passed
    assert story.last.error_class in ("none", "informational")
