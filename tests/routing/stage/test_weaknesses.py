"""Every kind of input that misleads a router of words, decided rightly by the stage router."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harnesses import SHELLS, run
from tests.story import Story

from turnout.conversation import Settings
from turnout.routing import Forward, Lane, Stage, TargetName, Turn
from turnout.routing.stage.router import StageMemory
from turnout.signals import observe

SMALL, LARGE = TargetName("small"), TargetName("large")
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    g()\nValueError: bad value'
every_harness = pytest.mark.parametrize("harness", SHELLS)


class Played:
    """A story and the router of its lane, asked turn by turn."""

    def __init__(self, lane: Lane | None = None, **fields: Any) -> None:
        self.router = Stage(SMALL, LARGE, **fields)
        self.lane = Lane("", "s", "", "header") if lane is None else lane
        self.memory = StageMemory()
        self.story = Story()

    def turn(self) -> Forward:
        seen = observe(self.story.conversation)
        memory = {"/StageMemory": self.memory}
        decision = self.router.route(Turn("t", self.lane, self.story.conversation, Settings(), seen, {}, memory=memory))
        for event in decision.remember:
            self.memory = self.memory.after(event)
        return decision


@every_harness
def test_the_same_failure_again_and_again_is_for_the_capable(harness: str) -> None:
    played = Played()
    for _ in range(3):
        run(played.story, harness, "python x.py", TRACEBACK, 1)
    assert played.turn().target == LARGE


@every_harness
def test_logs_full_of_failures_stay_with_the_efficient(harness: str) -> None:
    played = Played()
    for name in "abcd":
        run(played.story, harness, f"cat {name}.log", TRACEBACK)
        played.story.call("Read", {"file_path": f"/app/{name}.log"}, TRACEBACK)
        assert played.turn().target == SMALL


@every_harness
def test_a_success_of_the_same_thing_brings_the_work_back_down(harness: str) -> None:
    played = Played(hold=5)
    for _ in range(3):
        run(played.story, harness, "python x.py", TRACEBACK, 1)
    assert played.turn().target == LARGE
    run(played.story, harness, "python x.py", "fine")
    run(played.story, harness, "pytest", "3 passed in 0.1s")
    assert played.turn().target == SMALL


@every_harness
@pytest.mark.parametrize("said", ["Now write the docs.", "Jetzt bitte die Doku.", "次はドキュメントを書いて。"])
def test_a_new_task_begins_afresh(harness: str, said: str) -> None:
    played = Played()
    for _ in range(3):
        run(played.story, harness, "python x.py", TRACEBACK, 1)
    assert played.turn().target == LARGE
    played.story.say(said)
    assert played.turn().target == SMALL


@every_harness
@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("grep -rn foo .", 1, ""), ("which cargo", 1, ""), ("test -f a", 1, ""), ("diff a b", 1, "1c1"),
        ("ls /nope", 2, "ls: cannot access '/nope': No such file or directory"),
    ],
)  # fmt: skip
def test_answers_and_probes_never_escalate(harness: str, command: str, code: int, text: str) -> None:
    played = Played()
    for _ in range(4):
        run(played.story, harness, command, text, code)
    assert played.turn().target == SMALL


@every_harness
def test_waiting_does_not_escalate(harness: str) -> None:
    played = Played()
    for _ in range(4):
        run(played.story, harness, "sleep 5 && curl -s localhost:80/health", "curl: (7) Failed to connect: refused", 7)
    assert played.turn().target == SMALL


@pytest.mark.parametrize(
    "text", ["The user doesn't want to proceed with this tool use.", "[Request interrupted by user]"]
)
def test_what_the_user_declines_does_not_escalate(text: str) -> None:
    played = Played()
    for _ in range(3):
        played.story.call("Bash", {"command": "rm -rf b"}, text, is_error=True)
    assert played.turn().target == SMALL


@pytest.mark.parametrize("tool", ["Edit", "edit", "str_replace_editor", "deploy"])
@pytest.mark.parametrize("text", ["", "nope", "5 passed in 0.1s", "Das ging nicht."])
def test_flagged_failures_escalate_whatever_their_text(tool: str, text: str) -> None:
    played = Played()
    for _ in range(3):
        played.story.call(tool, {"command": "str_replace", "path": "a", "file_path": "a"}, text, is_error=True)
    assert played.turn().target == LARGE


@pytest.mark.parametrize(
    "talk", ["This session is being continued from a previous conversation", "the session is being continued"]
)
def test_talk_of_a_compaction_is_no_compaction(talk: str) -> None:
    played = Played()
    played.story.call("Read", {"file_path": "a"}, talk).say(f"What does '{talk}' mean?")
    assert played.turn().why.rule == ""


@pytest.mark.parametrize("tool", ["mcp__editor__replace_lines", "updateSpreadsheetCell", "modify_reservation"])
def test_unlisted_tools_at_work_are_no_stall(tool: str) -> None:
    played = Played()
    for i in range(12):
        played.story.call(tool, {"n": str(i)}, '{"success": true}')
    assert played.turn().target == SMALL


def test_reading_for_long_is_no_stall() -> None:
    played = Played(threshold=0.1)
    for i in range(20):
        played.story.call("Read", {"file_path": f"/app/{i}.py"}, f"x = {i}")
        assert played.turn().target == SMALL


def test_children_and_parents_do_not_share_a_hold() -> None:
    parent, child = Played(), Played(Lane("", "s", "child", "header"))
    for _ in range(3):
        run(child.story, "claude_code", "python x.py", TRACEBACK, 1)
    assert child.turn().target == LARGE
    parent.story.call("Task", {"prompt": "look"}, f"It fails: {TRACEBACK}")
    assert parent.turn().target == SMALL
    assert parent.memory == StageMemory()


def capable(played: Played) -> Played:
    for i in range(5):
        run(played.story, "codex", f"cat {i}", str(i))
    for i in range(6):
        run(played.story, "codex", f"python {i}.py", TRACEBACK.replace("bad value", "abcdef"[i]), 1)
    return played


def efficient(played: Played) -> Played:
    for path in "ab":
        played.story.call("Edit", {"file_path": path}, f"The file {path} has been updated.")
    run(played.story, "codex", "pytest", "3 passed in 0.1s")
    return played


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 0.9, exclude_min=True), st.sampled_from(["efficient_first", "capable_first"]))
def test_no_threshold_and_picker_make_a_tier_unreachable(threshold: float, picker: Any) -> None:
    assert capable(Played(threshold=threshold, picker=picker)).turn().target == LARGE
    assert efficient(Played(threshold=threshold, picker=picker)).turn().target == SMALL
