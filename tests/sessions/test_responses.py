"""Responses continued by id, in every store: found while young, whole; in memory bounded, never refused."""

import asyncio
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from tests.strategies import conversations, reply_parts

from turnout.conversation import Conversation, Message, Part, Text
from turnout.routing.core import Lane, TargetName
from turnout.sessions.address import parse
from turnout.sessions.link import Link
from turnout.sessions.redis_responses import RedisResponses, response_name
from turnout.sessions.responses import MemoryResponses, ResponseStore, StoredResponse


def response(i: int, size: int = 0) -> StoredResponse:
    return StoredResponse(f"r{i}", Lane(), TargetName("t"), (), (Text("x" * size),), True)


class Opened:
    """A store and the event loop it lives in."""

    def __init__(self, store: ResponseStore, link: Link | None, runner: asyncio.Runner) -> None:
        self.store = store
        self.link = link
        self.runner = runner

    def keep(self, response: StoredResponse) -> None:
        self.runner.run(self.store.keep(response))

    def find(self, response_id: str) -> StoredResponse | None:
        return self.runner.run(self.store.find(response_id))


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with asyncio.Runner() as runner:
        if request.param == "memory":
            yield Opened(MemoryResponses(), None, runner)
            return
        link = Link(parse(request.getfixturevalue("redis_url")))
        yield Opened(RedisResponses(link), link, runner)
        runner.run(link.close())


def test_a_response_is_found_by_its_id(store: Opened):
    store.keep(response(1))
    assert store.find("r1") == response(1)
    assert store.find("other") is None


def test_keeping_an_id_again_replaces_it(store: Opened):
    store.keep(response(1))
    store.keep(response(1, size=99))
    assert store.find("r1") == response(1, size=99)


@given(conversation=conversations(media=True), said=reply_parts(rich=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # each example replaces the one entry
def test_a_response_is_found_as_it_was_kept(store: Opened, conversation: Conversation, said: tuple[Part, ...]):
    lane = Lane("tenant", "session \x1f é", "agent", "codex")
    messages = (*conversation.messages, Message("assistant", said))
    whole = StoredResponse("r", lane, TargetName("t"), messages, tuple(conversation.system), False)
    store.keep(whole)
    assert store.find("r") == whole


@pytest.mark.parametrize("kilobytes", [1, 500])
def test_transcripts_are_compressed(kilobytes: int, redis_url: str):
    async def kept() -> int:
        link = Link(parse(redis_url))
        try:
            store = RedisResponses(link)
            said = (Message("user", (Text("the same words again and again, " * (32 * kilobytes)),)),)
            whole = StoredResponse("r", Lane(), TargetName("t"), said, (), True)
            await store.keep(whole)
            assert await store.find("r") == whole
            return len(await link.call("find", "GET", response_name("r")))
        finally:
            await link.close()

    assert asyncio.run(kept()) < 300 + 10 * kilobytes


def test_a_response_too_large_is_not_kept(redis_url: str):
    async def kept() -> None:
        link = Link(parse(redis_url))
        try:
            store = RedisResponses(link, max_entry_bytes=50)
            await store.keep(response(1))
            assert await store.find("r1") is None
            assert link.trouble == {("keep", "too_large"): 1}
        finally:
            await link.close()

    asyncio.run(kept())


@pytest.mark.parametrize("junk", [b"", b"junk", zlib.compress(b"{}"), zlib.compress(b"\xff{"), zlib.compress(b"[1]")])
def test_what_cannot_be_read_is_an_unknown_response(junk: bytes, redis_url: str):
    async def found() -> None:
        link = Link(parse(redis_url))
        try:
            await link.call("keep", "SET", response_name("r1"), junk)
            assert await RedisResponses(link).find("r1") is None
            assert link.trouble == {("find", "undecodable"): 1}
        finally:
            await link.close()

    asyncio.run(found())


def test_responses_in_redis_expire_and_are_kept_by_use(redis_url: str):
    async def left() -> tuple[int, int]:
        link = Link(parse(redis_url))
        try:
            store = RedisResponses(link, ttl_s=500)
            await store.keep(response(1))
            await link.call("find", "EXPIRE", response_name("r1"), 5)
            before = await link.call("find", "TTL", response_name("r1"))
            await store.find("r1")
            return before, await link.call("find", "TTL", response_name("r1"))
        finally:
            await link.close()

    before, after = asyncio.run(left())
    assert before <= 5
    assert 400 < after <= 500


class InMemory:
    """A store in memory, without an event loop to speak of."""

    def __init__(self, store: MemoryResponses) -> None:
        self.store = store

    def keep(self, response: StoredResponse) -> None:
        asyncio.run(self.store.keep(response))

    def find(self, response_id: str) -> StoredResponse | None:
        return asyncio.run(self.store.find(response_id))


def test_an_id_in_memory_is_found_until_it_expires():
    now = [0.0]
    memory = MemoryResponses(ttl_s=5, clock=lambda: now[0])
    store = InMemory(memory)
    store.keep(response(1))
    assert store.find("r1") == response(1)
    now[0] = 6
    assert store.find("r1") is None
    assert len(memory) == 0


def test_the_least_recently_used_in_memory_go_first():
    store = InMemory(MemoryResponses(max_count=2))
    store.keep(response(1))
    store.keep(response(2))
    store.find("r1")
    store.keep(response(3))
    assert store.find("r2") is None
    assert store.find("r1") is not None


def test_bytes_in_memory_are_bounded_but_the_newest_always_stays():
    memory = MemoryResponses(max_bytes=1000)
    store = InMemory(memory)
    for i in range(4):
        store.keep(response(i, size=300))
    assert len(memory) == 2
    store.keep(response(9, size=5000))
    assert store.find("r9") is not None
    assert len(memory) == 1


def test_keeping_an_id_in_memory_again_counts_it_once():
    memory = MemoryResponses()
    for _ in range(5):
        asyncio.run(memory.keep(response(1)))
    assert len(memory) == 1
    assert 0 < memory._bytes < 500
