"""The hand-over note in a served conversation: once at each change of model, and nowhere else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.played import Played, completion, whole
from tests.running import Running, running
from typer.testing import CliRunner

from turnout.cli.app import app
from turnout.ledger.rows import bare

JSON = dict[str, Any]
TOML = """
[upstreams.u]
format = "openai_chat"
base_url = "{url}"
max_retries = 0
[targets.one]
upstream = "u"
model = "m1"
[targets.two]
upstream = "u"
model = "m2"
[targets.two-too]
upstream = "u"
model = "m2"
[targets.down]
upstream = "u"
model = "broken"
[routes.one]
type = "passthrough"
target = "one"
handover_note = true
[routes.two]
type = "passthrough"
target = "two"
handover_note = true
[routes.two-too]
type = "passthrough"
target = "two-too"
handover_note = true
[routes.plain]
type = "passthrough"
target = "two"
[routes.staged]
type = "stage"
efficient = "down"
capable = "down"
efficient_fallbacks = ["two"]
capable_fallbacks = ["two"]
handover_note = true
"""
RED = "<returncode>1</returncode>\n<output>\n=== 1 failed, 4 passed in 0.2s ===\n</output>"


@pytest.fixture
def upstream() -> Iterator[Played]:
    def play(seen: Any, number: int) -> Any:
        model = json.loads(seen.body)["model"]
        return whole(503, {"error": {"message": "down"}}) if model == "broken" else whole(200, completion())

    with Played(play) as server:
        yield server


@pytest.fixture(params=["full", "signals", "none"])
def capture(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def gateway(upstream: Played, tmp_path: Path, capture: str) -> Iterator[Running]:
    with running(TOML.format(url=upstream.url), tmp_path, capture=capture) as served:
        yield served


def history(steps: int) -> list[JSON]:
    messages: list[JSON] = [{"role": "user", "content": "Repair the clock."}]
    for i in range(steps):
        function = {"name": "bash", "arguments": json.dumps({"command": "pytest -x"})}
        call = {"id": f"c{i}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"Step {i}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": RED})
    return messages


def send(gateway: Running, route: str, steps: int) -> bytes:
    """Send a conversation of so many steps; the client's bytes."""
    body = json.dumps({"model": route, "messages": history(steps)}, indent=1).encode()
    headers = {"content-type": "application/json", "x-turnout-session": "s"}
    with urlopen(Request(f"{gateway.url}/v1/chat/completions", body, headers), timeout=10) as response:
        response.read()
    return body


def note_in(body: bytes) -> str:
    last = json.loads(body)["messages"][-1]
    return last["content"] if last["role"] == "user" and last["content"].startswith("<handover>") else ""


def test_a_note_comes_with_each_change_of_model_and_only_then(gateway: Running, upstream: Played, capture: str) -> None:
    routes = ["one", "two", "two", "two-too", "one", "plain", "one"]
    noted = [False, True, False, False, True, False, True]
    for steps, (route, expected) in enumerate(zip(routes, noted, strict=True), 1):
        own = send(gateway, route, steps)
        sent = upstream.seen[-1].body
        assert bool(note_in(sent)) == expected
        assert sent.count(b"<handover>") == expected
        if expected:
            note = note_in(sent)
            assert "Repair the clock." in note
            assert f"failed the same way {steps} times" in note or steps < 2
            assert 'bash "pytest -x"' in note
            messages = json.loads(sent)["messages"]
            assert messages[:-1] == json.loads(own)["messages"]
        else:
            model = json.loads(sent)["model"]
            assert sent == own.replace(f'"model": "{route}"'.encode(), f'"model": "{model}"'.encode())
    turns = gateway.settled()[::-1]
    assert [turn.handover is not None for turn in turns] == [n and capture != "none" for n in noted]
    for turn in turns:
        for line in turn.handover.lines if turn.handover is not None else ():
            assert line.messages
            said = line.about in ("request", "stated", "plan", "first", "said")
            assert bool(line.text) == (capture == "full" or not said)


@pytest.mark.parametrize("capture", ["full"], indirect=True)
def test_a_fallback_is_handed_over_to_as_well_and_why_shows_the_note(gateway: Running, upstream: Played) -> None:
    send(gateway, "one", 1)
    send(gateway, "staged", 2)
    assert note_in(upstream.seen[-1].body)
    turn = gateway.settled()[0]
    assert turn.target == "two"
    assert turn.handover is not None
    told = CliRunner().invoke(app, ["why", turn.id, "--ledger", gateway.ledger_url]).output
    assert "handed over with a note" in told
    assert "failure [4]" in told
    assert bare(turn, "none").handover is None
