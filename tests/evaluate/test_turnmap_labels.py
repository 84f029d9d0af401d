"""What a turn was for, told from its signals and what came of its calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from turnout.evaluate.turnmap_labels import LABELS, acts_of, label, labelled
from turnout.ledger.trace import TurnRecord
from turnout.signals import TOOL_KINDS, Observation, Signals


def turn(seen: tuple[Observation, ...] = (), id: str = "t", stop: str = "tool_calls", **fields: Any) -> TurnRecord:
    """A turn asked for after these results."""
    placed = tuple(replace(o, message=i) for i, o in enumerate(seen))
    signals = fields.pop("signals", Signals(observations=placed, results=len(seen), said_at=0, depth=len(seen)))
    return TurnRecord(
        id=id, at=0.0, route="r", session=fields.pop("session", "s"), stop=stop, signals=signals, **fields
    )


READ = Observation("Read", "read", status="ok", target="basket.py")
EDIT = Observation("Edit", "edit", status="ok", change="verified", target="basket.py")
GREEN = Observation("Bash", "test", status="ok", tests_run=3, tests_passed=True)
RED = Observation("Bash", "test", status="failed", error_class="capability", tests_run=3, tests_passed=False)
RUN = Observation("Bash", "execute", status="ok", target="python")
PLAN = Observation("TodoWrite", "plan")
WAIT = Observation("Bash", "execute", status="ok", waits=True)
STATUS = Observation("Bash", "read", status="ok", target="git status")
ABSENT = Observation("Grep", "search", status="failed", error_class="informational")


@pytest.mark.parametrize(
    ("before", "acts", "expected"),
    [
        ((), (READ,), "explore"),
        ((READ,), (ABSENT,), "explore"),
        ((ABSENT,), (READ,), "explore"),
        ((READ,), (PLAN,), "plan"),
        ((READ,), (PLAN, READ), "explore"),
        ((READ,), (EDIT,), "produce"),
        ((EDIT,), (GREEN,), "verify"),
        ((EDIT,), (RED,), "verify"),
        ((EDIT, RED), (READ,), "recover"),
        ((EDIT, RED, READ), (EDIT,), "recover"),
        ((EDIT, RED, EDIT), (GREEN,), "verify"),
        ((RED, READ, READ, READ), (READ,), "explore"),
        ((EDIT, RED), (PLAN,), "plan"),
        ((READ,), (RUN,), "explore"),
        ((EDIT,), (RUN,), "verify"),
        ((EDIT,), (READ,), "verify"),
        ((EDIT,), (STATUS,), "verify"),
        ((), (STATUS,), "explore"),
        ((EDIT, RED), (WAIT,), "verify"),
    ],
)
def test_what_calls_tell(before: tuple[Observation, ...], acts: tuple[Observation, ...], expected: str) -> None:
    assert label(turn(before), turn((*before, *acts))) == expected


def test_a_turn_without_calls_is_known_by_what_follows() -> None:
    said = turn((EDIT,), stop="end")
    assert label(said, turn((EDIT,), stop="end")) == "plan"  # the agent went on by itself
    asked = Signals(said_at=7, results=1, user_turn=True)
    assert label(said, turn(signals=asked)) == "summarise"  # the user spoke
    assert label(said, None) == "summarise"


@pytest.mark.parametrize(
    ("before", "acts", "expected"),
    [
        ((), ("read",), "explore"),
        ((READ,), ("edit",), "produce"),
        ((EDIT,), ("test",), "verify"),
        ((EDIT,), ("execute",), "verify"),
        ((EDIT, RED), ("edit",), "recover"),
        ((READ,), ("plan",), "plan"),
    ],
)
def test_calls_whose_results_never_came(before: tuple[Observation, ...], acts: tuple[Any, ...], expected: str) -> None:
    assert label(turn(before, acts=acts), None) == expected


def test_a_complaint_is_recovered_from() -> None:
    before = Signals(said_at=3, complaint=True, user_turn=True)
    after = Signals(observations=(replace(READ, message=5),), results=1, said_at=3, complaint=True, depth=1)
    assert label(turn(signals=before), turn(signals=after)) == "recover"


def test_without_signals_there_is_no_label() -> None:
    assert label(turn(signals=None), turn((READ,))) is None


observations = st.builds(
    Observation,
    tool=st.just("t"),
    kind=st.sampled_from(TOOL_KINDS),
    error_class=st.sampled_from(["none", "informational", "capability", "critical"]),
    change=st.sampled_from([None, "claimed", "verified"]),
    waits=st.booleans(),
    target=st.sampled_from(["", "a", "b", "git status"]),
)
histories = st.lists(observations, max_size=8).map(tuple)


@given(histories, st.lists(observations, max_size=4).map(tuple), st.sampled_from(["tool_calls", "end", ""]))
def test_every_turn_with_signals_has_one_label(before: Any, acts: Any, stop: str) -> None:
    assert label(turn(before, stop=stop), turn((*before, *acts))) in LABELS
    assert label(turn(before, stop=stop), None) in LABELS


@given(histories, st.lists(observations, max_size=4).map(tuple))
def test_acts_are_what_came_since(before: Any, acts: Any) -> None:
    first, second = turn(before).signals, turn((*before, *acts)).signals
    assert first is not None
    assert [replace(o, message=0) for o in acts_of(first, second)] == [replace(o, message=0) for o in acts]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=30))
def test_every_turn_is_given_once_however_lanes_alternate(steps: list[tuple[str, int]]) -> None:
    kinds = (READ, EDIT, RED)
    seen: dict[str, tuple[Observation, ...]] = {"a": (), "b": (), "c": ()}
    turns = []
    for n, (session, kind) in enumerate(steps):
        turns.append(turn(seen[session], id=str(n), session=session))
        seen[session] = (*seen[session], kinds[kind])
    found = list(labelled(turns))
    assert sorted(int(one.turn.id) for one in found) == list(range(len(steps)))
    alone = {one.turn.id: one for s in "abc" for one in labelled([t for t in turns if t.session == s])}
    assert all(one == alone[one.turn.id] for one in found)


def test_a_turn_failed_when_one_of_its_calls_did() -> None:
    found = list(labelled([turn((), "1"), turn((RED,), "2"), turn((RED, READ), "3")]))
    assert [one.failed for one in found] == [True, False, None]
