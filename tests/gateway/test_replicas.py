"""Two gateways on one Redis server serve the turns of a session, and its responses, as one; without it they go on serving."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.redis_server import RedisServer
from tests.running import Running, running, script

from turnout.errors import ConfigError
from turnout.gateway.config import Config, SessionsConfig
from turnout.gateway.opened import sessions

CONFIG = """
[upstreams.played]
format = "openai_chat"
script = "replies.jsonl"
[targets.small]
upstream = "played"
model = "s"
[targets.large]
upstream = "played"
model = "l"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
hold = 2
[sessions]
url_env = "SESSIONS_URL"
within_s = 20
"""
TENANTS = """
[server.tenants.one]
key_env = "ONE_KEY"
[server.tenants.two]
key_env = "TWO_KEY"
"""
REPLIES = ({"turn": 0, "text": "first"}, {"turn": 1, "text": "second"}, {"text": "further"})
KEYS = {"ONE_KEY": "key-of-one", "TWO_KEY": "key-of-two"}


@contextmanager
def replicas(url: str, folder: Path, toml: str = CONFIG) -> Iterator[list[Running]]:
    """Two gateways with ledgers of their own and one session store."""
    with ExitStack() as stack:
        gateways = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            script(folder / name, "replies.jsonl", *REPLIES)
            gateways.append(stack.enter_context(running(toml, folder / name, env={"SESSIONS_URL": url, **KEYS})))
        yield gateways


FAILED = "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2\n========= 1 failed, 2 passed in 0.12s ========="


def call(number: int, command: str, output: str) -> list[dict[str, Any]]:
    function = {"name": "Bash", "arguments": json.dumps({"command": command})}
    return [
        {"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


def ask(gateway: Running, messages: list[dict[str, Any]]) -> tuple[str, str]:
    """Target and source of a turn."""
    body = json.dumps({"model": "coder", "messages": messages}).encode()
    headers = {"content-type": "application/json", "x-turnout-session": "s"}
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.headers["x-turnout-target"], response.headers["x-turnout-source"]


def metrics(gateway: Running) -> str:
    with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=20) as response:
        return str(response.read().decode())


def opening() -> list[dict[str, Any]]:
    failures = [part for number in range(3) for part in call(number, "pytest tests/test_a.py", FAILED)]
    return [{"role": "user", "content": "make the tests pass"}, *failures]


def test_a_hold_that_one_gateway_began_the_other_keeps(redis_url: str, tmp_path: Path):
    with replicas(redis_url, tmp_path) as (one, two):
        messages = opening()
        assert ask(one, messages) == ("large", "override")
        sources = []
        for number, gateway in ((7, two), (8, one), (9, two)):
            messages += call(number, f"ls src/{number}", "a.py  b.py")
            sources.append(ask(gateway, messages))
        assert sources[0] == ("large", "hold")
        assert sources[-1][0] == "small"
        assert "turnout_sessions_trouble_total{" not in metrics(one) + metrics(two)


def test_turns_are_served_while_the_store_is_away(own_redis: RedisServer, tmp_path: Path):
    with replicas(own_redis.url, tmp_path) as (one, _):
        messages = opening()
        assert ask(one, messages) == ("large", "override")
        own_redis.kill()
        for number in range(3, 8):
            messages += call(number, f"ls src/{number}", "a.py  b.py")
            assert ask(one, messages)[1] != "fault"
        assert all(turn.ended == "ok" for turn in one.settled())
        counted = metrics(one)
        assert 'turnout_sessions_trouble_total{kind="given_up",operation="commit"}' in counted
        assert "turnout_internal_errors_total{" not in counted
        assert own_redis.url.encode() not in counted.encode()


def test_a_response_of_one_gateway_is_continued_by_the_other(redis_url: str, tmp_path: Path):
    with replicas(redis_url, tmp_path, CONFIG) as gateways:
        one, two = (openai.OpenAI(base_url=f"{g.url}/v1", api_key="unused", max_retries=0) for g in gateways)
        with one, two:
            first = one.responses.create(model="coder", input="hi")
            second = two.responses.create(model="coder", input="and?", previous_response_id=first.id)
            assert (first.output_text, second.output_text) == ("first", "second")
            with pytest.raises(openai.BadRequestError, match="not known here"):
                one.responses.create(model="coder", input="and?", previous_response_id="resp_never")


def test_a_response_is_no_other_tenants(redis_url: str, tmp_path: Path):
    with replicas(redis_url, tmp_path, CONFIG + TENANTS) as gateways:
        one, two = (
            openai.OpenAI(base_url=f"{g.url}/v1", api_key=key, max_retries=0)
            for g, key in zip(gateways, KEYS.values(), strict=True)
        )
        with one, two:
            first = one.responses.create(model="coder", input="hi")
            with pytest.raises(openai.BadRequestError, match="not known here"):
                two.responses.create(model="coder", input="and?", previous_response_id=first.id)


def test_a_response_that_cannot_be_looked_up_may_be_tried_again(own_redis: RedisServer, tmp_path: Path):
    with replicas(own_redis.url, tmp_path) as (gateway, _):
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0)
        with client:
            first = client.responses.create(model="coder", input="hi")
            own_redis.kill()
            with pytest.raises(openai.InternalServerError, match="cannot be reached") as raised:
                client.responses.create(model="coder", input="and?", previous_response_id=first.id)
            assert raised.value.status_code == 503
            assert raised.value.response.headers["retry-after"] == "1"
            assert client.responses.create(model="coder", input="hi").output_text == "first"


def configured(url: str) -> Config:
    return Config(upstreams={}, targets={}, routes={}, sessions=SessionsConfig(url=url), file="turnout.toml")


@pytest.mark.parametrize("url", ["redis://:hush@cache:port", "redis://:hush@cache/x", "mongodb://:hush@cache"])
def test_a_wrong_store_is_a_mistake_in_the_file_told_without_the_password(url: str):
    with pytest.raises(ConfigError, match=r"turnout\.toml: sessions\.url:") as raised:
        sessions(configured(url))
    assert "hush" not in str(raised.value)


def test_a_missing_client_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in ("turnout.sessions.redis", "turnout.sessions.redis_responses", "turnout.sessions.link"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r"pip install 'turnout\[redis\]'") as raised:
        sessions(configured("redis://:hush@cache"))
    assert "\n" not in str(raised.value)
    assert "hush" not in str(raised.value)
