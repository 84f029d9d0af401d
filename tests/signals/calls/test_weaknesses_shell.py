"""Shell lines: what changes the workspace and what does not."""

import pytest
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.signals import observe, progress

every_harness = pytest.mark.parametrize("harness", SHELLS)

NO_WRITES = [
    "pytest 2>/dev/null", "grep -rn x . > /dev/null 2>&1", "ls 2>&1", "find . -name x 2>/dev/null | head", "make > /dev/null",
    "cat a.py | tee /dev/null", "python x.py 2>&1 >/dev/null", "echo hi >&2", "command -v x >/dev/null", "diff a b &>/dev/null",
    "echo 'a > b'", 'grep ">" a.html', "awk '$1 > 3' a.txt", "test 3 -gt 2 && echo yes",
]  # fmt: skip


@every_harness
@pytest.mark.parametrize("command", NO_WRITES)
def test_output_that_goes_nowhere_is_no_change(harness: str, command: str) -> None:
    story = run(Story(), harness, command, "x")
    assert story.last.change is None
    assert progress(observe(story.conversation), 3).production == 0


WRITES = [
    "echo x > a.txt", "cat > a.py <<'EOF'\nx = 1\nEOF", "sed -i s/a/b/ a.py", "printf x >> a", "cp a b", "mv a b",
    "python -c \"open('a','w').write('x')\"", "echo x | tee a.txt", "perl -pi -e s/a/b/ a", "git checkout -- a.py",
    "bash -lc 'echo x > a.txt'", "mkdir -p build",
]  # fmt: skip


@every_harness
@pytest.mark.parametrize("command", WRITES)
def test_a_shell_that_changed_the_workspace_produced(harness: str, command: str) -> None:
    assert run(Story(), harness, command).last.change == "verified"
    assert run(Story(), harness, command, "bash: a.txt: Permission denied", 1).last.change is None


@every_harness
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("sed -i s/a/b/ nope.py", "sed: can't read nope.py: No such file or directory"),
        ("mv nope.py b.py", "mv: cannot stat 'nope.py': No such file or directory"),
        ("rm nope.py", "rm: cannot remove 'nope.py': No such file or directory"),
        ("perl -pi -e s/a/b/ nope.py", "Can't open nope.py: No such file or directory."),
    ],
)
def test_a_change_that_failed_is_a_failure_and_no_production(harness: str, command: str, text: str) -> None:
    story = run(Story(), harness, command, text, 2)
    found = progress(observe(story.conversation), 3)
    assert (story.last.status, story.last.change, found.production) == ("failed", None, 0)
    assert found.severity > 0
