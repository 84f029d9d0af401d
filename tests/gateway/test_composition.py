"""Nested routers served: who decides what for which agent, and how its record tells."""

import concurrent.futures
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.replays import replayed
from tests.running import Running, running, script
from typer.testing import CliRunner

from turnout.cli.app import app

TARGETS = "".join(
    f'[upstreams.{name}]\nformat = "anthropic_messages"\nscript = "{name}.jsonl"\n'
    f'[targets.{name}]\nupstream = "{name}"\nmodel = "{name}"\n'
    for name in ("small", "large")
)
TOML = f"""
{TARGETS}
[routes.coder]
type = "affinity"
router = {{ type = "random", targets = ["large", "small"], weights = [1, 0] }}
background = "small"
small_models = ["claude-haiku-*"]
[routes.coder.subagents]
type = "affinity"
router = {{ type = "random", targets = ["large", "small"], seed = 3, per = "lane" }}
[routes.fixed]
type = "passthrough"
target = "large"
subagents = "small"
"""
TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {}}}
JSON = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("composition")
    for name in ("small", "large"):
        script(folder, f"{name}.jsonl", {"text": f"I am {name}."})
    with running(TOML, folder, capture="full") as served:
        yield served
        replayed(served)


def ask(gateway: Running, session: str, agent: str = "", *, model: str = "coder", turns: int = 1, **more: Any) -> JSON:
    """The response's headers, and its text under `text`."""
    messages: list[JSON] = []
    for number in range(turns):
        messages += [{"role": "user", "content": f"task {number}"}, {"role": "assistant", "content": f"I am {number}"}]
    body = {"model": model, "max_tokens": 50, "messages": messages[:-1], "tools": [TOOL], **more}
    headers = {"content-type": "application/json", "x-claude-code-session-id": session}
    if agent:
        headers["x-claude-code-agent-id"] = agent
    request = urllib.request.Request(gateway.url + "/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        text = json.loads(response.read())["content"][0]["text"]
        return {"text": text, **{name.lower(): value for name, value in response.headers.items()}}


def record(gateway: Running, answer: JSON) -> Any:
    gateway.settled()
    return next(turn for turn in gateway.turns() if turn.id == answer["x-turnout-turn"])


def test_an_agents_pin_is_its_own_and_its_record_says_who_decided(gateway: Running) -> None:
    first, second = ask(gateway, "s1"), ask(gateway, "s1", turns=2)
    assert (first["x-turnout-source"], second["x-turnout-source"]) == ("random", "pin")
    assert first["text"] == second["text"] == "I am large."
    why = record(gateway, first).why
    assert (why.source, why.place) == ("random", "router")
    assert record(gateway, second).why.place == ""
    assert record(gateway, first).router == "affinity"


def test_delegated_work_is_decided_apart_in_parallel(gateway: Running) -> None:
    agents = [f"agent-{number}" for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        firsts = list(pool.map(lambda agent: ask(gateway, "s2", agent), agents))
        seconds = list(pool.map(lambda agent: ask(gateway, "s2", agent, turns=2), agents))
    assert {answer["x-turnout-source"] for answer in firsts} == {"random"}
    assert {answer["x-turnout-source"] for answer in seconds} == {"pin"}
    assert [a["text"] for a in firsts] == [a["text"] for a in seconds]
    assert len({answer["text"] for answer in firsts}) == 2  # each child draws for itself
    place = record(gateway, firsts[0]).why.place
    assert place == "subagents/router"
    assert record(gateway, firsts[0]).remembered
    # What the children chose never reached their parent.
    assert ask(gateway, "s2")["x-turnout-source"] == "random"


def test_background_calls_go_to_the_small_target(gateway: Running) -> None:
    title = ask(gateway, "s3", tools=[])
    assert (title["x-turnout-source"], title["text"]) == ("background", "I am small.")
    haiku = ask(gateway, "s3", model="claude-haiku-4-5")
    assert (haiku["x-turnout-source"], haiku["text"]) == ("background", "I am small.")
    assert ask(gateway, "s3")["text"] == "I am large."


def test_a_fixed_target_for_delegated_work_is_labelled(gateway: Running) -> None:
    answer = ask(gateway, "s4", "a1", model="fixed")
    assert (answer["x-turnout-source"], answer["text"]) == ("subagent", "I am small.")
    assert ask(gateway, "s4", model="fixed")["text"] == "I am large."


def test_why_shows_the_place(gateway: Running) -> None:
    answer = ask(gateway, "s5", "a1")
    gateway.settled()
    shown = CliRunner().invoke(app, ["why", answer["x-turnout-turn"], "--ledger", gateway.ledger_url])
    assert shown.exit_code == 0, shown.output
    assert "decided by random at subagents/router" in shown.output
    assert "delegated work has a policy of its own" in shown.output
