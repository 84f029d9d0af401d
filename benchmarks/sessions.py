"""What remembering costs a turn: CPU and time of load and commit, in memory and in Redis.

    python benchmarks/sessions.py [--url redis://HOST:PORT/DB] [--turns 4000] [--at-once 16]

Without --url a redis-server of its own is started on a free port. Lanes are agents' sessions that grow by two messages a turn up
to 60 turns, with the stage router's memory; so a lane's value holds all the snapshots it can. CPU is that of this process,
without the server's. For responses it is a transcript of about 100 KB, kept and found again.
"""

import argparse
import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import median

from turnout.conversation import Conversation, Message, Text, ToolCall, ToolResult
from turnout.routing.core import Lane, TargetName
from turnout.routing.stage.router import StageServed
from turnout.sessions.address import parse
from turnout.sessions.redis import RedisStore, lane_name
from turnout.sessions.redis_responses import RedisResponses, response_name
from turnout.sessions.responses import MemoryResponses, ResponseStore, StoredResponse
from turnout.sessions.store import MemoryStore, SessionStore

TURNS_PER_LANE = 60
OUTPUT = "src/app.py:12: error: Argument 1 has an incompatible type; expected a number, got a string here\n" * 16


def conversation(turn: int) -> Conversation:
    """An agent's conversation after so many of its turns."""
    messages = [Message("user", (Text("make the tests pass"),))]
    for number in range(turn):
        messages.append(Message("assistant", (ToolCall(f"call_{number}", "Bash", '{"command": "pytest -q"}'),)))
        messages.append(Message("tool", (ToolResult(f"call_{number}", (Text(f"{number} {OUTPUT}"),)),)))
    return Conversation(tuple(messages))


CONVERSATIONS = [conversation(turn) for turn in range(TURNS_PER_LANE)]


async def lanes(store: SessionStore, turns: int, at_once: int) -> tuple[float, float]:
    """CPU and median time in µs of load and commit together."""
    taken: list[float] = []

    async def agent(number: int) -> None:
        for turn in range(turns // at_once):
            lane = Lane("", f"{number}-{turn // TURNS_PER_LANE}", "", "header")
            now = CONVERSATIONS[turn % TURNS_PER_LANE]
            began = time.perf_counter()
            await store.load(lane, now, False)
            await store.commit(lane, now, False, (StageServed("capable", held=True),))
            taken.append(time.perf_counter() - began)

    return await measured(agent, at_once, taken)


async def responses(store: ResponseStore, turns: int, at_once: int) -> tuple[float, float]:
    """CPU and median time in µs of keeping a response and finding it again."""
    taken: list[float] = []
    said = tuple(CONVERSATIONS[-1].messages)

    async def client(number: int) -> None:
        for turn in range(turns // at_once):
            kept = StoredResponse(f"resp_{number}_{turn}", Lane(), TargetName("t"), said, (), False)
            began = time.perf_counter()
            await store.keep(kept)
            await store.find(kept.id)
            taken.append(time.perf_counter() - began)

    return await measured(client, at_once, taken)


async def measured(one: Callable[[int], Awaitable[None]], at_once: int, taken: list[float]) -> tuple[float, float]:
    """CPU per and median of what `at_once` of `one` do and note in `taken`, in µs."""
    cpu = time.process_time()
    await asyncio.gather(*(one(number) for number in range(at_once)))
    return (time.process_time() - cpu) / len(taken) * 1e6, median(taken) * 1e6


@contextmanager
def server() -> Iterator[str]:
    """The address of a Redis server that lives as long as this runs."""
    program = shutil.which("redis-server")
    if program is None:
        sys.exit("redis-server is not installed; install it or name a server with --url")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()


async def compare(url: str, turns: int, at_once: int) -> None:
    """Measure both stores and print a table."""
    remote = RedisStore(parse(url))
    kept = RedisResponses(remote.link)
    stores: tuple[tuple[str, SessionStore, ResponseStore], ...] = (
        ("memory", MemoryStore(), MemoryResponses()),
        ("redis", remote, kept),
    )
    print(f"{turns} turns, {at_once} at once; us a turn\n{'store':8}{'what':24}{'CPU':>8}{'median':>10}")
    for name, store, answers in stores:
        await lanes(store, at_once * 20, at_once)  # connections, caches
        for what, (cpu, wall) in (
            ("load + commit", await lanes(store, turns, at_once)),
            ("keep + find a response", await responses(answers, max(at_once, turns // 20), at_once)),
        ):
            print(f"{name:8}{what:24}{cpu:8.0f}{wall:10.0f}")
    lane = await remote.link.call("load", "STRLEN", lane_name(Lane("", "0-0", "", "header")))
    response = await remote.link.call("find", "STRLEN", response_name("resp_0_0"))
    print(f"a lane takes {lane} bytes, a response {response}; trouble: {dict(remote.trouble) or 'none'}")
    await remote.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--url", default="", help="an existing server; its database is written to")
    arguments.add_argument("--turns", type=int, default=4000)
    arguments.add_argument("--at-once", type=int, default=16)
    given = arguments.parse_args()
    if given.url:
        asyncio.run(compare(given.url, given.turns, given.at_once))
        return
    with server() as url:
        asyncio.run(compare(url, given.turns, given.at_once))


if __name__ == "__main__":
    main()
