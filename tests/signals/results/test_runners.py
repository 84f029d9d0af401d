"""Test runners and linters by what the real tools print: green, red, nothing ran, not even loaded."""

# ruff: noqa: E501, RUF001

import pytest
from tests.story import Story

RULE = "=" * 20
GREEN, RED, EMPTY, BROKEN = (True, "none"), (False, "capability"), (False, "informational"), (False, "capability")

RUNS: list[tuple[str, str, int, tuple[bool, str], tuple[int, int] | None]] = [
    # command, output, exit code, (tests passed, class), (run, failed)
    ("pytest", f"test_ok.py .                 [100%]\n\n{RULE} 1 passed in 2.30s {RULE}", 0, GREEN, (1, 0)),
    ("pytest -q test_ok.py", ".                  [100%]\n1 passed in 1.76s", 0, GREEN, (1, 0)),
    ("pytest -qq test_ok.py", ".                                    [100%]", 0, GREEN, (1, 0)),
    ("pytest -qq", ".Fsx                [100%]\nFAILED t/test_a.py::test_bad - assert 1 == 2", 1, RED, (3, 1)),
    ("pytest", f"FAILED t/a.py::b - x\n{RULE} 1 failed, 1 passed, 1 skipped, 1 xfailed in 2.30s {RULE}", 1, RED, (3, 1)),
    ("pytest", f"{RULE} 1 deselected in 1.59s {RULE}", 5, EMPTY, (0, 0)),
    ("pytest", f"collected 0 items\n\n{RULE} no tests ran in 0.01s {RULE}", 5, EMPTY, (0, 0)),
    ("pytest", f"E   ModuleNotFoundError: No module named 'nope'\n{RULE} 1 error in 2.63s {RULE}", 2, BROKEN, (1, 1)),
    ("pytest -n 4", "bringing up nodes...\n12 passed, 3 warnings in 1.02s", 0, GREEN, (12, 0)),
    ("python -m pytest x", f"{RULE} 3 passed, 1 rerun in 1.1s (0:00:01) {RULE}", 0, GREEN, (3, 0)),
    ("tox -q", "  1 passed in 0.1s\n  py311: OK (1.02 seconds)\n  congratulations :) (1.1 seconds)", 0, (False, "none"), None),
    ("tox", "4 passed in 0.1s\n  py311: OK (1.02 seconds)\n  congratulations :) (1.1 seconds)", 0, GREEN, (4, 0)),
    ("nox -s tests", "nox > Running session tests\n4 passed in 0.1s\nnox > Session tests was successful.", 0, GREEN, (4, 0)),
    ("python -m unittest", ".\n------\nRan 1 test in 0.001s\n\nOK", 0, GREEN, (1, 0)),
    ("python -m unittest", "Ran 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)", 1, RED, (2, 1)),
    ("python -m unittest", "Ran 1 test in 0.001s\n\nOK (skipped=1)", 0, EMPTY, (0, 0)),
    ("python -m unittest", "\n-----\nRan 0 tests in 0.000s\n\nNO TESTS RAN", 5, EMPTY, (0, 0)),
    ("python -m unittest nope", "ModuleNotFoundError: No module named 'nope'\n\nRan 1 test in 0.003s\n\nFAILED (errors=1)", 1, BROKEN, (1, 1)),
    ("python -m unittest", "Ran 2 tests in 0.1s\n\nFAILED (unexpected successes=1)", 1, RED, (2, 1)),
    ("bin/test sympy/core", "==== tests finished: 97 passed, 4 expected to fail, in 3.25 seconds ====", 0, GREEN, (97, 0)),
    ("bin/test sympy/core", "== tests finished: 9 passed, 1 failed, 2 exceptions, in 3.25 seconds ==\nDO *NOT* COMMIT!", 1, RED, (12, 3)),
    ("npx jest", "Test Suites: 1 passed, 1 total\nTests:       1 passed, 1 total\nSnapshots:   0 total", 0, GREEN, (1, 0)),
    ("npx jest", "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 1 passed, 3 total", 1, RED, (2, 1)),
    ("npx jest", "Test Suites: 1 failed, 1 total\nTests:       0 total\nSnapshots:   0 total", 1, BROKEN, (1, 1)),
    ("npx jest zzz", "No tests found, exiting with code 1\nPattern: zzz - 0 matches", 1, EMPTY, (0, 0)),
    ("npx vitest run", " Test Files  1 passed (1)\n      Tests  1 passed (1)\n   Start at  22:12:15", 0, GREEN, (1, 0)),
    ("npx vitest run", " Test Files  1 failed (1)\n      Tests  1 failed | 1 passed | 1 skipped (3)", 1, RED, (2, 1)),
    ("npx vitest run", " Test Files  1 failed (1)\n      Tests  no tests\n   Start at  22:12:19", 1, BROKEN, (1, 1)),
    ("npx vitest run zzz", " RUN  v4.1.12 /tmp/js\n\nNo test files found, exiting with code 1\n", 1, EMPTY, (0, 0)),
    ("npx vitest run", "\x1b[2m Test Files \x1b[22m \x1b[1m\x1b[32m1 passed\x1b[39m\x1b[22m\x1b[90m (1)\x1b[39m\n"
     "\x1b[2m      Tests \x1b[22m \x1b[1m\x1b[32m2 passed\x1b[39m\x1b[22m\x1b[90m (2)\x1b[39m", 0, GREEN, (2, 0)),
    ("npx mocha", "\n  ✔ good\n\n  1 passing (10ms)\n", 0, GREEN, (1, 0)),
    ("npx mocha", "    1) bad\n\n  1 passing (19ms)\n  2 pending\n  1 failing\n\n  1) x\n       bad:", 1, RED, (2, 1)),
    ("npx mocha", "\n\n  0 passing (7ms)\n", 0, EMPTY, (0, 0)),
    ("npx mocha", " Exception during run: Error: Cannot find module 'nope'\nRequire stack:", 1, BROKEN, None),
    ("npx ava", "  ✔ good\n  ─\n\n  1 test passed\n", 0, GREEN, (1, 0)),
    ("npx ava", "  ─\n\n  1 test failed\n  2 tests passed\n", 1, RED, (3, 1)),
    ("npx jasmine", "2 specs, 1 failure\nFinished in 0.018 seconds", 3, RED, (2, 1)),
    ("node --test", "1..1\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n# cancelled 0", 0, GREEN, (1, 0)),
    ("node --test", "not ok 2 - bad\n# tests 2\n# suites 0\n# pass 1\n# fail 1", 1, RED, (2, 1)),
    ("node --test", "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0", 0, EMPTY, (0, 0)),
    ("npm test", "> a@1.0.0 test\n> node --test\n\nℹ tests 2\nℹ pass 2\nℹ fail 0", 0, GREEN, (2, 0)),
    ("npm test", "npm error Missing script: \"test\"", 1, BROKEN, None),
    ("pnpm run test:unit", " Test Files  1 passed (1)\n      Tests  3 passed (3)", 0, GREEN, (3, 0)),
    ("yarn test", "Tests:       3 passed, 3 total\nDone in 2.1s.", 0, GREEN, (3, 0)),
    ("bun test", "bun test v1.1.0\n\n 5 pass\n 0 fail\n 7 expect() calls\nRan 5 tests across 2 files. [5.00ms]", 0, GREEN, (5, 0)),
    ("bun test", "\n 4 pass\n 1 skip\n 1 fail\nRan 6 tests across 1 files. [5.00ms]", 1, RED, (5, 1)),
    ("deno test", "running 1 test from ./a.ts\na ... ok (2ms)\n\nok | 1 passed | 0 failed (5ms)", 0, GREEN, (1, 0)),
    ("deno test", "FAILED | 1 passed (2 steps) | 1 failed (5ms)\n\nerror: Test failed", 1, RED, (2, 1)),
    ("go test ./...", "ok  \texample.com/a\t0.012s\n?   \texample.com/b\t[no test files]", 0, GREEN, (1, 0)),
    ("go test ./...", "ok  \texample.com/a\t(cached)", 0, GREEN, (1, 0)),
    ("go test -v", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.com/a\t0.012s", 0, GREEN, (1, 0)),
    ("go test", "--- FAIL: TestB (0.00s)\n    a_test.go:5: no\nFAIL\nFAIL\texample.com/a\t0.012s\nFAIL", 1, RED, (1, 1)),
    ("go test", "# example.com/a\n./a.go:3:5: undefined: x\nFAIL\texample.com/a [build failed]\nFAIL", 1, BROKEN, (1, 1)),
    ("go test -run Nope", "testing: warning: no tests to run\nPASS\nok  \texample.com/a\t0.01s [no tests to run]", 0, EMPTY, (0, 0)),
    ("go test ./...", "?   \texample.com/b\t[no test files]", 0, EMPTY, (0, 0)),
    ("go test -json", '{"Action":"pass","Package":"a","Test":"TestA","Elapsed":0}\n{"Action":"pass","Package":"a"}', 0, GREEN, (1, 0)),
    ("cargo test", "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n\n   Doc-tests demo\n\nrunning 0 tests\n\n"
     "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured", 0, GREEN, (2, 0)),
    ("cargo test", "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured\n\nerror: test failed, to rerun pass `--lib`", 101, RED, (2, 1)),
    ("cargo test", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured", 0, EMPTY, (0, 0)),
    ("cargo test", "error[E0425]: cannot find value `c` in this scope\nerror: could not compile `demo` (lib) due to 1 previous error", 101, BROKEN, None),
    ("cargo nextest run", "     Summary [   0.005s] 3 tests run: 3 passed, 0 skipped", 0, GREEN, (3, 0)),
    ("cargo nextest run", "     Summary [   0.005s] 3 tests run: 2 passed (1 slow), 1 failed, 0 skipped\nerror: test run failed", 100, RED, (3, 1)),
    ("mvn test", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS", 0, GREEN, (5, 0)),
    ("mvn test", "[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 0\n[ERROR] There are test failures.", 1, RED, (5, 2)),
    ("mvn test", "[INFO] No tests to run.\n[INFO] BUILD SUCCESS", 0, EMPTY, (0, 0)),
    ("mvn test", "[ERROR] COMPILATION ERROR : \n[ERROR] /a/A.java:[3,5] cannot find symbol", 1, BROKEN, None),
    ("./gradlew test", "> Task :compileJava\n> Task :test\n\nBUILD SUCCESSFUL in 3s\n4 actionable tasks: 4 executed", 0, GREEN, (1, 0)),
    ("./gradlew test", "> Task :test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s", 0, (False, "none"), None),
    ("gradle test", "ATest > bad() FAILED\n\n5 tests completed, 2 failed, 1 skipped\n\n> Task :test FAILED", 1, RED, (4, 2)),
    ("bundle exec rspec", "7 examples, 0 failures, 1 pending", 0, GREEN, (6, 0)),
    ("rspec", "7 examples, 1 failure\n\nFailed examples:\n\nrspec ./a_spec.rb:3 # A b", 1, RED, (7, 1)),
    ("rspec", "0 examples, 0 failures", 0, EMPTY, (0, 0)),
    ("rspec", "0 examples, 0 failures, 1 error occurred outside of examples", 1, BROKEN, (1, 1)),
    ("bin/rails test", "3 runs, 5 assertions, 0 failures, 0 errors, 1 skips", 0, GREEN, (2, 0)),
    ("vendor/bin/phpunit", "OK (5 tests, 7 assertions)", 0, GREEN, (5, 0)),
    ("vendor/bin/phpunit", "FAILURES!\nTests: 5, Assertions: 7, Errors: 1, Failures: 1.", 1, RED, (5, 2)),
    ("vendor/bin/phpunit", "OK, but incomplete, skipped, or risky tests!\nTests: 5, Assertions: 3, Skipped: 1.", 0, GREEN, (4, 0)),
    ("vendor/bin/phpunit", "PHPUnit 10.5.1\n\nNo tests executed!", 0, EMPTY, (0, 0)),
    ("vendor/bin/pest", "  Tests:    1 failed, 2 passed (3 assertions)\n  Duration: 0.1s", 1, RED, (3, 1)),
    ("ctest", "100% tests passed, 0 tests failed out of 1", 0, GREEN, (1, 0)),
    ("ctest", "50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - bad (Failed)", 8, RED, (2, 1)),
    ("ctest", "Test project /tmp/ct/b\nNo tests were found!!!", 0, EMPTY, (0, 0)),
    ("dotnet test", "Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12, Duration: 25 ms - a.dll", 0, GREEN, (12, 0)),
    ("dotnet test", "Failed!  - Failed:     1, Passed:    11, Skipped:     0, Total:    12, Duration: 25 ms", 1, RED, (12, 1)),
    ("dotnet test", "Test summary: total: 3, failed: 0, succeeded: 2, skipped: 1, duration: 1.2s\nBuild succeeded", 0, GREEN, (2, 0)),
    ("dotnet test", "No test is available in /a/b.dll. Make sure that test discoverer is registered", 0, EMPTY, (0, 0)),
    ("dotnet test", "/a/A.cs(3,5): error CS0103: The name 'x' does not exist in the current context [/a/a.csproj]", 1, BROKEN, None),
    ("swift test", "Executed 3 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds", 0, GREEN, (3, 0)),
    ("mix test", "Finished in 0.03 seconds\n5 tests, 1 failure", 2, RED, (5, 1)),
    ("sbt test", "[info] Tests: succeeded 3, failed 0, canceled 0, ignored 0, pending 0", 0, GREEN, (3, 0)),
    ("bazel test //...", "Executed 2 out of 2 tests: 1 test passes and 1 fails locally.", 3, RED, (2, 1)),
    ("./build/unit_tests", "[==========] 3 tests ran.\n[  PASSED  ] 3 tests.", 0, GREEN, (3, 0)),
    ("./tests", "All tests passed (3 assertions in 2 test cases)", 0, GREEN, (2, 0)),
    ("prove -r t", "All tests successful.\nFiles=2, Tests=7,  0 wallclock secs\nResult: PASS", 0, GREEN, (7, 0)),
    ("bats test", "1..2\nok 1 a\nnot ok 2 b", 1, RED, (2, 1)),
    ("make test", "5 passed in 0.2s", 0, GREEN, (5, 0)),
    ("make test", "1 failed, 4 passed in 0.2s\nmake: *** [Makefile:3: test] Error 1", 2, RED, (5, 1)),
    ("make test", "make: *** No rule to make target 'test'.  Stop.", 2, BROKEN, None),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "code", "expected", "counts"), RUNS)
def test_what_a_run_of_tests_says(
    command: str, text: str, code: int, expected: tuple[bool, str], counts: tuple[int, int] | None
) -> None:
    seen = Story().bash(command, text, code).last
    assert seen.kind == "test"
    assert (seen.tests_passed, seen.error_class) == expected
    assert (None if seen.tests_run is None else (seen.tests_run, seen.tests_failed)) == counts
    assert seen.tests_run is None or seen.tests_passed_count is None or seen.tests_passed_count <= seen.tests_run


@pytest.mark.parametrize(
    ("command", "text", "code", "expected", "counts"), [run for run in RUNS if run[4] and run[4][0]]
)
@pytest.mark.parametrize("wrapped", ["{} | tail -5", "cd /app && {} 2>&1", "({})", "{} || true", 'bash -lc "{}"'])
def test_the_summary_decides_where_the_status_is_masked(
    wrapped: str, command: str, text: str, code: int, expected: tuple[bool, str], counts: tuple[int, int]
) -> None:
    seen = Story().bash(wrapped.format(command), text, 0).last
    assert (seen.kind, seen.tests_passed) == ("test", expected[0])
    assert (seen.error_class == "capability") is (counts[1] > 0)


LINTS: list[tuple[str, str, int, tuple[str, str]]] = [
    ("ruff check l.py", "F401 [*] `os` imported but unused\n --> l.py:2:8\n\nFound 1 error.", 1, ("capability", "lint")),
    ("ruff check .", "l.py:2:8: F401 [*] `os` imported but unused\nFound 1 error.", 1, ("capability", "lint")),
    ("ruff check .", "All checks passed!", 0, ("none", "")),
    ("ruff format --check .", "Would reformat: l.py\n1 file would be reformatted", 1, ("capability", "lint")),
    ("ruff format --check .", "1 file already formatted", 0, ("none", "")),
    ("npx eslint e.js", "/tmp/e.js\n  1:7   error    'a' is assigned  no-unused-vars\n\n✖ 2 problems (1 error, 1 warning)", 1, ("capability", "lint")),
    ("npx eslint .", "\n✖ 2 problems (0 errors, 2 warnings)\n", 0, ("none", "")),
    ("npx tsc --noEmit", "t.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.", 2, ("capability", "compile")),
    ("npx tsc --noEmit", "", 0, ("none", "")),
    ("mypy l.py", "l.py:1: error: Incompatible types in assignment  [assignment]\nFound 1 error in 1 file (checked 1 source file)", 1, ("capability", "lint")),
    ("mypy .", "Success: no issues found in 1 source file", 0, ("none", "")),
    ("pylint a.py", "a.py:4:0: W0611: Unused import abc (unused-import)", 4, ("capability", "lint")),
    ("flake8", "./a.py:1:1: F401 'os' imported but unused", 1, ("capability", "lint")),
    ("black --check .", "would reformat /app/a.py\n\nOh no! 💥 💔 💥\n1 file would be reformatted.", 1, ("capability", "lint")),
    ("npx prettier --check .", "Checking formatting...\n[warn] a.js\n[warn] Code style issues found in the above file.", 1, ("capability", "lint")),
    ("cargo clippy", "error: this looks like a typo\n --> src/lib.rs:3:5\n\nerror: could not compile `a`", 101, ("capability", "compile")),
    ("go vet ./...", "# a\n./a.go:5:2: unreachable code", 1, ("capability", "lint")),
    ("shellcheck a.sh", "In a.sh line 2:\necho $x\n     ^-- SC2086 (info): Double quote", 1, ("capability", "lint")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "code", "expected"), LINTS)
def test_linters_and_format_checks(command: str, text: str, code: int, expected: tuple[str, str]) -> None:
    seen = Story().bash(command, text, code).last
    assert (seen.kind, seen.tests_passed) == ("test", False)
    assert (seen.error_class, seen.error_kind) == expected


COMPILERS: list[tuple[str, str]] = [
    ("gcc a.c", "a.c: In function ‘main’:\na.c:1:20: error: ‘x’ undeclared (first use in this function)"),
    ("gcc b.c", "/usr/bin/ld: /tmp/ccE.o: in function `main':\nb.c:(.text+0xa): undefined reference to `f'\ncollect2: error: ld returned 1 exit status"),
    ("clang++ a.cpp", "a.cpp:3:10: fatal error: 'x.h' file not found"),
    ("javac A.java", "A.java:1: error: incompatible types: String cannot be converted to int\n1 error"),
    ("make", "a.c:1:20: error: expected ';'\nmake: *** [Makefile:2: a] Error 1"),
    ("cargo build", "error[E0308]: mismatched types\n --> src/a.rs:3:5\n\nerror: could not compile `a`"),
    ("go build ./...", "# example.com/a\n./a.go:3:5: undefined: x"),
    ("kotlinc A.kt", "e: file:///app/A.kt:3:5 Unresolved reference: foo"),
    ("swift build", "/app/A.swift:3:5: error: cannot find 'x' in scope"),
    ("dotnet build", "/a/A.cs(3,5): error CS0103: The name 'x' does not exist [/a/a.csproj]"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text"), COMPILERS)
def test_compilers(command: str, text: str) -> None:
    for line, code in ((command, 1), (f"{command} 2>&1 | tail -20", 0)):
        seen = Story().bash(line, text, code).last
        assert (seen.status, seen.error_class, seen.error_kind) == ("failed", "capability", "compile")


@pytest.mark.parametrize(
    ("command", "text", "code", "expected"),
    [
        ("gcc a.c", "a.c:1:20: Fehler: »x« nicht deklariert (erste Benutzung in dieser Funktion)", 1, "compile"),
        ("gcc a.c", "a.c:1:20: 错误：‘x’未声明(在此函数内第一次使用)", 1, "compile"),
        ("javac A.java", "A.java:1: Fehler: Inkompatible Typen\n1 Fehler", 1, "compile"),
        ("foo", "bash: foo: Kommando nicht gefunden.", 127, "command_not_found"),
        ("foo", "bash: foo : commande introuvable", 127, "command_not_found"),
        ("./a.sh", "bash: ./a.sh: 权限不够", 126, "permission_denied"),
        (
            "git merge main",
            "CONFLIT (contenu) : Conflit de fusion dans a.txt\nLa fusion automatique a échoué",
            1,
            "merge",
        ),
        ("git apply a.patch", "Fehler: Anwendung des Patches fehlgeschlagen: a.py:1", 1, "patch"),
        ("./run", "erreur inattendue", 3, "exit_nonzero"),
        ("pytest", "erreur", 1, "test_failure"),
    ],
)
def test_other_languages_where_the_status_tells(command: str, text: str, code: int, expected: str) -> None:
    seen = Story().bash(command, text, code).last
    assert (seen.status, seen.evidence, seen.error_class, seen.error_kind) == (
        "failed",
        "exit_code",
        "capability",
        expected,
    )
    assert Story().bash(command, text, 0).last.status == "ok"


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("ls /nope", "ls: Zugriff auf '/nope' nicht möglich: Datei oder Verzeichnis nicht gefunden", 2),
        ("cat nope", "cat: nope: Aucun fichier ou dossier de ce type", 1),
        ("grep x nope.txt", "", 1),
    ],
)
def test_answers_in_other_languages_are_no_failures_to_correct(command: str, text: str, code: int) -> None:
    assert Story().bash(command, text, code).last.error_class == "informational"
