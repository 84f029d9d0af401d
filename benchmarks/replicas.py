"""Two gateways on one Redis server: do turns shuffled over both leave every lane as one process would, and at what cost?

    python benchmarks/replicas.py [--lanes 2000] [--turns 10] [--at-once 32] [--kill] [--seed 1]

Needs redis-server and what the tests need. Two `turnout serve` processes share one server of its own; the turns of an escalation
route's lanes go to either at random, lanes interleaved, one in twenty to both at once, of which the slower comes late. What the
judge says is a pure function of lane and turn number, so a plain model knows every answer and every lane's end. `--kill`: one
process is killed with SIGKILL after a third of the turns; turns that it was serving are sent again to the other. Fails (exit 1)
when anything differs from the model.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.redis_server import RedisServer, program  # noqa: E402
from tests.served import Served, served  # noqa: E402
from tests.shuffled import TOML, Course, Shuffled, expectations, unlike, write_scripts  # noqa: E402

from turnout.sessions.address import parse  # noqa: E402
from turnout.sessions.redis import RedisStore  # noqa: E402


def cpu_s(gateway: Served) -> float:
    """CPU seconds the process has used; 0 when it is no more."""
    try:
        fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def shuffled(sending: Shuffled, at_once: int, victim: Served | None) -> None:
    """Send the turns; a victim is killed on the way."""
    total = sum(len(course.verdicts) for course in sending.waiting)
    run = asyncio.create_task(sending.run(at_once))
    while victim is not None and sending.answered < total // 3 and not run.done():  # noqa: ASYNC110 - clients only count
        await asyncio.sleep(0.005)
    if victim is not None:
        victim.process.kill()
        sending.gone(victim.port)
    await run


def trouble(gateway: Served) -> list[str]:
    """What the gateway counted of trouble with the session store; nothing when it is no more."""
    if gateway.process.poll() is not None:
        return []
    connection = gateway.connect()
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    return [line for line in lines if line.startswith("turnout_sessions_trouble_total{")]


async def held(url: str, courses: list[Course]) -> list[str]:
    """Lanes that the server holds otherwise than the model says."""
    store = RedisStore(parse(url), within_s=20)
    try:
        return await unlike(courses, store)
    finally:
        await store.close()


def compare(lanes: int, turns: int, at_once: int, seed: int, kill: bool, folder: Path) -> dict[str, Any]:
    """Run it; the report."""
    redis = RedisServer(program(), folder)
    try:
        with ExitStack() as stack:
            gateways = []
            for name, judge_s in (("one", 0.03), ("two", 0.0)):
                (folder / name).mkdir()
                write_scripts(folder / name, judge_s)
                env = {"SESSIONS_URL": redis.url}
                gateways.append(stack.enter_context(served(TOML, folder / name, env=env)))
            courses = [Course(number, turns, seed) for number in range(lanes)]
            sending = Shuffled(courses, [gateway.port for gateway in gateways], seed, twice=0.05)
            before = [cpu_s(gateway) for gateway in gateways]
            began = time.monotonic()
            asyncio.run(shuffled(sending, at_once, gateways[0] if kill else None))
            took = time.monotonic() - began
            spent = sum(cpu_s(gateway) - was for gateway, was in zip(gateways, before, strict=True))
            unlike_model = asyncio.run(held(redis.url, courses))
            troubles = [line for gateway in gateways for line in trouble(gateway)]
            for gateway in gateways:
                if gateway.process.poll() is None:
                    gateway.stop()
            recorded = {name for gateway in gateways for name in gateway.turns()}
    finally:
        redis.kill()
    return {
        **expectations(courses),
        "sent": dict(sending.sent),
        "seconds": round(took, 1),
        "turns_per_cpu_s": None if kill else round(sending.answered / spent),
        "answers_unlike_the_model": len(sending.wrong),
        "lanes_unlike_the_model": len(unlike_model),
        "answers_not_in_a_ledger": 0 if kill else len(set(sending.ids) - recorded),
        "trouble": troubles,
        "examples": (sending.wrong + unlike_model)[:5],
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--lanes", type=int, default=2000)
    arguments.add_argument("--turns", type=int, default=10)
    arguments.add_argument("--at-once", type=int, default=32)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--kill", action="store_true", help="kill one of the two on the way")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = compare(given.lanes, given.turns, given.at_once, given.seed, given.kill, Path(folder))
    print(json.dumps(report, indent=1))
    wrong = ("answers_unlike_the_model", "lanes_unlike_the_model", "answers_not_in_a_ledger")
    return 1 if any(report[name] for name in wrong) or not report["latched"] else 0


if __name__ == "__main__":
    sys.exit(main())
