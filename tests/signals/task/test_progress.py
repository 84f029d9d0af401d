"""What routers decide by, each with the results it came from."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.signals.task.steps import edited, failed, ran, read, suite, waited
from tests.signals.task.test_fold import STEPS
from tests.story import Story

from turnout.signals import Observation, Progress, Signals, observe, progress
from turnout.signals.course import CITED_AT_MOST
from turnout.signals.task.progress import PATIENCE, STALLED

COMPACTED = "This session is being continued from a previous conversation that ran out of context."


def of(*seen: Observation, window: int = 3, **more: Any) -> Progress:
    """The progress of `seen`, placed in messages 1, 2, 3 ..."""
    placed = tuple(
        Observation(**{f: getattr(o, f) for f in o.__struct_fields__} | {"message": i}) for i, o in enumerate(seen, 1)
    )
    return progress(Signals(placed, **{"depth": len(seen), **more}), window)


def cited(found: Progress, signal: str) -> list[int]:
    return [place.message for place in found.evidence.get(signal, ())]


def test_nothing_is_at_rest_and_without_evidence() -> None:
    assert progress(Signals(), 3) == Progress()
    assert of(ran()).evidence == {}


@pytest.mark.parametrize(
    ("signal", "seen", "value", "where"),
    [
        ("severity", [failed("x"), ran("y"), ran("z")], 0.7, [1]),
        ("severity", [failed("x", error_class="critical"), failed("y"), ran("z")], 1.0, [1]),
        ("failures", [failed("x"), ran("y"), failed("z", "K")], 2, [1, 3]),
        ("persistence", [failed("x"), failed("y", "K"), failed("z", "L")], 1.0, [1, 2, 3]),
        ("repeated", [failed("x"), failed("x")], 2, [1, 2]),
        ("repeated", [failed("x"), *[read(f"{i}", str(i)) for i in range(9)], failed("x")], 0, []),
        ("repeated", [failed("x"), read(), failed("x"), *[read(f"{i}", str(i)) for i in range(9)], failed("x")], 3, [1, 3, 13]),
        ("repeated", [failed("x"), failed("x"), ran("x", "fine")], 0, []),
        ("repeated_calls", [ran("a"), read(), ran("a")], 2, [1, 3]),
        ("repeated_calls", [ran("a"), ran("a", "b")], 0, []),
        ("repeated_calls", [waited(), waited(), waited()], 0, []),
        ("spinning", [ran(), ran(), ran()], 0.25, [2, 3]),
        ("production", [edited("a"), edited("b"), ran()], 1.0, [1, 2]),
        ("production", [edited("a"), read("b"), read("c")], 1 / 3, [1]),
        ("production", [ran(), edited("a"), ran()], 1.0, [2]),
        ("production", [ran(), edited("a"), ran(), edited("b"), ran()], 0, []),
        ("tests_passed", [suite(5, 0), edited(), read()], True, [1]),
        ("tests_passed", [suite(5, 0), failed("x")], False, []),
        ("tests_passed", [suite(5, 0), suite(5, 2)], False, []),
        ("trend", [suite(9, 6), edited(), suite(9, 3)], 0.5, [1, 3]),
        ("trend", [suite(9, 3), edited(), suite(9, 6)], -0.5, [1, 3]),
        ("waiting", [ran(), waited()], True, [2]),
        ("waiting", [waited(), ran()], False, []),
    ],
)  # fmt: skip
def test_signals_and_where_they_come_from(signal: str, seen: list[Observation], value: float, where: list[int]) -> None:
    found = of(*seen)
    assert getattr(found, signal) == pytest.approx(value)
    assert cited(found, signal) == where


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40), st.integers(1, 8))
def test_levels_are_bounded_and_evidence_is_of_results(seen: list[Observation], window: int) -> None:
    found = of(*seen, window=window)
    for name in ("severity", "persistence", "spinning", "exploring", "stall", "production", "compaction", "complaint"):
        assert 0 <= getattr(found, name) <= 1
    assert -1 <= found.trend <= 1
    assert found.repeated != 1
    assert found.repeated_calls != 1
    for name, places in found.evidence.items():
        assert getattr(found, name), name
        assert 0 < len(places) <= CITED_AT_MOST
        assert [p.message for p in places] == sorted(p.message for p in places)
        assert all(1 <= p.message <= len(seen) and p.call == seen[p.message - 1].call for p in places)
    assert bool(found.severity) == bool(found.failures) == ("severity" in found.evidence)


def test_the_call_a_piece_of_evidence_names_is_the_one_made() -> None:
    story = Story().bash("python x.py", "ValueError: x", 1)
    (place,) = progress(observe(story.conversation), 3).evidence["severity"]
    assert (place.message, place.part, place.call) == (2, 0, story.last.call)


def test_a_stall_grows_with_what_moves_nothing() -> None:
    looks = [read(f"{i}", str(i)) for i in range(40)]
    assert of(*looks).stall == 0
    stalls = [of(edited(), *looks[:n]).stall for n in range(40)]
    assert stalls == sorted(stalls)
    assert (stalls[PATIENCE], stalls[STALLED]) == (0, 1)
    assert cited(of(edited(), *looks), "stall") == [1]


@pytest.mark.parametrize(
    ("move", "moves"),
    [
        (edited("new.py"), True),
        (suite(9, 1), True),
        (suite(9, 0), True),
        (suite(9, 3), False),
        (ran("x", "fine"), True),
        (failed("x"), False),
        (read("other.py", "other"), False),
        (waited(), False),
    ],
)
def test_what_ends_a_stall(move: Observation, moves: bool) -> None:
    stuck = [failed("x"), suite(9, 3), *[read(f"{i}", str(i)) for i in range(20)]]
    assert (of(*stuck, move).stall < of(*stuck).stall) is moves


def test_a_change_in_vain_does_not_end_a_stall() -> None:
    stuck = [ran(), failed("x"), *[read(f"{i}", str(i)) for i in range(20)], ran()]
    assert of(*stuck, edited(), ran()).stall >= of(*stuck).stall > 0


def test_waiting_is_no_stall() -> None:
    assert of(failed("x"), *[waited(f"{i}") for i in range(40)]).stall == 0


def test_a_compaction_fades() -> None:
    story = Story(COMPACTED)
    levels = []
    for i in range(6):
        found = progress(observe(story.conversation), 3)
        levels.append(found.compaction)
        story.bash(f"ls {i}", str(i), 0)
    assert levels == [1.0, 0.75, 0.5, 0.25, 0, 0]
    assert cited(progress(observe(Story(COMPACTED).conversation), 3), "compaction") == [0]


def test_a_compaction_in_the_middle_counts_from_there() -> None:
    story = Story()
    for i in range(10):
        story.bash(f"ls {i}", str(i), 0)
    story.say(COMPACTED)
    signals = observe(story.conversation)
    assert (signals.depth, signals.since_compaction, signals.compacted_at) == (10, 0, 21)
    assert progress(signals, 3).compaction == 1.0


def test_a_real_user_turn_begins_a_new_task() -> None:
    story = Story().bash("python x.py", "ValueError: x", 1).bash("python x.py", "ValueError: x", 1)
    assert progress(observe(story.conversation), 3).repeated == 2
    story.say("Leave that. Rename the file.").bash("python x.py", "ValueError: x", 1)
    assert progress(observe(story.conversation), 3).repeated == 0


def test_what_children_report_is_not_what_failed() -> None:
    story = Story()
    for _ in range(3):
        story.call("Task", {"prompt": "look"}, "Traceback (most recent call last):\nValueError: x\n3 failed")
    found = progress(observe(story.conversation), 3)
    assert (found.severity, found.repeated, found.tests) == (0, 0, ())
