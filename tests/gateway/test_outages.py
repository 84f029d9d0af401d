"""While the Redis server is away each gateway goes on with what it knows; latches, pins and cache accounts come through."""

import json
import logging
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.redis_server import RedisServer
from tests.replays import replayed
from tests.running import Running, running, script
from tests.shuffled import TOML, write_scripts

ROUTES = """
[routes.sorted]
type = "classifier"
judge = "sorter"
trigger = "new_session"
schema = '{"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}'
choice = "/kind"
default = "weak"
[routes.sorted.targets]
hard = "strong"
easy = "weak"
[routes.sorted.judging]
prompt = "Is it hard?"
output = "json_object"
[routes.pinned]
type = "affinity"
[routes.pinned.router]
type = "classifier"
judge = "sorter"
trigger = "every_request"
schema = '{"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}'
choice = "/kind"
default = "weak"
[routes.pinned.router.targets]
hard = "strong"
easy = "weak"
[routes.pinned.router.judging]
prompt = "Is it hard?"
output = "json_object"
[upstreams.sorter]
format = "openai_chat"
script = "sorter.jsonl"
[targets.sorter]
upstream = "sorter"
model = "sorter"
"""
LONG = "A rule of the house. " * 2000


@contextmanager
def two(url: str, folder: Path) -> Iterator[list[Running]]:
    """Two gateways on one session store. They learn that it is away at once: nothing listens on its port then."""
    with ExitStack() as stack:
        gateways = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            write_scripts(folder / name)
            easy = {"contains": "verdict", "text": '{"kind": "easy"}'}
            script(folder / name, "sorter.jsonl", {"contains": "hard", "text": '{"kind": "hard"}'}, easy)
            toml = TOML.replace("[sessions]", f"{ROUTES}[sessions]")
            gateways.append(
                stack.enter_context(running(toml, folder / name, env={"SESSIONS_URL": url}, capture="full"))
            )
        yield gateways
        for gateway in gateways:
            replayed(gateway)


class Client:
    """An agent's session on one route."""

    def __init__(self, route: str, session: str) -> None:
        self.route = route
        self.session = session
        self.messages: list[dict[str, str]] = [{"role": "system", "content": LONG}]

    def says(self, gateway: Running, text: str) -> tuple[str, str]:
        """The next turn's target and source."""
        self.messages.append({"role": "user", "content": text})
        body = json.dumps({"model": self.route, "messages": self.messages}).encode()
        headers = {"content-type": "application/json", "x-turnout-session": self.session}
        request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            self.messages.append({"role": "assistant", "content": f"Step {len(self.messages)} is done."})
            return response.headers["x-turnout-target"], response.headers["x-turnout-source"]


def page(gateway: Running, path: str) -> str:
    with urllib.request.urlopen(f"{gateway.url}{path}", timeout=20) as response:
        return str(response.read().decode())


def reachable(gateway: Running) -> tuple[bool, bool, str]:
    """Ready, store reachable by /ready, and by /metrics."""
    state: dict[str, Any] = json.loads(page(gateway, "/ready"))
    lines = page(gateway, "/metrics").splitlines()
    gauge = next(line for line in lines if line.startswith("turnout_sessions_reachable "))
    return state["ready"], state["sessions"]["reachable"], gauge.split()[1]


def until_back(gateway: Running) -> None:
    until = time.monotonic() + 20
    while not reachable(gateway)[1]:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_latches_and_pins_hold_through_an_outage_and_are_handed_in_after_it(
    own_redis: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO, "turnout"), two(own_redis.url, tmp_path) as (one, two_):
        latched, streak = Client("coder", "latched"), Client("coder", "streak")
        pinned, kept = Client("sorted", "sorted"), Client("pinned", "pinned")
        assert [latched.says(one, "verdict yes") for _ in range(2)] == [("weak", "judge"), ("strong", "judge")]
        assert pinned.says(one, "something hard") == ("strong", "classifier")
        assert kept.says(one, "something hard") == ("strong", "classifier")
        assert streak.says(one, "verdict yes") == ("weak", "judge")
        assert reachable(one) == (True, True, "1.0")
        own_redis.kill()
        # What this gateway knows holds, and goes on: the streak that began before is completed.
        assert latched.says(one, "verdict no") == ("strong", "latch")
        assert pinned.says(one, "verdict no") == ("strong", "pin")
        assert kept.says(one, "verdict no") == ("strong", "pin")
        assert streak.says(one, "verdict yes") == ("strong", "judge")
        # The other gateway never served these lanes: to it they are new.
        assert Client("coder", "latched").says(two_, "verdict no") == ("weak", "judge")
        for gateway in (one, two_):
            assert reachable(gateway) == (True, False, "0.0")
        assert sum("failed" in record.message for record in caplog.records) == 2, "a line for each gateway"
        own_redis.start()
        for gateway in (one, two_):
            until_back(gateway)
            assert reachable(gateway) == (True, True, "1.0")
        # The server has come back empty, and gets from each gateway what it knows as the lanes' turns come.
        for client, source in ((latched, "latch"), (pinned, "pin"), (kept, "pin"), (streak, "latch")):
            assert client.says(one, "verdict no") == ("strong", source)
        for client in (latched, streak):
            assert client.says(two_, "verdict no") == ("strong", "latch")
        assert sum("reachable again" in record.message for record in caplog.records) == 2
        assert all(turn.ended == "ok" for gateway in (one, two_) for turn in gateway.settled())


def test_the_account_of_a_prompt_cache_comes_through_an_outage(own_redis: RedisServer, tmp_path: Path):
    with two(own_redis.url, tmp_path) as (one, _):
        client = Client("sorted", "cached")
        client.says(one, "something hard")
        own_redis.kill()
        for _ in range(2):
            client.says(one, "verdict no")
        newest, *_ = one.settled()
        assert newest.cache is not None
        assert newest.cache.predicted_read > 5_000
        assert newest.cache.reported_read is not None
        assert abs(newest.cache.reported_read - newest.cache.predicted_read) < 128
        assert newest.cache.cause == ""
