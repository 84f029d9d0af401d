"""Memory of lanes: folded events, one vote per turn, common prefixes, bounds, a reference model."""

import asyncio
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from turnout.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from turnout.routing.core import Lane, Placed, State
from turnout.sessions.store import SNAPSHOTS_PER_LANE, MemoryStore


class Voted(Struct, frozen=True):
    up: int


class Tallied(State, frozen=True):
    events: ClassVar[tuple[type[Struct], ...]] = (Voted,)
    total: int = 0

    def after(self, event: Any) -> "Tallied":
        return Tallied(self.total + event.up)


LANE = Lane("", "s", "", "header")


def spoken(*texts: str) -> Conversation:
    return Conversation(tuple(Message("user" if i % 2 == 0 else "assistant", (Text(t),)) for i, t in enumerate(texts)))


def total(
    store: MemoryStore, conversation: Conversation, *, lane: Lane = LANE, compacted: bool = False, place: str = ""
) -> int:
    loaded = asyncio.run(store.load(lane, conversation, compacted))
    state = loaded.states.get(f"{place}/Tallied")
    return state.total if isinstance(state, Tallied) else 0


def vote(
    store: MemoryStore, conversation: Conversation, up: int = 1, *, lane: Lane = LANE, place: str | None = None
) -> None:
    event: Struct = Voted(up) if place is None else Placed(place, Voted(up))
    asyncio.run(store.commit(lane, conversation, False, (event,)))


def test_a_turn_reads_what_earlier_turns_left():
    store = MemoryStore()
    vote(store, spoken("a"))
    vote(store, spoken("a", "b", "c"))
    assert total(store, spoken("a", "b", "c", "d", "e")) == 2


def test_a_retry_of_a_turn_is_the_same_turn():
    store = MemoryStore()
    for _ in range(3):
        assert total(store, spoken("a")) == 0
        vote(store, spoken("a"))
    assert total(store, spoken("a", "b", "c")) == 1


def test_a_rewound_conversation_falls_back_to_the_common_prefix():
    store = MemoryStore()
    vote(store, spoken("a"))
    vote(store, spoken("a", "b", "c"), 10)
    assert total(store, spoken("a", "b", "x")) == 1
    vote(store, spoken("a", "b", "x"), 100)
    assert total(store, spoken("a", "b", "x", "y", "z")) == 101
    assert total(store, spoken("a", "b", "c", "d", "e")) == 11


def test_a_compaction_keeps_the_newest_state():
    store = MemoryStore()
    vote(store, spoken("a", "b", "c"), 7)
    assert total(store, spoken("summary"), compacted=True) == 7
    assert total(store, spoken("summary")) == 0


def test_lanes_and_places_are_apart():
    store = MemoryStore()
    vote(store, spoken("a"), 1)
    vote(store, spoken("a"), 2, lane=Lane("", "s", "child", "header"))
    assert total(store, spoken("a", "b", "c")) == 1
    asyncio.run(store.commit(LANE, spoken("a", "b", "c"), False, (Voted(1), Placed("inner", Voted(5)))))
    assert total(store, spoken("a", "b", "c", "d", "e")) == 2
    assert total(store, spoken("a", "b", "c", "d", "e"), place="inner") == 5


def test_without_identity_nothing_is_kept():
    store = MemoryStore()
    vote(store, spoken("a"), lane=Lane())
    assert len(store) == 0


def test_lanes_are_bounded_and_expire():
    now = [0.0]
    store = MemoryStore(ttl_s=10, max_lanes=3, clock=lambda: now[0])
    for i in range(10):
        vote(store, spoken("a"), lane=Lane("", str(i), "", "header"))
    assert len(store) == 3
    assert total(store, spoken("a", "b", "c"), lane=Lane("", "9", "", "header")) == 1
    now[0] = 11
    assert total(store, spoken("a", "b", "c"), lane=Lane("", "9", "", "header")) == 0


def test_concurrent_commits_lose_no_event_of_another_position():
    store = MemoryStore()

    async def both() -> None:
        await asyncio.gather(
            store.commit(LANE, spoken("a"), False, (Voted(1),)),
            store.commit(LANE, spoken("a", "b", "c"), False, (Voted(2),)),
        )

    asyncio.run(both())
    assert total(store, spoken("a", "b", "c", "d", "e")) == 3


@given(st.lists(st.tuples(st.lists(st.sampled_from("xyz"), min_size=1, max_size=4), st.integers(1, 9)), max_size=12))
def test_the_store_agrees_with_a_model_that_remembers_every_path(turns: list[tuple[list[str], int]]):
    """Model: the state at a path is the state of its longest proper prefix that was committed, plus its own vote."""
    store = MemoryStore()
    model: dict[tuple[str, ...], int] = {}

    def expected(path: tuple[str, ...]) -> int:
        for cut in range(len(path) - 1, 0, -1):
            if path[:cut] in model:
                return model[path[:cut]]
        return 0

    for words, up in turns:
        # every message states its whole path, as real histories do by their content
        path = tuple("".join(words[: i + 1]) for i in range(len(words)))
        assert total(store, spoken(*path)) == expected(path)
        vote(store, spoken(*path), up)
        model[path] = expected(path) + up
    assert all(len(m.snapshots) <= SNAPSHOTS_PER_LANE for m in store._lanes.values())


@pytest.mark.parametrize("moving", ["cache", "wrapping", "reasoning"])
def test_what_clients_change_in_a_history_they_send_again_does_not_lose_the_lane(moving: str):
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
    store = MemoryStore()
    vote(store, Conversation((ask, Message("assistant", (*thought, call)), sent(newest=True))))
    later = (ask, Message("assistant", (call,)), sent(newest=False), Message("assistant", (Text("so"),)), ask)
    assert total(store, Conversation(later)) == 1


def test_another_text_is_another_history():
    store = MemoryStore()
    vote(store, spoken("a", "b", "c"))
    assert total(store, spoken("a", "b", "d", "e", "f")) == 0
