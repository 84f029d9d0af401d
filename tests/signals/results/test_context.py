"""Results whose meaning depends on what went before: reproductions, baselines, tests written first, scripts that download."""

# ruff: noqa: E501

import pytest
from tests.story import Story

from turnout.conversation import Conversation
from turnout.signals import Observation, observe
from turnout.signals.results.scripts import verdicts

ISSUE = "Calling f(None) raises `TypeError: bad operand type for unary -` since 3.2. Please fix it."
RED = "E   assert 0\nFAILED reproduce_issue.py::test_boo - assert 0\n==== 1 failed in 0.06s ===="
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n    f()\n'
KILLED = "The last command <command>{}</command> timed out and has been killed.\nThe output of the command was:\n <output>\n\n</output>"


def last(story: Story) -> Observation:
    return observe(Conversation(tuple(story.messages))).observations[-1]


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("pytest reproduce_issue.py", RED, 1),
        ("python repro.py", "FAILURE: characters are escaped", 0),
        ("python3 reproduce_issue.py", TRACEBACK + "AssertionError: 3 != 4", 1),
        ("python repro_issue.py", TRACEBACK + "TypeError: said in other words", 1),
        ("cd reproduction && sphinx-build -b html . _build", "Sphinx version error:\nThis project needs more", 2),
        ("python x.py", TRACEBACK + "TypeError: bad operand type for unary -: 'NoneType'", 1),
    ],
)
def test_a_reproduction_is_to_fail_until_the_code_is_touched(command: str, text: str, code: int) -> None:
    story = Story(ISSUE).bash("ls", "a", 0).bash(command, text, code)
    seen = last(story)
    assert (seen.error_class, seen.error_kind, seen.fingerprint) == ("informational", "expected_failure", "")
    story.bash("sed -i s/a/b/ src/a.py", "", 0).bash(command, text, code)
    assert last(story).error_class == "capability"


@pytest.mark.parametrize(
    "text",
    [
        TRACEBACK + "ModuleNotFoundError: No module named 'numpy'",
        '  File "reproduce_issue.py", line 1\n    x = (\n        ^\nSyntaxError: invalid syntax',
        "python: can't open file 'reproduce_issue.py': [Errno 2] No such file or directory",
        TRACEBACK + "sqlite3.OperationalError: no such table: a_b",
    ],
)
def test_a_reproduction_that_is_itself_broken_is_to_be_mended(text: str) -> None:
    assert last(Story(ISSUE).bash("python reproduce_issue.py", text, 1)).error_class == "capability"


def test_a_test_written_first_is_to_fail_until_the_code_is_changed() -> None:
    story = Story().bash("cat <<'E' > tests/test_new.py\ndef test_a(): assert 0\nE", "", 0)
    story.bash("pytest tests/test_new.py", "FAILED tests/test_new.py::test_a\n1 failed in 0.1s", 1)
    assert last(story).error_class == "informational"
    story.bash("pytest tests/test_old.py", "FAILED tests/test_old.py::test_a\n1 failed in 0.1s", 1)
    assert last(story).error_class == "capability"
    story.call("Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}, "done", is_error=False)
    story.bash("pytest tests/test_new.py", "FAILED tests/test_new.py::test_a\n1 failed in 0.1s", 1)
    assert last(story).error_class == "capability"


def test_a_rollback_of_everything_makes_the_code_untouched_again() -> None:
    story = Story(ISSUE).bash("sed -i s/a/b/ src/a.py", "", 0).bash("python repro.py", "FAILURE: x", 0)
    assert last(story).error_class == "capability"
    story.bash("git checkout .", "Updated 1 path", 0).bash("python repro.py", "FAILURE: x", 0)
    assert last(story).error_class == "informational"


def test_tests_run_without_the_change_tell_the_baseline() -> None:
    red = "FAILED tests/a.py::b\n2 failed, 4 passed in 0.15s"
    story = Story().bash("sed -i s/a/b/ src/a.py", "", 0).bash("pytest tests", red, 1)
    assert last(story).error_class == "capability"
    assert last(story.bash("git stash && pytest tests", red, 1)).error_class == "informational"
    story.bash("git stash pop", "", 0).bash("pytest tests", red, 1)
    assert last(story).error_class == "capability"
    story.bash("git stash", "Saved working directory", 0).bash("pytest tests", red, 1)
    assert last(story).error_class == "informational"
    story.bash("git stash pop", "Dropped refs/stash@{0}", 0).bash("pytest tests", red, 1)
    assert last(story).error_class == "capability"


@pytest.mark.parametrize("code", ["import requests\nrequests.get('https://example.com')", "from_pretrained('x')"])
def test_a_script_written_before_that_downloads_is_killed_by_the_network(code: str) -> None:
    def late(story: Story) -> Observation:
        return last(story.bash("python fetch.py", KILLED.format("python fetch.py")))

    assert late(Story()).error_class == "capability"
    assert late(Story().bash(f"cat <<'E' > fetch.py\n{code}\nE", "", 0)).error_class == "critical"
    assert late(Story().call("Write", {"file_path": "/app/fetch.py", "content": code}, "ok")).error_class == "critical"
    assert late(Story().bash("cat <<'E' > fetch.py\nprint(1)\nE", "", 0)).error_class == "capability"
    both = f"cat <<'E' > fetch.py\n{code}\nE\npython3 fetch.py"
    assert last(Story().bash(both, KILLED.format(both))).error_class == "critical"


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("SUCCESS: it works", True),
        ("Normal clone successful", True),
        ("Match: True", True),
        ("✓ a\n✓ b\nAll checks passed!", True),
        ("[PASS] 0: 0 -> True\n[PASS] 1: 1 -> False", True),
        ("ok so far\nresult: 3", False),
        ("✓ a\n✗ b", False),
        ("Match: False", False),
        ("PASS: a\nFAIL: b", False),
        ("Grid visible: True", False),
    ],
)
def test_a_script_that_checks_something_says_how_it_went(text: str, passed: bool) -> None:
    seen = last(Story().bash("sed -i s/a/b/ src/a.py", "", 0).bash("python test_it.py", text, 0))
    assert (seen.kind, seen.tests_passed) == ("test", passed)
    assert (seen.error_class == "capability") is bool(verdicts(text)[0])


def test_a_script_that_checks_nothing_is_no_test_whatever_its_name() -> None:
    probe = "cat <<'E' > test_it.py\nprint(f())\nE\npython test_it.py"
    check = "cat <<'E' > test_it.py\nassert f()\nE\npython test_it.py"
    assert [last(Story().bash(command, "3", 0)).kind for command in (probe, check)] == ["execute", "test"]


def test_an_uncaught_exception_is_a_failure_wherever_the_output_shows_it() -> None:
    printed = "starting\nstill working\ndone"
    for text in (f"{TRACEBACK}ValueError: x\n{printed}", f"{printed}\n{TRACEBACK}ValueError: x"):
        seen = last(Story().bash("python x.py", text, 0))
        assert (seen.status, seen.error_class, seen.evidence_text) == ("failed", "capability", "ValueError: x")


def test_what_a_harness_prints_behind_the_output_is_not_the_outputs() -> None:
    noise = "\n────────\n05:38:28 - LiteLLM:ERROR\nTraceback (most recent call last):\nImportError: no backoff"
    story = Story().call(
        "bash", {"command": "python x.py"}, f"<returncode>0</returncode>\n<output>\nfine\n</output>{noise}"
    )
    assert (last(story).status, last(story).error_class) == ("ok", "none")


def test_a_harness_that_loses_its_provider_says_nothing_of_the_command() -> None:
    text = "step 1 done\nlitellm.RateLimitError: overloaded, retrying in 5 seconds"
    assert last(Story().bash("./run", text)).error_class == "none"
    assert last(Story().bash("./run", text, 1)).error_class == "critical"


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("psql --version", "bash: psql: command not found", 127),
        ("python -c 'import numpy; print(numpy.__version__)'", "ModuleNotFoundError: No module named 'numpy'", 1),
        ("rm a.py", "rm: cannot remove 'a.py': No such file or directory", 1),
        ("nl -ba nope.py | sed -n '1,5p'", "nl: nope.py: No such file or directory", 0),
        ("which ruff", "", 1),
        ("./tool nonexistent.json", "Error: Cannot open nonexistent.json", 1),
        ("python -c \"parse('invalid')\"", TRACEBACK + "InvalidVersion: Invalid version: 'invalid'", 1),
        ("find src -name '*x*' | xargs grep -l foo", "grep: src/x: Is a directory", 123),
    ],
)
def test_what_is_only_asked_for_may_be_absent(command: str, text: str, code: int) -> None:
    assert last(Story().bash(command, text, code)).error_class == "informational"


@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("psql -c 'select 1'", "bash: psql: command not found", 127),
        ("python train.py", "ModuleNotFoundError: No module named 'numpy'", 1),
        ("./tool data.json", "Error: invalid JSON", 1),
        ("cp a.py b.py", "cp: cannot stat 'a.py': No such file or directory", 1),
    ],
)
def test_what_is_needed_may_not(command: str, text: str, code: int) -> None:
    assert last(Story().bash(command, text, code)).error_class == "capability"
