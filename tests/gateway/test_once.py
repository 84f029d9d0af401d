"""Calls that one of several concurrent turns makes: of turns that overlap, one makes it and the others go on without."""

from hypothesis import example, given
from hypothesis import strategies as st

from turnout.gateway.once import REMEMBERED_AT_MOST, Once

KEY = ("lane", "review")


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[float, float, float, bool]]:
    """Began, asks, is over, and whether what came of it was remembered."""
    found = []
    for _ in range(draw(st.integers(1, 8))):
        began, asks, ends = sorted(draw(st.lists(st.integers(0, 30), min_size=3, max_size=3, unique=True)))
        found.append((float(began), float(asks), float(ends), draw(st.booleans())))
    return found


@given(turns())
@example([(0.0, 5.0, 6.0, False), (3.0, 4.0, 5.0, False), (0.0, 1.0, 2.0, True)])
def test_of_turns_that_overlap_one_makes_the_call(made: list[tuple[float, float, float, bool]]) -> None:
    once = Once()
    events = sorted(
        [(asks, 1, i) for i, (_, asks, _, _) in enumerate(made)] + [(e, 0, i) for i, (_, _, e, _) in enumerate(made)]
    )
    granted: set[int] = set()
    for now, asks, i in events:
        if asks and once.enter(KEY, made[i][0]):
            granted.add(i)
        elif not asks and i in granted:
            once.leave(KEY, now, made[i][3])
    for i in granted:
        for j in granted - {i}:
            first, second = (i, j) if made[i][1] <= made[j][1] else (j, i)
            # The later one asked after the first was over, and began after it too unless nothing was remembered.
            assert made[second][1] >= made[first][2]
            assert made[second][0] > made[first][2] or not made[first][3]
    for i in set(range(len(made))) - granted:
        began, asks = made[i][0], made[i][1]
        assert any(made[j][1] <= asks and (made[j][2] >= began) for j in granted)  # somebody it overlaps made it


def test_other_calls_and_other_lanes_are_apart_and_memory_is_bounded() -> None:
    once = Once()
    assert once.enter(KEY, 0.0)
    assert once.enter(("lane", "other"), 0.0)
    assert once.enter(("other", "review"), 0.0)
    assert not once.enter(KEY, 1.0)
    for number in range(REMEMBERED_AT_MOST):
        once.enter((str(number), "review"), 0.0)
        once.leave((str(number), "review"), 1.0, remembered=True)
    assert len(once._made) == REMEMBERED_AT_MOST
    assert not once.enter((str(REMEMBERED_AT_MOST - 1), "review"), 0.5)
