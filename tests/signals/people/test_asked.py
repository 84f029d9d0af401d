"""Requests that ask to look, and agents that can only look."""

import msgspec
import pytest
from tests.story import Story

from turnout.conversation import Tool
from turnout.signals import observe, progress
from turnout.signals.people.asked import asks_to_look

TRACEBACK = "Traceback (most recent call last):\nValueError: bad value"


@pytest.mark.parametrize(
    "said",
    [
        "Explain the code base.", "What does the router do?", "Can you review src/a.py?", "How does caching work here?",
        "Please don't change anything, find the cause", "Erkläre mir den Code", "解释一下这个函数", "なぜ失敗するのですか",
        "Investigate why CI is slow. Read-only please.", "Describe the architecture", "Where is the config read?",
        "Explique-moi ce module", "¿Qué hace esta función?", "Объясни этот код", "Fix nothing, no code changes: list the risks",
        "Look at the logs without modifying files",
    ],
)  # fmt: skip
def test_requests_to_look(said: str) -> None:
    assert asks_to_look(said)


@pytest.mark.parametrize(
    "said",
    [
        "Fix the bug.", "Why does the test fail? Fix it.", "Find and remove dead code", "Add logging", "The build fails",
        "How do I add a route? Implement it.", "Review the PR and fix the findings", "", "Make it faster",
        "Warum schlägt das fehl? Behebe es.", "修复这个错误", "Cancel my reservation", "What about this: write a parser",
    ],
)  # fmt: skip
def test_requests_for_work(said: str) -> None:
    assert not asks_to_look(said)


def searching(task: str) -> Story:
    """A story that fails once and then only looks around."""
    story = Story(task).bash("python x.py", TRACEBACK, 1)
    for i in range(12):
        story.call("Read", {"file_path": f"/app/{i}.py"}, f"x = {i}")
    return story


def test_looking_around_after_a_failure_is_exploring() -> None:
    found = progress(observe(searching("Fix the bug.").conversation), 3)
    assert (found.exploring, found.spinning) == (1.0, 0.0)
    assert len(found.evidence["exploring"]) == 8


@pytest.mark.parametrize("task", ["Explain why it fails.", "Find the cause. Do not change anything."])
def test_a_read_only_request_is_no_dithering(task: str) -> None:
    signals = observe(searching(task).conversation)
    assert signals.reads_only
    assert progress(signals, 3).exploring == 0


@pytest.mark.parametrize(
    ("names", "only"),
    [
        (("Read", "Grep", "Glob", "WebFetch", "TodoWrite"), True),
        (("Read", "Edit"), False),
        (("Read", "Bash"), False),
        (("Read", "mcp__files__write_file"), False),
        ((), False),
    ],
)
def test_an_agent_with_tools_that_only_look_is_no_ditherer(names: tuple[str, ...], only: bool) -> None:
    conversation = msgspec.structs.replace(
        searching("Fix the bug.").conversation, tools=tuple(Tool(name) for name in names)
    )
    assert observe(conversation).reads_only is only
    assert (progress(observe(conversation), 3).exploring == 0) is only


def test_who_changes_something_did_not_only_look() -> None:
    story = searching("Explain why it fails.").call("Edit", {"file_path": "a"}, "The file a has been updated.")
    assert not observe(story.conversation).reads_only
