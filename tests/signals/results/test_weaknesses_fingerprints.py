"""Fingerprints: the same failure is the same whatever changes in its text, different failures are different."""

# ruff: noqa: E501 (texts as programs print them)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.signals import observe, progress


def python(last: str, line: int = 3, path: str = "/app/x.py") -> str:
    return f'Traceback (most recent call last):\n  File "{path}", line {line}, in f\n    g()\n{last}'


def fingerprints(texts: list[str], command: str = "./run-it", code: int = 1) -> list[str]:
    return [run(Story(), "mini_swe_agent", command, text, code).last.fingerprint for text in texts]


DIFFERENT = {
    "python": [
        python("ValueError: bad value"), python("KeyError: 'name'"), python("TypeError: unsupported operand"),
        python("ValueError: other thing"), python("app.errors.ConfigError: no section"),
    ],
    "chained": [
        python("KeyError: 'a'") + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + python("RuntimeError: cannot load"),
        python("KeyError: 'a'") + "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + python("TypeError: cannot save"),
    ],
    "java": [
        'Exception in thread "main" java.lang.NullPointerException\n\tat a.B.c(B.java:3)',
        'Exception in thread "main" java.lang.IllegalStateException: closed\n\tat a.B.c(B.java:3)',
    ],
    "java causes": [
        "Exception in thread \"main\" java.lang.RuntimeException: x\n\tat a.B.c(B.java:3)\nCaused by: java.io.IOException: gone",
        "Exception in thread \"main\" java.lang.RuntimeException: x\n\tat a.B.c(B.java:3)\nCaused by: java.sql.SQLException: locked",
    ],
    "node": [
        "/app/x.js:3\nTypeError: a is not a function\n    at f (/app/x.js:3:7)",
        "/app/x.js:3\nReferenceError: b is not defined\n    at f (/app/x.js:3:7)",
    ],
    "rust": [
        "error[E0308]: mismatched types\n --> src/main.rs:2:5\nerror: could not compile `a` (bin \"a\") due to 1 previous error",
        "error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5\nerror: could not compile `a` (bin \"a\") due to 1 previous error",
    ],
    "go": ["./main.go:5:2: undefined: foo", "./main.go:5:2: declared and not used: bar"],
    "gcc": ["a.c:3:1: error: expected ';' before '}'", "a.c:3:1: error: 'x' undeclared (first use in this function)"],
    "make": [
        "a.c:3:1: error: expected ';'\nmake: *** [Makefile:3: all] Error 1",
        "a.c:3:1: error: conflicting types for 'f'\nmake: *** [Makefile:3: all] Error 1",
    ],
    "npm": [
        "npm error code ELIFECYCLE\nsrc/a.ts(3,5): error TS2322: Type 'x' is not assignable",
        "npm error code ELIFECYCLE\nsrc/a.ts(3,5): error TS2304: Cannot find name 'y'",
    ],
    "pytest": [
        "FAILED tests/test_a.py::test_b - assert 1 == 2\n=== 1 failed in 0.1s ===",
        "FAILED tests/test_a.py::test_c - KeyError: 'x'\n=== 1 failed in 0.1s ===",
    ],
    "unittest": [
        "ERROR: test_a (t.A.test_a)\n" + python("ValueError: a") + "\n\nRan 1 test in 0.001s\n\nFAILED (errors=1)",
        "ERROR: test_b (t.A.test_b)\n" + python("KeyError: b") + "\n\nRan 1 test in 0.001s\n\nFAILED (errors=1)",
    ],
    "words beside": ["fatal: not a git repository", "fatal: bad revision 'mian'"],
}  # fmt: skip


@pytest.mark.parametrize("texts", DIFFERENT.values(), ids=DIFFERENT)
def test_different_failures_under_one_banner_differ(texts: list[str]) -> None:
    found = fingerprints(texts)
    assert all(found)
    assert len(set(found)) == len(texts)


@pytest.mark.parametrize("texts", DIFFERENT.values(), ids=DIFFERENT)
def test_different_failures_of_one_command_are_no_repeated_failure(texts: list[str]) -> None:
    story = Story()
    for text in texts:
        run(story, "codex", "./run-it", text, 1)
    assert progress(observe(story.conversation), len(texts)).repeated == 0


CHANGING = {
    "lines and paths": [python("ValueError: bad value", 3, "/app/x.py"), python("ValueError: bad value", 99, "/tmp/tmp8fj2/y.py")],
    "path in the message": [
        python("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pytest-of-a/pytest-3/x.db'"),
        python("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pytest-of-a/pytest-17/x.db'"),
    ],
    "address": [
        python("RuntimeError: <app.Thing object at 0x7f3a5c0b1d90> is closed"),
        python("RuntimeError: <app.Thing object at 0x7fb0110aa2e0> is closed"),
    ],
    "uuid": [
        python("LookupError: no job 2f0c7b1e-9d8a-4c3b-8a77-0f3a1b2c3d4e"),
        python("LookupError: no job 91b1c0de-1a2b-4c5d-9e8f-aabbccddeeff"),
    ],
    "time": [
        "2026-01-02T03:04:05.678Z app: error: cannot open the store",
        "2026-11-30T23:59:59Z app: error: cannot open the store",
    ],
    "clock": ["12:00:01 error: cannot open the store", "23:59:59 error: cannot open the store"],
    "port": [
        "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8080)",
        "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 49152)",
    ],
    "pid": ["fatal: process 1234 died", "fatal: process 99871 died"],
    "duration": ["error: no answer after 10.02s", "error: no answer after 9.87s"],
    "milliseconds": ["error: no answer after 1002ms", "error: no answer after 87ms"],
    "commit": ["fatal: bad object 3f2a9c1d8e7b", "fatal: bad object a1b2c3d4e5f6"],
    "url": ["error: cannot reach https://example.com/a?x=1", "error: cannot reach https://example.org/b"],
    "windows path": ["error: cannot open C:\\Users\\a\\x.db", "error: cannot open D:\\work\\b\\x.db"],
    "line and column": ["a.c:3:1: error: expected ';' before '}'", "a.c:14:22: error: expected ';' before '}'"],
    "go": ["./main.go:5:2: undefined: foo", "./main.go:71:12: undefined: foo"],
    "memory size": ["error: heap of 512MB is full", "error: heap of 1024MB is full"],
    "colours": ["\x1b[31merror: cannot open the store\x1b[0m", "error: cannot open the store"],
    "thread": [
        "thread 'main' (1234) panicked at src/main.rs:2:5:\nboom",
        "thread 'main' (987) panicked at src/main.rs:19:9:\nboom",
    ],
}  # fmt: skip


@pytest.mark.parametrize("texts", CHANGING.values(), ids=CHANGING)
@pytest.mark.parametrize("harness", SHELLS)
def test_one_failure_with_changing_tokens_is_one_failure(harness: str, texts: list[str]) -> None:
    story = Story()
    for text in texts:
        run(story, harness, "./run-it", text, 1)
    first, second = (o.fingerprint for o in story.seen)
    assert first
    assert first == second
    assert progress(observe(story.conversation), 3).repeated == 2


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6), st.integers(0, 2**48), st.uuids(), st.floats(0.001, 900),
            st.sampled_from(["/app/a.py", "/tmp/x1/b.py", "src/c.py", "./d/e.py"]),
        ),
        min_size=2, max_size=4,
    )
)  # fmt: skip
def test_no_volatile_token_makes_a_failure_new(tokens: list[tuple[int, int, object, float, str]]) -> None:
    texts = [
        python(f"TimeoutError: job {job} at {at:#x} ({number}) gave up after {seconds:.3f}s in {path}:{number}")
        for number, at, job, seconds, path in tokens
    ]
    assert len(set(fingerprints(texts))) == 1


def test_the_harness_makes_no_difference_to_the_failure() -> None:
    text = python("ValueError: bad value")
    found = {run(Story(), harness, "python x.py", text, 1).last.fingerprint for harness in SHELLS}
    assert len(found) == 1


def test_fingerprints_hold_no_text() -> None:
    found = run(Story(), "codex", "./x", "fatal: token sk-abcdefghijklmnop1234 was refused", 1).last.fingerprint
    assert "sk-" not in found
    assert len(found) < 40
