"""Two gateway processes on one Redis server: turns shuffled over both leave every lane as one process would, even when one is
killed in the middle of turns."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.redis_server import RedisServer
from tests.served import Served, served
from tests.shuffled import TOML, Course, Shuffled, expectations, unlike, write_scripts

from turnout.sessions.address import parse
from turnout.sessions.redis import RedisStore

LANES, TURNS = 150, 10
SEED = 1
CALLS = {
    "declined": ["draft", "judge"],
    "voted": ["draft", "judge"],
    "latched": ["draft", "judge", "answer"],
    "weak_failed": ["draft", "answer"],
    "latch": ["answer"],
}
"""The calls of a turn by the rule, or where there is none the source, of its decision."""


@contextmanager
def two(url: str, folder: Path) -> Iterator[list[Served]]:
    """Two gateways' processes; the judge of the first thinks for so long that what a turn leaves there comes late, where the
    client did not wait for it."""
    with ExitStack() as stack:
        gateways = []
        for name, judge_s in (("one", 0.03), ("two", 0.0)):
            (folder / name).mkdir()
            write_scripts(folder / name, judge_s)
            gateways.append(stack.enter_context(served(TOML, folder / name, env={"SESSIONS_URL": url})))
        yield gateways


async def held_otherwise(url: str, courses: list[Course]) -> list[str]:
    """The lanes that the server does not hold as the plain model says."""
    store = RedisStore(parse(url), within_s=20)
    try:
        return await unlike(courses, store)
    finally:
        await store.close()


def test_shuffled_turns_leave_every_lane_as_one_process_would(
    shared_redis: RedisServer, redis_url: str, tmp_path: Path
):
    courses = [Course(number, TURNS, SEED) for number in range(LANES)]
    shows = expectations(courses)
    assert shows["latched"] > 20
    assert shows["streaks"] > 5
    with two(redis_url, tmp_path) as gateways:
        sending = Shuffled(courses, [gateway.port for gateway in gateways], SEED, twice=0.1)
        asyncio.run(sending.run(16))
        assert sending.wrong == []
        assert sending.sent["twice"] > 20
        assert asyncio.run(held_otherwise(redis_url, courses)) == []
        for gateway in gateways:
            gateway.stop()
        turns = [turn for gateway in gateways for turn in gateway.turns().values()]
    assert {turn.id: (turn.target, turn.why.source if turn.why else "") for turn in turns} == {
        name: (came.target, came.source) for name, came in sending.ids.items()
    }
    for turn in turns:
        assert turn.why is not None
        assert [call.purpose for call in turn.calls] == CALLS.get(turn.why.rule or turn.why.source), turn.why


def test_a_gateway_killed_in_the_middle_of_turns_loses_no_lane_and_latches_none_twice(
    shared_redis: RedisServer, redis_url: str, tmp_path: Path
):
    courses = [Course(number, TURNS, SEED + 1) for number in range(LANES)]
    with two(redis_url, tmp_path) as (victim, other):

        async def killed_on_the_way() -> None:
            run = asyncio.create_task(sending.run(16))
            while sending.answered < LANES * TURNS // 3:
                assert not run.done()
                await asyncio.sleep(0.005)
            victim.process.kill()
            sending.gone(victim.port)
            await run

        sending = Shuffled(courses, [victim.port, other.port], SEED, twice=0.1)
        asyncio.run(killed_on_the_way())
        assert sending.sent["again"] > 0, "no turn was in flight"
        assert sending.wrong == []
        assert asyncio.run(held_otherwise(redis_url, courses)) == []
        assert other.process.poll() is None
