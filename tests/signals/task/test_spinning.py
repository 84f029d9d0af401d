"""Activity without new information or change, and everything that only looks like it."""

import pytest
from tests.signals.task.steps import edit_failed, edited, failed, noted, ran, read, suite, waited

from turnout.signals import Observation, Task
from turnout.signals.course import BARREN, NEUTRAL
from turnout.signals.task.spinning import barren, level

FIRST, SECOND = edited("a.py", "1"), edited("a.py", "2")


def in_vain(seen: list[Observation]) -> str:
    """One letter per result: `*` in vain, `-` passed over, `.` anything else."""
    marks = Task(seen).course().marks
    return "".join("-" if m & NEUTRAL else "*" if m & BARREN else "." for m in marks)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([ran(), ran(), ran()], ".**", id="the same call with the same output"),
        pytest.param([ran("a"), ran("b", "b"), ran("a"), ran("b", "b")], "..**", id="alternating calls"),
        pytest.param([read(), read("b.py", "b"), read()], "..*", id="the same file read again"),
        pytest.param([read(), edited(), read()], "...", id="a file read again after a change"),
        pytest.param([ran(), FIRST, ran()], "...", id="one try more after a change"),
        pytest.param([ran(), FIRST, ran(), SECOND, ran()], ".****", id="changes without effect"),
        pytest.param(
            [ran(), FIRST, ran(), SECOND, read("b.py"), ran()], ".***.*", id="changes without effect, with a look between"
        ),
        pytest.param([ran(), edited(), ran(out="b")], "...", id="a change with effect"),
        pytest.param([ran(), FIRST, ran(), SECOND, ran(out="b")], ".....", id="an effect in the end"),
        pytest.param([ran(), edited(), ran("b")], "...", id="a change tried by something else"),
        pytest.param([ran(), edited()], "..", id="a change not tried yet"),
        pytest.param([ran(), read(), edited(), ran(), read()], "....*", id="looking at what a change in vain left"),
        pytest.param([edited(), edited(), edited()], ".**", id="the same edit again"),
        pytest.param([edited(), edited("b.py"), edited()], "...", id="the same edit after another"),
        pytest.param([edit_failed(), edit_failed("a.py", "other")], ".*", id="an edit that fails the same way"),
        pytest.param([edit_failed(), edit_failed("b.py")], "..", id="edits of two files that fail"),
        pytest.param([failed("x"), FIRST, failed("x"), SECOND, failed("x")], "*****", id="a failure that stays"),
        pytest.param([failed("x", "A"), FIRST, failed("x", "B"), SECOND, failed("x", "C")], ".....", id="new failures"),
        pytest.param([suite(9, 3), FIRST, suite(9, 3), SECOND, suite(9, 3)], "*****", id="as many failing tests, thrice"),
        pytest.param([suite(9, 3), FIRST, suite(9, 2), SECOND, suite(9, 1)], ".....", id="fewer failing tests"),
        pytest.param([suite(9, 0), edited(), suite(9, 0)], "...", id="tests that stay green"),
        pytest.param([suite(9, 0), suite(9, 0)], ".*", id="green tests again without a change"),
        pytest.param([ran("a", "off"), FIRST, ran("a", "on"), SECOND, ran("a", "off")], ".....", id="a switch flipped"),
        pytest.param([waited(), waited(), waited()], "---", id="waiting for checks"),
        pytest.param(
            [ran("sleep", "", target="sleep 30", waits=True), waited(), ran("sleep", "", target="sleep 30", waits=True)],
            "---", id="sleeping between",
        ),
        pytest.param(
            [Observation("BashOutput", kind="read", status="ok", call="c", digest="d", size=1)] * 3, ".--", id="polling a job"
        ),
        pytest.param([noted("a"), noted("b"), noted("a")], "---", id="notes"),
        pytest.param([ran("add", ""), edited(), ran("add", "")], "...", id="a silent command after a change"),
        pytest.param([ran("add", ""), ran("add", "")], ".*", id="a silent command again"),
        pytest.param([read(f"{i}.py", str(i)) for i in range(5)], ".....", id="reading on"),
        pytest.param(
            [failed(f"pip {i}", f"killed {i}", "critical", error_kind="download_timeout") for i in range(4)], "****",
            id="one way after another to an environment",
        ),
        pytest.param(
            [failed("pip 1", "killed", error_kind="download_timeout"), ran("pip 2", "done"),
             failed("pip 3", "cut", error_kind="download_timeout")],
            "...", id="an environment that gets somewhere",
        ),
    ],
)  # fmt: skip
def test_what_is_in_vain(seen: list[Observation], expected: str) -> None:
    assert in_vain(seen) == expected


def test_the_level_is_a_share_of_the_newest_results() -> None:
    marks = Task([read(f"{i}.py", str(i)) for i in range(20)] + [ran()] * 5).course().marks
    assert level(marks) == 0.5
    assert level(Task([ran()] * 20).course().marks) == 1.0
    assert level(()) == 0.0


def test_waiting_and_notes_are_passed_over() -> None:
    marks = Task([ran()] * 9 + [waited(), noted()] * 10).course().marks
    assert level(marks) == 1.0
    assert [marks[i] & NEUTRAL for i in barren(marks)] == [0] * 8


def test_what_came_again_before_is_not_new_in_a_circle() -> None:
    circle = [read(f"{i}.py", str(i)) for i in range(12)]
    assert level(Task(circle).course().marks) == 0.0
    assert level(Task(circle * 2).course().marks) == 1.0
