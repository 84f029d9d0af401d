"""Lanes in Redis: replicas see one state, no event is lost in a race, and a server that is away costs memory, not turns."""

import asyncio
import itertools
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.redis_server import RedisServer, free_port, program

from turnout.conversation import Conversation, Message, Text
from turnout.routing.core import Lane, State
from turnout.sessions import link as linking
from turnout.sessions.address import parse
from turnout.sessions.redis import RedisStore, lane_name
from turnout.sessions.store import SNAPSHOTS_PER_LANE, MemoryStore, SessionStore


class Spoke(Struct, frozen=True):
    word: str


class Log(State, frozen=True):
    """Remembers every event in order, so that a lost or doubled one shows."""

    events: ClassVar[tuple[type[Struct], ...]] = (Spoke,)
    words: tuple[str, ...] = ()

    def after(self, event: Any) -> "Log":
        return Log((*self.words, event.word))


class Met(Struct, frozen=True):
    value: Any


class Odd(State, frozen=True):
    """Holds whatever it met, JSON or not."""

    events: ClassVar[tuple[type[Struct], ...]] = (Met,)
    value: Any = None

    def after(self, event: Any) -> "Odd":
        return Odd(event.value)


LANE = Lane("", "s", "", "header")


def spoken(*texts: str) -> Conversation:
    return Conversation(tuple(Message("user" if i % 2 == 0 else "assistant", (Text(t),)) for i, t in enumerate(texts)))


def at(position: int, branch: str = "") -> Conversation:
    """The conversation with this many messages."""
    return spoken(*(f"{branch}{i}" for i in range(position)))


async def words(store: SessionStore, conversation: Conversation, lane: Lane = LANE) -> tuple[str, ...]:
    state = (await store.load(lane, conversation, False)).states.get("/Log", Log())
    assert isinstance(state, Log)
    return state.words


@asynccontextmanager
async def replicas(url: str, count: int = 2, **options: Any) -> AsyncIterator[list[RedisStore]]:
    """Stores of as many gateways, on one server."""
    stores = [RedisStore(parse(url), **options) for _ in range(count)]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


def test_replicas_with_alternating_turns_see_one_state(redis_url: str):
    async def talk() -> None:
        async with replicas(redis_url, 3) as stores:
            said: tuple[str, ...] = ()
            for turn, store in zip(range(1, 30), itertools.cycle(stores), strict=False):
                assert await words(store, at(2 * turn - 1)) == said
                await store.commit(LANE, at(2 * turn - 1), False, (Spoke(str(turn)),))
                said = (*said, str(turn))
            assert not any(store.trouble for store in stores)

    asyncio.run(talk())


def test_versions_grow_with_every_commit(redis_url: str):
    async def talk() -> None:
        async with replicas(redis_url) as (one, two):
            versions = []
            for turn, store in ((1, one), (2, two), (3, one)):
                await store.commit(LANE, at(turn), False, (Spoke("x"),))
                versions.append((await two.load(LANE, at(turn + 1), False)).version)
            assert versions == [versions[0], versions[0] + 1, versions[0] + 2]

    asyncio.run(talk())


def test_a_write_onto_a_newer_version_folds_again(redis_url: str):
    """The other replica commits between the first one's reading and its writing."""

    async def race() -> None:
        async with replicas(redis_url) as (one, two):
            await one.commit(LANE, at(1), False, (Spoke("first"),))
            await one.load(LANE, at(5), False)
            await two.load(LANE, at(3), False)
            await two.commit(LANE, at(3), False, (Spoke("second"),))
            await one.commit(LANE, at(5), False, (Spoke("third"),))
            assert await words(two, at(7)) == ("first", "second", "third")
            assert one.trouble == {("commit", "conflict"): 1}
            assert not two.trouble

    asyncio.run(race())


def test_a_lane_that_was_forgotten_meanwhile_is_not_taken_for_the_one_that_was_read(redis_url: str):
    async def race() -> None:
        async with replicas(redis_url) as (one, two):
            await one.commit(LANE, at(1), False, (Spoke("old"),))
            await one.load(LANE, at(3), False)
            await two.link.call("commit", "DEL", lane_name(LANE))
            await two.commit(LANE, at(1), False, (Spoke("new"),))
            await one.commit(LANE, at(3), False, (Spoke("next"),))
            assert await words(two, at(5)) == ("new", "next")

    asyncio.run(race())


def test_many_writers_of_one_lane_all_get_through(redis_url: str):
    async def crowd() -> None:
        async with replicas(redis_url, 4) as stores:
            commits = [
                store.commit(LANE, at(1, f"{index} "), False, (Spoke(str(index)),))
                for index, store in enumerate(itertools.islice(itertools.cycle(stores), 12))
            ]
            await asyncio.gather(*commits)
            for index in range(12):
                assert await words(stores[0], spoken(f"{index} 0", "x", "y")) == (str(index),)
            counted = [kind for store in stores for _, kind in store.trouble]
            assert set(counted) == {"conflict"}

    asyncio.run(crowd())


COMMITS = st.lists(
    st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(1, 5)), min_size=1, max_size=3), min_size=1, max_size=5
)


@given(rounds=COMMITS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])  # a lane for every example
def test_commits_of_two_replicas_at_once_come_out_as_in_some_order(redis_url: str, rounds: list[list[tuple[int, int]]]):
    """In every round several turns load, and then commit at the same time, each with an event of its own. Afterwards the lane
    is as if one store had taken the commits of the round one after another, in some order."""
    lane = Lane("", uuid.uuid4().hex, "", "header")
    number = itertools.count()

    async def states(store: SessionStore) -> list[tuple[str, ...]]:
        return [await words(store, at(position), lane) for position in range(1, 8)]

    async def serial(commits: list[tuple[int, str]]) -> list[tuple[str, ...]]:
        memory = MemoryStore()
        for position, word in commits:
            await memory.commit(lane, at(position), False, (Spoke(word),))
        return await states(memory)

    async def play() -> None:
        async with replicas(redis_url) as stores:
            settled: list[list[tuple[int, str]]] = [[]]  # the serial orders that explain the lane so far
            for commits in rounds:
                turns = [(which, position, str(next(number))) for which, position in commits]
                await asyncio.gather(*(stores[which].load(lane, at(position), False) for which, position, _ in turns))
                await asyncio.gather(
                    *(stores[w].commit(lane, at(position), False, (Spoke(word),)) for w, position, word in turns)
                )
                seen = await states(stores[0])
                assert seen == await states(stores[1])
                orders = [
                    [*before, *((position, word) for _, position, word in order)]
                    for before in settled
                    for order in itertools.permutations(turns)
                ]
                settled = [order for order in orders if await serial(order) == seen][:4]
                assert settled, (seen, orders)

    asyncio.run(play())


def test_the_snapshots_of_a_lane_are_bounded(redis_url: str):
    async def fill() -> None:
        async with replicas(redis_url) as (store, _):
            for turn in range(SNAPSHOTS_PER_LANE + 20):
                await store.commit(LANE, at(1, f"{turn} "), False, (Spoke("x"),))
            value = await store.link.call("load", "GET", lane_name(LANE))
            assert len(msgspec.json.decode(value.partition(b"\n")[2])) == SNAPSHOTS_PER_LANE

    asyncio.run(fill())


def test_a_lane_expires_and_is_kept_by_use(redis_url: str):
    async def wait() -> None:
        async with replicas(redis_url, ttl_s=300) as (store, other):
            await store.commit(LANE, at(1), False, (Spoke("x"),))
            for use in (store.load(LANE, at(3), False), other.commit(LANE, at(3), False, (Spoke("y"),))):
                await store.link.call("load", "EXPIRE", lane_name(LANE), 5)
                await use
                assert 100 < await store.link.call("load", "TTL", lane_name(LANE)) <= 300
            await store.link.call("load", "PEXPIRE", lane_name(LANE), 1)
            await asyncio.sleep(0.02)
            assert await words(store, at(5)) == ()

    asyncio.run(wait())


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"junk",
        b"\n[]",
        b"007\n[]",
        b"0\n[]",
        b"12345678901234567890\n[]",
        b"-1\n[]",
        b"7\n",
        b"7\n{}",
        b"7\n[1]",
        b'7\n[[1,"????",{}]]',
        b"7\n\xff\xfe",
        b'7\n[[0,"",{"/Log":{"words":1}}]]',
    ],
)
def test_what_cannot_be_read_is_forgotten_and_written_over(junk: bytes, redis_url: str):
    async def read() -> None:
        async with replicas(redis_url) as (store, other):
            await store.link.call("load", "SET", lane_name(LANE), junk)
            assert await words(store, at(3)) == ()
            await store.commit(LANE, at(3), False, (Spoke("a"),))
            assert await words(other, at(5)) == ("a",)
            assert ("commit", "contended") not in store.trouble

    asyncio.run(read())


def test_states_this_process_does_not_know_are_forgotten_and_the_others_kept(redis_url: str):
    async def read() -> None:
        async with replicas(redis_url) as (store, _):
            await store.commit(LANE, at(1), False, (Spoke("a"), Met(7)))
            value: bytes = await store.link.call("load", "GET", lane_name(LANE))
            unknown = b'"/Removed":{"x":1},"in/ner/Log":{"words":["deep"]},"/Log":'
            await store.link.call("load", "SET", lane_name(LANE), value.replace(b'"/Log":', unknown))
            loaded = await store.load(LANE, at(3), False)
            assert loaded.states == {"/Odd": Odd(7), "/Log": Log(("a",)), "in/ner/Log": Log(("deep",))}
            assert store.trouble == {("load", "undecodable"): 1}
            await store.commit(LANE, at(3), False, (Spoke("b"),))
            assert await words(store, at(5)) == ("a", "b")

    asyncio.run(read())


@pytest.mark.parametrize("value", [object(), {object(): 1}, "\ud800"])
def test_a_state_that_json_cannot_hold_is_forgotten_and_the_others_kept(value: Any, redis_url: str):
    async def read() -> None:
        async with replicas(redis_url) as (store, _):
            states = await store.commit(LANE, at(1), False, (Spoke("a"), Met(value)))
            assert set(states) == {"/Log", "/Odd"}
            loaded = await store.load(LANE, at(3), False)
            assert loaded.states == {"/Log": Log(("a",))}
            assert store.trouble == {("commit", "undecodable"): 1}

    asyncio.run(read())


def test_a_key_of_another_kind_costs_the_memory_only(redis_url: str):
    async def read() -> None:
        async with replicas(redis_url) as (store, _):
            await store.link.call("load", "LPUSH", lane_name(LANE), "x")
            assert await words(store, at(3)) == ()
            await store.commit(LANE, at(3), False, (Spoke("a"),))
            assert store.trouble[("commit", "given_up")] == 1
            # A refusal is an answer: the server is not taken for away.
            await store.commit(Lane("", "other", "", "header"), at(3), False, (Spoke("a"),))
            assert ("commit", "skipped") not in store.trouble

    asyncio.run(read())


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await what():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.05)


def test_a_server_that_dies_costs_no_turn_and_no_memory_of_the_lanes_served_meanwhile(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
):
    async def live() -> None:
        async with replicas(own_redis.url) as (store, other):
            await store.commit(LANE, at(1), False, (Spoke("0"),))
            assert await words(other, at(2)) == ("0",)
            own_redis.kill()
            said: tuple[str, ...] = ("0",)
            with caplog.at_level(logging.INFO, "turnout"):
                for turn in range(2, 40):
                    assert await words(store, at(turn)) == said
                    said = (*said, str(turn))
                    assert await store.commit(LANE, at(turn), False, (Spoke(str(turn)),)) == {"/Log": Log(said)}
                assert not store.reachable
                assert len(caplog.records) == 1
                assert store.trouble[("commit", "given_up")] == 38
                own_redis.start()
                await until(store.look)
                assert len(caplog.records) == 2
            assert "reachable again" in caplog.text
            # The server has come back empty. What this gateway knows, the lane's next turn hands in.
            assert await words(store, at(40)) == said
            await store.commit(LANE, at(40), False, (Spoke("40"),))
            await until(other.look)
            assert await words(other, at(41)) == (*said, "40")

    asyncio.run(live())


def test_what_another_gateway_wrote_meanwhile_counts_before_what_this_one_knows(own_redis: RedisServer):
    """One gateway alone is cut off: it serves a turn, and the other serves that turn again and goes on from there."""

    async def live() -> None:
        async with replicas(own_redis.url) as (cut, other):
            for store in (cut, other):
                assert await words(store, at(1)) == ()
            await cut.commit(LANE, at(1), False, (Spoke("a"),))
            cut.link._failed("load", TimeoutError())
            await cut.commit(LANE, at(2), False, (Spoke("lost"),))
            await cut.commit(LANE, at(3), False, (Spoke("owed"),))
            await other.commit(LANE, at(2), False, (Spoke("b"),))
            await until(cut.look)
            assert await words(cut, at(3)) == ("a", "b")
            assert await words(cut, at(4)) == ("a", "lost", "owed")
            await cut.commit(LANE, at(4), False, (Spoke("c"),))
            assert await words(other, at(5)) == ("a", "lost", "owed", "c")

    asyncio.run(live())


def test_a_lane_that_expired_is_not_brought_back_without_an_outage(redis_url: str):
    async def live() -> None:
        async with replicas(redis_url) as (store, _):
            await store.commit(LANE, at(1), False, (Spoke("a"),))
            await store.link.call("load", "DEL", lane_name(LANE))
            assert await words(store, at(2)) == ()
            assert len(store._known) == 0

    asyncio.run(live())


def test_a_commit_outlasts_a_short_outage(own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(linking, "PATIENCE_S", 60.0)

    async def live() -> None:
        async with replicas(own_redis.url) as (store, other):
            await store.commit(LANE, at(1), False, (Spoke("a"),))
            own_redis.freeze()
            committing = asyncio.ensure_future(store.commit(LANE, at(3), False, (Spoke("b"),)))
            while not store.trouble:  # noqa: ASYNC110 - the first attempt has run out of time
                await asyncio.sleep(0.01)
            own_redis.thaw()
            await committing
            assert await words(other, at(5)) == ("a", "b")
            assert ("commit", "given_up") not in store.trouble

    asyncio.run(live())


def test_a_server_that_hangs_holds_up_few_turns_and_those_briefly(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(linking, "COOLING_S", 60.0)

    async def live() -> None:
        async with replicas(own_redis.url) as (store, _):
            await store.commit(LANE, at(1), False, (Spoke("a"),))
            own_redis.freeze()
            try:
                assert await words(store, at(3)) == ("a",)
                for turn in range(100):
                    await words(store, at(turn))
                    await store.commit(LANE, at(turn), False, (Spoke("b"),))
            finally:
                own_redis.thaw()
            # Only the first waited; the others did not even ask.
            assert store.trouble == {
                ("load", "timeout"): 1,
                ("load", "skipped"): 100,
                ("commit", "skipped"): 100,
                ("commit", "given_up"): 100,
            }

    asyncio.run(live())


def test_one_turn_finds_out_whether_a_server_is_back(own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(linking, "COOLING_S", 0.0)

    async def live() -> None:
        async with replicas(own_redis.url) as (store, _):
            own_redis.freeze()
            try:
                await words(store, at(3))
                await asyncio.gather(*(words(store, at(3)) for _ in range(20)))
            finally:
                own_redis.thaw()
            assert store.trouble == {("load", "timeout"): 2, ("load", "skipped"): 19}

    asyncio.run(live())


def test_a_cancelled_turn_leaves_the_connection_usable(own_redis: RedisServer):
    """A reply that comes for a command nobody waits for any more must not be taken for the next one's."""

    async def live() -> None:
        async with replicas(own_redis.url) as (store, _):
            lanes = [Lane("", str(i), "", "header") for i in range(20)]
            for lane in lanes:
                await store.commit(lane, at(1), False, (Spoke(lane.session),))
            own_redis.freeze()
            loads = [asyncio.ensure_future(store.load(lane, at(3), False)) for lane in lanes]
            await asyncio.sleep(0.05)
            for load in loads:
                load.cancel()
            await asyncio.gather(*loads, return_exceptions=True)
            own_redis.thaw()
            for lane in reversed(lanes):
                assert await words(store, at(3), lane) == (lane.session,)

    asyncio.run(live())


def test_a_password_is_asked_for_and_never_shown(own_redis: RedisServer, caplog: pytest.LogCaptureFixture):
    async def live() -> None:
        async with replicas(own_redis.url) as (admin, _):
            await admin.link.call("load", "CONFIG", "SET", "requirepass", "open sesame")
        with_password = own_redis.url.replace("//", "//:open%20sesame@")
        async with replicas(with_password) as (store, other):
            await store.commit(LANE, at(1), False, (Spoke("a"),))
            assert await words(other, at(3)) == ("a",)
        for wrong in (own_redis.url, own_redis.url.replace("//", "//:hush-hush@")):
            async with replicas(wrong) as (store, _):
                assert await words(store, at(3)) == ()
                await store.commit(LANE, at(3), False, (Spoke("a"),))
                assert store.trouble[("commit", "given_up")] == 1

    with caplog.at_level(logging.DEBUG):
        asyncio.run(live())
    assert str(own_redis.port) in caplog.text
    assert "hush" not in caplog.text
    assert "sesame" not in caplog.text


def test_tls_is_spoken_and_checked(tmp_path_factory: pytest.TempPathFactory):
    authority = trustme.CA()
    folder = tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    files = (
        "--tls-cert-file",
        folder / "cert.pem",
        "--tls-key-file",
        folder / "key.pem",
        "--tls-ca-cert-file",
        folder / "ca.pem",
    )
    port = free_port()
    server = RedisServer(program(), folder, "--tls-port", str(port), "--tls-auth-clients", "no", *map(str, files))
    url = f"rediss://127.0.0.1:{port}"

    async def talk() -> None:
        async with replicas(f"{url}?ssl_ca_certs={folder / 'ca.pem'}") as (store, other):
            await store.commit(LANE, at(1), False, (Spoke("a"),))
            assert await words(other, at(3)) == ("a",)
        async with replicas(url) as (stranger, _):
            assert await words(stranger, at(3)) == ()
            assert stranger.trouble == {("load", "unavailable"): 1}

    try:
        asyncio.run(talk())
    finally:
        server.kill()
