"""Stretches of results agree with hand labels at least as well as stated."""

from collections.abc import Sequence

import pytest
from tests.signals.task.steps import edit_failed, edited, failed, ran, read, suite, waited

from turnout.signals import Observation, window_signals


@pytest.mark.parametrize(
    ("seen", "repeated", "spinning"),
    [
        ([ran(), ran()], True, False),
        ([ran()] * 6, True, True),
        ([ran(), edited(), ran()], True, False),
        ([ran(), edited("a.py", "1"), ran(), edited("a.py", "2"), ran()], True, True),
        ([read(), edited(), read()], True, False),
        ([ran("add", ""), edited(), ran("add", "")], False, False),
        ([edited(), edited()], True, False),
        ([edited(), edited("b.py"), edited()], False, False),
        ([failed("x"), failed("x", "other")], False, False),
        ([suite(9, 3), edited(), suite(9, 2)], False, False),
        ([suite(9, 3), edited(), suite(9, 3)], True, False),
        ([waited()] * 8, True, False),
        ([read(f"{i}", str(i)) for i in range(8)], False, False),
        ([edit_failed("a.py", "1")] * 5, True, True),
        ([], False, False),
    ],
)
def test_stretches(seen: Sequence[Observation], repeated: bool, spinning: bool) -> None:
    found = window_signals(seen)
    assert (found.repeated, found.spinning) == (repeated, spinning)


def test_a_circle_shows_against_what_came_before() -> None:
    circle = [read(f"{i}", str(i)) for i in range(8)]
    assert not window_signals(circle).spinning
    assert window_signals(circle, circle).spinning
    assert not window_signals(circle, circle).repeated
