"""A task folded result by result says what a plain look over all its results says."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.signals.task.steps import edit_failed, edited, failed, ran, read, suite, undone, waited

from turnout.signals import OBSERVED_AT_MOST, Observation, Task
from turnout.signals.course import BARREN, CHANGED, CRITICAL, HARD, SOFT, UNDONE, WEIGHT
from turnout.signals.task.failures import SOFT_KINDS, clears

MOVES = st.one_of(
    st.builds(ran, st.sampled_from("abc"), st.sampled_from("xyz")),
    st.builds(failed, st.sampled_from("abc"), st.sampled_from(["E1", "E2", "E3"]), st.sampled_from(["capability", "critical"])),
    st.builds(failed, st.sampled_from("abc"), st.just("usage"), error_kind=st.just("usage")),
    st.builds(edited, st.sampled_from(["a.py", "b.py"])),
    st.builds(edit_failed, st.sampled_from(["a.py", "b.py"])),
    st.builds(read, st.sampled_from(["a.py", "b.py"]), st.sampled_from("xy")),
    st.builds(suite, st.just(10), st.integers(0, 4), st.sampled_from(["pytest", "pytest b"])),
)  # fmt: skip
STEPS = st.one_of(MOVES, st.builds(undone), st.builds(waited))


def falls(seen: list[Observation], at: int) -> bool:
    """Whether fewer tests failed at `at` than in the run before of the same tests."""
    o = seen[at]
    if o.tests_failed is None:
        return False
    before = [x for x in seen[:at] if x.tests_failed is not None and x.target == o.target]
    return bool(before) and o.tests_failed < (before[-1].tests_failed or 0)


def weights(seen: list[Observation]) -> list[int]:
    """The weight of every result, by looking at all the others."""
    found = []
    for i, o in enumerate(seen):
        weight = {"capability": HARD, "critical": CRITICAL}.get(o.error_class, 0)
        if weight == HARD and falls(seen, i):
            weight = SOFT
        elif weight == HARD and o.error_kind in SOFT_KINDS:
            weight = HARD if any(x.fingerprint == o.fingerprint for x in seen[:i]) else SOFT
        for j in range(i + 1, len(seen)):
            worked_off = o.tests_failed is not None and seen[j].target == o.target and falls(seen, j)
            if clears(seen[j], o) or worked_off:
                weight = 0
        found.append(weight)
    return found


@settings(deadline=None)
@given(st.lists(MOVES, max_size=40))
def test_failures_are_those_that_nothing_later_clears(seen: list[Observation]) -> None:
    course = Task(seen).course()
    expected = weights(seen)
    assert [mark & WEIGHT for mark in course.marks] == expected
    assert course.troubled == any(expected)
    counts: dict[str, int] = {}
    for o, weight in zip(seen, expected, strict=True):
        if weight:
            counts[o.fingerprint] = counts.get(o.fingerprint, 0) + 1
    several = sorted((n for n in counts.values() if n > 1), reverse=True)
    assert [r.count for r in course.failing] == several[:4]


@settings(deadline=None)
@given(st.lists(st.builds(ran, st.sampled_from("abc"), st.sampled_from("xyz")), max_size=30))
def test_repeated_calls_are_counted_over_the_whole_task(seen: list[Observation]) -> None:
    count: dict[tuple[str, str], int] = {}
    last: dict[str, str] = {}
    for o in seen:
        key = (o.call, o.digest)
        if key not in count and o.call in last:
            count[o.call, last[o.call]] = 0
        count[key] = count.get(key, 0) + 1
        last[o.call] = o.digest
    most = max(count.values(), default=0)
    repeated = Task(seen).course().repeated
    assert (repeated.count if repeated else 0) == (most if most > 1 else 0)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40), st.integers(0, 40))
def test_results_may_come_in_any_portions(seen: list[Observation], cut: int) -> None:
    task = Task(seen[:cut])
    task.course()
    for o in seen[cut:]:
        task.add(o)
    assert task.course() == Task(seen).course()


@settings(deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_marks_are_consistent(seen: list[Observation]) -> None:
    course = Task(seen).course()
    assert course.results == len(seen) == len(course.marks)
    for o, mark in zip(seen, course.marks, strict=True):
        assert not (mark & CHANGED and mark & UNDONE)
        assert not mark & CHANGED or o.change == "verified"
        assert not mark & WEIGHT or o.error_class in ("capability", "critical")
    assert course.taken_back == sum(bool(mark & UNDONE) for mark in course.marks)
    assert course.idle <= len(seen)


def test_long_tasks_keep_the_newest_marks_and_all_counts() -> None:
    task = Task()
    for i in range(500):
        task.add(failed("run", "E"))
        task.add(read(f"{i}.py", str(i)))
    course = task.course()
    assert (course.results, len(course.marks)) == (1000, OBSERVED_AT_MOST)
    assert course.failing[0].count >= OBSERVED_AT_MOST


def test_a_loop_as_wide_as_a_hundred_results_is_seen() -> None:
    seen = []
    for _ in range(3):
        seen.append(failed("make", "linker error"))
        seen += [read(f"{i}.py", f"{i}") for i in range(100)]
    seen.append(failed("make", "linker error"))
    assert Task(seen).course().failing[0].count == 4


@pytest.mark.parametrize(
    ("failure", "answer", "over"),
    [
        (failed("x"), ran("x", "fine"), True),
        (failed("x"), ran("y", "fine"), False),
        (failed("x"), ran("x", "fine", status="unknown"), False),
        (failed("x", target="python a.py"), ran("y", "fine", target="python a.py"), True),
        (failed("x", target="python a.py"), ran("y", "fine", target="python b.py"), False),
        (failed("x"), suite(3, 0), True),
        (failed("x"), suite(3, 1), False),
        (edit_failed("a.py", "1"), edited("a.py", "2"), True),
        (edit_failed("a.py", "1"), edited("b.py", "2"), False),
        (failed("x"), edited("a.py"), False),
        (failed("x"), read("a.py"), False),
        (suite(9, 3), suite(9, 1), True),
        (suite(9, 3), suite(9, 4), False),
        (
            Observation("book", kind="edit", status="failed", call="1", error_class="capability", fingerprint="no seats"),
            Observation("book", kind="edit", status="ok", call="2"),
            True,
        ),
        (
            Observation("book", kind="edit", status="failed", call="1", error_class="capability", fingerprint="no seats"),
            Observation("cancel", kind="edit", status="ok", call="2"),
            False,
        ),
    ],
)  # fmt: skip
def test_what_answers_a_failure(failure: Observation, answer: Observation, over: bool) -> None:
    first = Task([failure, answer]).course().marks[0]
    assert (first & WEIGHT == 0) is over


def test_a_failure_that_comes_back_after_a_success_counts_anew() -> None:
    course = Task([failed("x"), failed("x"), ran("x", "fine"), failed("x")]).course()
    assert course.failing == ()
    assert [mark & WEIGHT for mark in course.marks] == [0, 0, 0, HARD]


def test_a_recovered_failure_was_not_in_vain() -> None:
    course = Task([failed("x"), failed("x"), failed("x"), ran("x", "fine")]).course()
    assert not any(mark & BARREN for mark in course.marks)


def test_a_course_can_be_kept_and_read_back() -> None:
    course = Task([failed("x"), failed("x"), suite(4, 2), suite(4, 1), edited(), undone(), read()]).course()
    assert msgspec.json.decode(msgspec.json.encode(course), type=type(course)) == course
