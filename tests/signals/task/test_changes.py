"""What is taken back is no production."""

import pytest
from tests.signals.task.steps import edited, undone
from tests.story import Story

from turnout.signals import Observation, Task, observe, progress
from turnout.signals.course import CHANGED


def held(*seen: Observation) -> list[str]:
    """The targets of changes that still hold."""
    marks = Task(seen).course().marks
    return [o.target for o, mark in zip(seen, marks, strict=True) if mark & CHANGED]


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        ([edited("a.py"), edited("b.py"), undone()], []),
        ([edited("a.py"), edited("b.py"), undone("rollback a.py")], ["b.py"]),
        ([edited("/app/src/a.py"), edited("b.py"), undone("rollback src/a.py")], ["b.py"]),
        ([edited("a.py"), edited("b.py"), undone("rollback src")], []),
        ([edited("a.py"), undone(), edited("a.py")], ["a.py"]),
        ([edited("a.py"), undone("stash"), undone("unstash")], ["a.py"]),
        ([edited("a.py"), undone("stash")], []),
        ([edited("a.py"), undone("stash"), edited("b.py"), undone("unstash")], ["a.py", "b.py"]),
        ([edited("a.py"), edited("b.py"), undone("review")], []),
        ([edited("a.py"), edited("b.py"), undone("undo")], ["a.py"]),
        ([edited("a.py")], ["a.py"]),
    ],
)
def test_changes_that_hold(seen: list[Observation], left: list[str]) -> None:
    assert held(*seen) == left
    assert Task(seen).course().taken_back == sum(o.kind == "edit" and not o.takes_back for o in seen) - len(left)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("git checkout -- src/a.py", "rollback src/a.py"),
        ("git checkout src/a.py", "rollback src/a.py"),
        ("git checkout HEAD~1 -- a.py b.py", "rollback a.py b.py"),
        ("git checkout .", "rollback"),
        ("git checkout -f", "rollback"),
        ("git restore .", "rollback"),
        ("git restore a.py", "rollback a.py"),
        ("git -C repo restore a.py", "rollback a.py"),
        ("git reset --hard HEAD", "rollback"),
        ("git stash", "stash"),
        ("git stash push -u", "stash"),
        ("git stash pop", "unstash"),
        ("git stash apply", "unstash"),
        ("git revert HEAD --no-edit", "rollback"),
        ("git apply -R fix.patch", "rollback"),
        ("cd /app && git checkout -- a.py", "rollback a.py"),
        ("cp a.py.bak a.py", "rollback a.py"),
        ("mv a.py.orig a.py", "rollback a.py"),
        ("hg revert a.py", "rollback a.py"),
        ("git checkout -b feature", ""),
        ("git checkout main", ""),
        ("git checkout v1 ", ""),
        ("git restore --staged a.py", ""),
        ("git reset HEAD a.py", ""),
        ("git stash list", ""),
        ("git stash && pytest; git stash pop", ""),
        ("git revert --abort", ""),
        ("cp a.py a.py.bak", ""),
        ("git status", ""),
        ("echo 'git reset --hard'", ""),
    ],
)
def test_commands_that_take_changes_back(command: str, says: str) -> None:
    assert Story().bash(command, "", 0).last.takes_back == says


def test_a_rollback_that_fails_takes_nothing_back() -> None:
    seen = Story().bash("git checkout -- nowhere.py", "error: pathspec 'nowhere.py' did not match", 1).last
    assert seen.takes_back == ""


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "says"),
    [
        ("undo_edit", {"path": "/a.py"}, "Undone.", "undo"),
        ("str_replace_editor", {"command": "undo_edit", "path": "/a.py"}, "Last edit to /a.py undone.", "undo"),
        ("mcp__editor__revertFile", {"path": "a.py"}, "ok", "undo"),
        ("mcp__forge__review_change", {"id": 1}, '{"verdict": "request_changes", "notes": "..."}', "review"),
        ("code_review", {"diff": "x"}, "REJECTED: the tests do not cover it", "review"),
        ("code_review", {"diff": "x"}, '{"approved": false}', "review"),
        ("code_review", {"diff": "x"}, '{"approved": true, "notes": "the first try was rejected"}', ""),
        ("code_review", {"diff": "x"}, "Approved. An earlier version was rejected.", ""),
        ("Read", {"file_path": "review.md"}, "Rejected", ""),
        ("search_reviews", {"query": "x"}, "5 reviews found", ""),
    ],
)
def test_tools_that_take_changes_back(tool: str, arguments: object, text: str, says: str) -> None:
    assert Story().call(tool, arguments, text).last.takes_back == says


def test_a_declared_review_of_a_pull_request_counts() -> None:
    asked = "gh pr view 3 --json reviewDecision"
    assert Story().bash(asked, '{"reviewDecision":"CHANGES_REQUESTED"}', 0).last.takes_back == "review"
    assert Story().bash(asked, '{"reviewDecision":"APPROVED"}', 0).last.takes_back == ""


def test_a_change_that_was_rolled_back_is_no_production() -> None:
    story = Story().call("Edit", {"file_path": "/app/a.py"}, "The file /app/a.py has been updated.")
    assert progress(observe(story.conversation), 3).production == 1
    story.bash("git checkout -- a.py", "", 0)
    found = progress(observe(story.conversation), 3)
    assert (found.production, found.taken_back) == (0, 1)
    assert [place.message for place in found.evidence["taken_back"]] == [4]


def test_a_failed_edit_is_no_production() -> None:
    story = Story().call("Edit", {"file_path": "a"}, "String to replace not found in file.", is_error=True)
    found = progress(observe(story.conversation), 3)
    assert (found.production, found.severity) == (0, 0.3)


def test_a_rejected_edit_is_no_production() -> None:
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    story = Story().call("Edit", {"file_path": "a"}, text, is_error=True)
    found = progress(observe(story.conversation), 3)
    assert (found.production, found.severity) == (0, 0)
