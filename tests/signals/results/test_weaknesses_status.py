"""The status decides: flags and exit codes before words, in every harness and for every program family."""

# ruff: noqa: E501, RUF001 (texts as programs print them)

import pytest
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.signals import observe, progress

PYTHON = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    g()\nValueError: bad value'

FLAGGED = {
    "nothing": "",
    "all good": "all good",
    "green": "5 passed in 0.1s",
    "german": "Die Datei konnte nicht gelesen werden.",
    "chinese": "无法读取文件",
    "french": "commande introuvable : pyhton",
    "russian": "Не удалось выполнить команду",
    "json": '{"state": "done"}',
    "one word": "nope",
    "business": "Reservation cannot be modified: basic economy",
}
TOOLS = {
    "Bash": {"command": "make"},
    "Edit": {"file_path": "a.py"},
    "Write": {"file_path": "a.py"},
    "bash": {"command": "make"},
    "edit": {"filePath": "a.py"},
    "mcp__db__query": {"sql": "select 1"},
    "mcp__tickets__create_ticket": {"title": "x"},
    "update_reservation": {"id": "R1"},
    "whatever": {},
}


@pytest.mark.parametrize("text", FLAGGED.values(), ids=FLAGGED)
@pytest.mark.parametrize(("tool", "arguments"), TOOLS.items(), ids=TOOLS)
def test_a_failure_flag_decides_whatever_the_text(tool: str, arguments: dict[str, str], text: str) -> None:
    story = Story().call(tool, arguments, text, is_error=True)
    seen = story.last
    assert (seen.status, seen.evidence, seen.error_class) == ("failed", "flag", "capability")
    assert seen.fingerprint
    assert seen.change is None
    assert seen.tests_passed is not True
    assert progress(observe(story.conversation), 3).severity > 0


@pytest.mark.parametrize("tool", ["Read", "Grep", "WebFetch", "read_file", "mcp__docs__search", "Task", "get_user"])
def test_flagged_readers_fail_too(tool: str) -> None:
    seen = Story().call(tool, {"path": "a"}, "something unexpected", is_error=True).last
    assert (seen.status, seen.evidence) == ("failed", "flag")


@pytest.mark.parametrize("tool", ["Read", "Bash", "mcp__docs__fetch", "Edit", "Task"])
@pytest.mark.parametrize("text", [PYTHON, "Error: it broke", "exit code 1", "3 failed in 0.1s but that is a log"])
def test_a_flag_that_says_success_outweighs_words(tool: str, text: str) -> None:
    seen = Story().call(tool, {"command": "cat a.log", "file_path": "a.log"}, text, is_error=False).last
    assert (seen.status, seen.error_class) == ("ok", "none")


def test_the_same_flagged_failure_twice_is_a_repeated_failure_without_any_known_word() -> None:
    story = Story()
    for _ in range(2):
        story.call("deploy_site", {"name": "a"}, "Die Freigabe fehlt.", is_error=True)
    assert progress(observe(story.conversation), 3).repeated == 2


ANSWERS = {
    "grep none": ("grep -n foo src/a.py", 1, "", "informational"),
    "rg none": ("rg foo", 1, "", "informational"),
    "git grep none": ("git grep foo", 1, "", "informational"),
    "ag none": ("ag foo", 1, "", "informational"),
    "cd and grep": ("cd /app && grep -rn foo .", 1, "", "informational"),
    "diff differs": ("diff a b", 1, "1c1\n< a\n---\n> b", "none"),
    "cmp differs": ("cmp a b", 1, "a b differ: byte 1, line 1", "none"),
    "git diff": ("git diff --exit-code", 1, "diff --git a/a b/a", "none"),
    "test file": ("test -f /app/a", 1, "", "informational"),
    "bracket": ("[ -d build ]", 1, "", "informational"),
    "double bracket": ("[[ -e a ]]", 1, "", "informational"),
    "which": ("which cargo", 1, "", "informational"),
    "command -v": ("command -v ruff", 1, "", "informational"),
    "type": ("type -p node", 1, "", "informational"),
    "pgrep": ("pgrep -f server", 1, "", "informational"),
    "ls absent": ("ls /nope", 2, "ls: cannot access '/nope': No such file or directory", "informational"),
    "ls german": ("ls /nope", 2, "ls: Zugriff auf '/nope' nicht möglich: Datei oder Verzeichnis nicht gefunden", "informational"),
    "cat absent": ("cat nope.txt", 1, "cat: nope.txt: No such file or directory", "informational"),
    "stat absent": ("stat nope", 1, "stat: cannot statx 'nope': No such file or directory", "informational"),
    "find absent": ("find /nope -name x", 1, "find: ‘/nope’: No such file or directory", "informational"),
    "kill gone": ("kill 1234", 1, "bash: kill: (1234) - No such process", "informational"),
    "no tests": ("pytest -k nothing", 5, "=== no tests ran in 0.01s ===", "informational"),
    "pending": ("gh pr checks 4", 8, "build\tpending\t0\thttps://x", "informational"),
}  # fmt: skip


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(("command", "code", "text", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_exit_codes_that_are_answers_are_no_failures(
    harness: str, command: str, code: int, text: str, expected: str
) -> None:
    story = run(Story(), harness, command, text, code)
    assert story.last.error_class == expected
    assert story.last.fingerprint == ""
    assert progress(observe(story.conversation), 3).severity == 0


FAILURES = {
    "grep usage": ("grep '[' a", 2, "grep: Invalid regular expression", "usage"),
    "diff usage": ("diff --nope a b", 2, "diff: unrecognized option '--nope'", "usage"),
    "time-out": ("timeout 5 ./slow", 124, "", "timeout"),
    "not executable": ("./x", 126, "bash: ./x: Permission denied", "permission_denied"),
    "not found": ("foo", 127, "bash: foo: command not found", "command_not_found"),
    "not found german": ("foo", 127, "bash: foo: Befehl nicht gefunden.", "command_not_found"),
    "not found french": ("foo", 127, "foo : commande introuvable", "command_not_found"),
    "aborted": ("./x", 134, "", "crash"),
    "killed": ("./x", 137, "Killed", "killed"),
    "segfault": ("./x", 139, "Segmentation fault (core dumped)", "crash"),
    "segfault german": ("./x", 139, "Speicherzugriffsfehler (Speicherabzug geschrieben)", "crash"),
    "terminated": ("./x", 143, "", "killed"),
    "plain": ("./x", 3, "", "exit_nonzero"),
    "pytest red": ("pytest", 1, "FAILED tests/a.py::b - x\n1 failed in 0.1s", "test_failure"),
    "pytest usage": ("pytest --nope", 4, "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --nope", "usage"),
    "checks red": ("gh pr checks 4", 1, "build\tfail\t23s\thttps://x", "ci_failure"),
    "bad flag": ("git log --oneline --nope", 128, "fatal: unrecognized argument: --nope", "usage"),
    "quoting": ("echo 'a", 2, "bash: -c: line 1: unexpected EOF while looking for matching `''", "syntax"),
    "missing make target": ("make nope", 2, "make: *** No rule to make target 'nope'.  Stop.", None),
    "lint": ("ruff check .", 1, "a.py:1:1: F401 `os` imported but unused\nFound 1 error.", "lint"),
    "eslint": ("npx eslint .", 1, "/app/a.js\n  1:7  error  'a' is assigned a value but never used\n\n✖ 1 problem (1 error, 0 warnings)", "lint"),
    "merge": ("git merge main", 1, "CONFLICT (content): Merge conflict in a.py\nAutomatic merge failed; fix conflicts", "merge"),
    "push": ("git push", 1, " ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs", "merge"),
}  # fmt: skip


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(("command", "code", "text", "kind"), FAILURES.values(), ids=FAILURES)
def test_exit_codes_that_are_failures_are_failures(
    harness: str, command: str, code: int, text: str, kind: str | None
) -> None:
    seen = run(Story(), harness, command, text, code).last
    assert (seen.status, seen.error_class) == ("failed", "capability")
    assert kind is None or seen.error_kind == kind
    assert seen.fingerprint
    assert seen.exit_code == code


RED = "FAILED tests/test_a.py::test_b - assert 1 == 2\n=== 2 failed, 3 passed in 0.20s ==="
MASKED = ["pytest | tail -5", "pytest || true", "pytest; echo done", "pytest 2>&1 | tee log", "pytest; true"]


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize("command", MASKED)
def test_a_masked_status_says_nothing_and_the_summary_does(harness: str, command: str) -> None:
    red = run(Story(), harness, command, RED).last
    assert (red.error_class, red.error_kind, red.tests_failed) == ("capability", "test_failure", 2)
    green = run(Story(), harness, command, "5 passed in 0.1s").last
    assert (green.error_class, green.tests_passed) == ("none", True)


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(
    ("command", "text", "kind"),
    [
        ("make 2>&1 | tail -20", "a.c:3:1: error: expected ';' before '}'\nmake: *** [a.o] Error 1", "compile"),
        ("python x.py 2>&1 | head -30", PYTHON, "exception"),
        ("npm run build || true", "src/a.ts(3,5): error TS2322: Type 'x' is not assignable", "compile"),
        ("cargo build 2>&1 | tail", "error[E0308]: mismatched types\nerror: could not compile `a`", "compile"),
        ("./deploy; echo finished", "bash: ./deploy: Permission denied\nfinished", "permission_denied"),
    ],
)
def test_a_masked_status_leaves_anchored_lines_to_speak(harness: str, command: str, text: str, kind: str) -> None:
    seen = run(Story(), harness, command, text).last
    assert (seen.status, seen.error_kind) == ("failed", kind)


BROKEN = {
    "disk": ("cp a b", "cp: error writing 'b': No space left on device", "disk_full"),
    "dns": ("curl -s https://example.com", "curl: (6) Could not resolve host: example.com", "unreachable"),
    "pip offline": ("pip install x", "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='x')", "unreachable"),
    "npm offline": ("npm install", "npm error code ENOTFOUND\nnpm error network request failed", "unreachable"),
    "go offline": ("go mod download", "dial tcp: lookup proxy.example.com: Temporary failure in name resolution", "unreachable"),
    "memory": ("python x.py", "MemoryError", "oom"),
    "java heap": ("java -jar a.jar", 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', "oom"),
    "node heap": ("node a.js", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "oom"),
    "interpreter": ("python x.py", "Fatal Python error: init_fs_encoding: failed to get the Python codec", "environment"),
    "loader": ("./app", "./app: error while loading shared libraries: libssl.so.3: cannot open shared object file", "environment"),
    "docker": ("docker build .", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "environment"),
    "read-only": ("touch a", "touch: cannot touch 'a': Read-only file system", "environment"),
    "overloaded": ("./ask.sh", "API Error: 529 overloaded_error", "provider"),
    "rate limit": ("python ask.py", "openai.RateLimitError: Error code: 429", "provider"),
}  # fmt: skip


@pytest.mark.parametrize("harness", SHELLS)
@pytest.mark.parametrize(("command", "text", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_broken_environment_is_critical(harness: str, command: str, text: str, kind: str) -> None:
    seen = run(Story(), harness, command, text, 1).last
    assert (seen.error_class, seen.error_kind) == ("critical", kind)


ECOSYSTEMS = {
    "python": (PYTHON, "exception"),
    "python module": ("ModuleNotFoundError: No module named 'numpy'", "missing_module"),
    "node": ("/app/x.js:3\n    f(\n     ^\n\nSyntaxError: missing ) after argument list", "syntax"),
    "node module": ("Error: Cannot find module 'express'\nRequire stack:\n- /app/x.js", "missing_module"),
    "typescript": ("src/app.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.", "compile"),
    "go": ("./main.go:5:2: undefined: foo", "compile"),
    "go panic": ("panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:", "panic"),
    "rust": ("error[E0308]: mismatched types\n --> src/main.rs:2:5", "compile"),
    "rust panic": ("thread 'main' panicked at src/main.rs:2:5:\nboom", "panic"),
    "java": ('Exception in thread "main" java.lang.IllegalStateException: x\n\tat a.B.main(B.java:3)', "exception"),
    "javac": ("B.java:3: error: cannot find symbol", "compile"),
    "kotlin": ("e: file:///app/A.kt:3:5 Unresolved reference: foo", "compile"),
    "dotnet": ("Program.cs(3,5): error CS0103: The name 'x' does not exist in the current context", "compile"),
    "dotnet run": ("Unhandled exception. System.NullReferenceException: Object reference not set", "exception"),
    "ruby": ("app.rb:3:in `foo': undefined method `bar' for nil (NoMethodError)", "exception"),
    "php": ("PHP Fatal error:  Uncaught Error: Call to undefined function f() in /app/a.php:3", "exception"),
    "c": ("main.c:3:1: error: expected ';' before '}' token", "compile"),
    "linker": ("/usr/bin/ld: a.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit status", "compile"),
    "cmake": ("CMake Error at CMakeLists.txt:3 (find_package):", "compile"),
    "swift": ("/app/a.swift:3:5: error: cannot find 'x' in scope", "compile"),
    "elixir": ("** (UndefinedFunctionError) function A.b/0 is undefined", "exception"),
    "sql": ('psql: error: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused', "connection_refused"),
    "http": ("curl: (22) The requested URL returned error: 404", "http_error"),
}  # fmt: skip


@pytest.mark.parametrize("harness", ["claude_code", "codex", "mini_swe_agent", "openhands"])
@pytest.mark.parametrize(("text", "kind"), ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_the_main_ecosystems_name_their_failures(harness: str, text: str, kind: str) -> None:
    seen = run(Story(), harness, "./run-it", text, 1).last
    assert (seen.status, seen.error_class, seen.error_kind) == ("failed", "capability", kind)


@pytest.mark.parametrize(("text", "kind"), ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_without_an_exit_code_anchored_lines_of_a_run_tell_the_failure(text: str, kind: str) -> None:
    seen = Story().bash("./run-it", text).last
    assert (seen.status, seen.evidence, seen.error_kind) == ("failed", "text", kind)


REFUSED = {
    "json error": ("update_reservation", '{"error": "basic economy cannot be changed"}'),
    "error line": ("cancel_order", "Error: order already shipped"),
    "mcp": ("mcp__crm__create_lead", "MCP error -32602: Invalid arguments: email is required"),
    "success false": ("send_certificate", '{"success": false, "message": "amount too high"}'),
    "status": ("book_flight", '{"status": "error", "reason": "payment method not on file"}'),
    "not ok": ("refund", '{"ok": false}'),
}


@pytest.mark.parametrize(("tool", "text"), REFUSED.values(), ids=REFUSED)
def test_a_rule_that_refuses_is_a_failure_of_the_call(tool: str, text: str) -> None:
    seen = Story().call(tool, {"id": "1"}, text).last
    assert (seen.status, seen.error_class) == ("failed", "capability")
    assert seen.change is None


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("get_reservation_details", '{"status": "failed", "passenger": "a", "cabin": "b", "flights": [], "total": 3}'),
        ("list_errors", '{"errors": [], "count": 0, "page": 1, "next": null}'),
        ("get_order", '{"error": null, "id": "1"}'),
        ("list_flights", '[{"error": "none"}]'),
        ("get_logs", "line 1: Error: order already shipped\nline 2: fine\n"),
        ("update_reservation", '{"success": true}'),
        ("create_ticket", '{"id": "T1", "title": "Error: login failed"}'),
    ],
)
def test_answers_that_hold_error_words_are_no_refusals(tool: str, text: str) -> None:
    assert Story().call(tool, {"id": "1"}, text).last.error_class == "none"
