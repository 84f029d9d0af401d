"""Memory of lanes, in every store: folded events, one vote per turn, common prefixes, bounds, a reference model."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from turnout.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from turnout.routing.core import Lane, Placed, State
from turnout.sessions.address import parse
from turnout.sessions.redis import RedisStore
from turnout.sessions.store import RECENT, SNAPSHOTS_PER_LANE, MemoryStore, SessionStore, Snapshot, kept


class Voted(Struct, frozen=True):
    up: int


class Tallied(State, frozen=True):
    events: ClassVar[tuple[type[Struct], ...]] = (Voted,)
    total: int = 0

    def after(self, event: Any) -> "Tallied":
        return Tallied(self.total + event.up)


class Passing(State, frozen=True):
    events: ClassVar[tuple[type[Struct], ...]] = (Voted,)
    recent: ClassVar[bool] = True
    total: int = 0

    def after(self, event: Any) -> "Passing":
        return Passing(self.total + event.up)


LANE = Lane("", "s", "", "header")


def spoken(*texts: str) -> Conversation:
    return Conversation(tuple(Message("user" if i % 2 == 0 else "assistant", (Text(t),)) for i, t in enumerate(texts)))


class Opened:
    """A store and the event loop it lives in."""

    def __init__(self, store: SessionStore, runner: asyncio.Runner) -> None:
        self.store = store
        self.runner = runner


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with asyncio.Runner() as runner:
        opened: SessionStore = (
            MemoryStore() if request.param == "memory" else RedisStore(parse(request.getfixturevalue("redis_url")))
        )
        yield Opened(opened, runner)
        runner.run(opened.close())


def total(
    opened: Opened, conversation: Conversation, *, lane: Lane = LANE, compacted: bool = False, place: str = ""
) -> int:
    loaded = opened.runner.run(opened.store.load(lane, conversation, compacted))
    state = loaded.states.get(f"{place}/Tallied")
    return state.total if isinstance(state, Tallied) else 0


def vote(
    opened: Opened,
    conversation: Conversation,
    up: int = 1,
    *,
    lane: Lane = LANE,
    place: str | None = None,
    compacted: bool = False,
) -> None:
    event: Struct = Voted(up) if place is None else Placed(place, Voted(up))
    opened.runner.run(opened.store.commit(lane, conversation, compacted, (event,)))


def test_a_turn_reads_what_earlier_turns_left(store: Opened):
    vote(store, spoken("a"))
    vote(store, spoken("a", "b", "c"))
    assert total(store, spoken("a", "b", "c", "d", "e")) == 2


def test_a_retry_of_a_turn_is_the_same_turn(store: Opened):
    for _ in range(3):
        assert total(store, spoken("a")) == 0
        vote(store, spoken("a"))
    assert total(store, spoken("a", "b", "c")) == 1


def test_a_rewound_conversation_falls_back_to_the_common_prefix(store: Opened):
    vote(store, spoken("a"))
    vote(store, spoken("a", "b", "c"), 10)
    assert total(store, spoken("a", "b", "x")) == 1
    vote(store, spoken("a", "b", "x"), 100)
    assert total(store, spoken("a", "b", "x", "y", "z")) == 101
    assert total(store, spoken("a", "b", "c", "d", "e")) == 11


def test_a_compaction_keeps_the_newest_state(store: Opened):
    vote(store, spoken("a", "b", "c"), 7)
    assert total(store, spoken("summary"), compacted=True) == 7
    assert total(store, spoken("summary")) == 0


def test_lanes_and_places_are_apart(store: Opened):
    vote(store, spoken("a"), 1)
    vote(store, spoken("a"), 2, lane=Lane("", "s", "child", "header"))
    assert total(store, spoken("a", "b", "c")) == 1
    both = (Voted(1), Placed("inner", Voted(5)))
    store.runner.run(store.store.commit(LANE, spoken("a", "b", "c"), False, both))
    assert total(store, spoken("a", "b", "c", "d", "e")) == 2
    assert total(store, spoken("a", "b", "c", "d", "e"), place="inner") == 5


def test_without_identity_nothing_is_kept(store: Opened):
    vote(store, spoken("a"), lane=Lane())
    assert total(store, spoken("a", "b", "c"), lane=Lane()) == 0


def test_a_retry_of_a_compacted_turn_is_the_same_turn(store: Opened):
    vote(store, spoken("a", "b", "c"), 7)
    for _ in range(3):
        assert total(store, spoken("summary"), compacted=True) == 7
        vote(store, spoken("summary"), compacted=True)
    assert total(store, spoken("summary", "d", "e"), compacted=True) == 8
    vote(store, spoken("summary", "d", "e"), compacted=True)
    assert total(store, spoken("second"), compacted=True) == 9


def test_lanes_in_memory_are_bounded_and_expire():
    now = [0.0]
    memory = MemoryStore(ttl_s=10, max_lanes=3, clock=lambda: now[0])
    with asyncio.Runner() as runner:
        store = Opened(memory, runner)
        for i in range(10):
            vote(store, spoken("a"), lane=Lane("", str(i), "", "header"))
        assert len(memory) == 3
        assert total(store, spoken("a", "b", "c"), lane=Lane("", "9", "", "header")) == 1
        now[0] = 11
        assert total(store, spoken("a", "b", "c"), lane=Lane("", "9", "", "header")) == 0


def test_lanes_in_memory_stay_bounded_under_churn():
    """Many lanes that come once and go, beside one that stays in use."""
    memory = MemoryStore(max_lanes=500)
    first, later, steady = spoken("a"), spoken("a", "b", "c"), Lane("", "steady", "", "header")

    async def churn() -> int:
        most = 0
        await memory.commit(steady, first, False, (Voted(1),))
        for i in range(100_000):
            if i % 100 == 0:
                assert (await memory.load(steady, later, False)).states
            await memory.commit(Lane("", str(i), "", "header"), first, False, (Voted(1),))
            most = max(most, len(memory))
        return most

    assert asyncio.run(churn()) == 500
    assert all(len(lane.snapshots) == 1 for lane in memory._lanes.values())


def test_concurrent_commits_lose_no_event_of_another_position(store: Opened):
    async def both() -> None:
        await asyncio.gather(
            store.store.commit(LANE, spoken("a"), False, (Voted(1),)),
            store.store.commit(LANE, spoken("x", "y", "z"), False, (Voted(2),)),
        )

    store.runner.run(both())
    assert total(store, spoken("a", "b", "c", "d", "e")) == 1
    assert total(store, spoken("x", "y", "z", "d", "e")) == 2


TURNS = st.lists(st.tuples(st.lists(st.sampled_from("xyz"), min_size=1, max_size=4), st.integers(1, 9)), max_size=12)


@given(turns=TURNS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # every example has a lane of its own
def test_the_store_agrees_with_a_model_that_remembers_every_path(turns: list[tuple[list[str], int]], store: Opened):
    """Model: the state at a path is the state of its longest proper prefix that was committed, plus its own vote."""
    lane = Lane("", uuid.uuid4().hex, "", "header")
    model: dict[tuple[str, ...], int] = {}

    def expected(path: tuple[str, ...]) -> int:
        for cut in range(len(path) - 1, 0, -1):
            if path[:cut] in model:
                return model[path[:cut]]
        return 0

    for words, up in turns:
        # every message states its whole path, as real histories do by their content
        path = tuple("".join(words[: i + 1]) for i in range(len(words)))
        assert total(store, spoken(*path), lane=lane) == expected(path)
        vote(store, spoken(*path), up, lane=lane)
        model[path] = expected(path) + up


@given(st.lists(st.integers(1, 60), max_size=80))
def test_snapshots_of_a_lane_are_bounded_and_the_newest_stay(counts: list[int]):
    snapshots: list[Snapshot] = []
    for count in counts:
        snapshots = kept(snapshots, Snapshot(count, b"m", {}), lambda snapshot: snapshot)
    newest_first = list(dict.fromkeys(reversed(counts)))[:SNAPSHOTS_PER_LANE]
    assert [s.count for s in reversed(snapshots)] == newest_first


@pytest.mark.parametrize("moving", ["cache", "wrapping", "reasoning"])
def test_what_clients_change_in_a_history_they_send_again_does_not_lose_the_lane(moving: str, store: Opened):
    """Agents mark the newest message for the prompt cache, unwrap older ones, and drop old reasoning."""

    def sent(newest: bool) -> Message:
        mark = {"type": "ephemeral"} if newest and moving == "cache" else None
        wrapped = newest and moving == "wrapping"
        return Message(
            "user", (ToolResult("c1", (Text("1 failed", cache=mark),), True, text_only=not wrapped, cache=mark),)
        )

    thought = (Reasoning("hm"),) if moving == "reasoning" else ()
    call = ToolCall("c1", "Bash", "{}")
    ask = Message("user", (Text("fix it"),))
    vote(store, Conversation((ask, Message("assistant", (*thought, call)), sent(newest=True))))
    later = (ask, Message("assistant", (call,)), sent(newest=False), Message("assistant", (Text("so"),)), ask)
    assert total(store, Conversation(later)) == 1


def test_another_text_is_another_history(store: Opened):
    vote(store, spoken("a", "b", "c"))
    assert total(store, spoken("a", "b", "d", "e", "f")) == 0


def test_recent_states_are_kept_at_the_newest_positions_only(store: Opened):
    """The others stay at every position; what the lane was left with last is told whatever conversation asks."""
    lane = Lane("", uuid.uuid4().hex, "", "header")
    said = [str(i) for i in range(12)]
    for length in range(1, 12):
        vote(store, spoken(*said[:length]), 1, lane=lane)
    for back in range(1, 11):
        loaded = store.runner.run(store.store.load(lane, spoken(*said[: 12 - back], "another way"), False))
        seen = 12 - back
        assert loaded.states["/Tallied"] == Tallied(seen)
        assert loaded.states.get("/Passing") == (Passing(seen) if back <= RECENT else None)
        assert loaded.latest["/Passing"] == Passing(11)
    stranger = store.runner.run(store.store.load(lane, spoken("x", "y", "z"), False))
    assert not stranger.states
    assert stranger.latest["/Tallied"] == Tallied(11)
