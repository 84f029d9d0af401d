"""Every example runs, against scripted models."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Running, running, script

EXAMPLES = Path(__file__).parents[1] / "examples"
CONFIG = """
[upstreams.small_vendor]
format = "openai_chat"
script = "small.jsonl"
[upstreams.large_vendor]
format = "anthropic_messages"
script = "large.jsonl"

[targets.efficient]
upstream = "small_vendor"
model = "small"
[targets.capable]
upstream = "large_vendor"
model = "large"

[routes.coder]
type = "stage"
efficient = "efficient"
capable = "capable"
[routes."gpt-5.4-mini"]
type = "passthrough"
target = "efficient"
[routes."gpt-5.4"]
type = "passthrough"
target = "capable"
"""
CALL = {"name": "run_tests", "arguments": {}}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Running]:
    small = [
        {"contains": "surely", "text": "Yes."},
        {"contains": "how many", "text": "Two: Phobos and Deimos."},
        {"contains": "tricky", "text": "Perhaps seven."},
        {"contains": "Perhaps", "text": "No."},
        {"contains": "Say hello", "text": "Hello there."},
        {"text": "I look.", "calls": [CALL]},
    ]
    script(tmp_path, "small.jsonl", small[3], *small[:3], *small[4:])
    script(tmp_path, "large.jsonl", {"contains": "tricky", "text": "Nobody knows."}, {"text": "Two tests fail."})
    with running(CONFIG, tmp_path) as served:
        yield served


def run(name: str, gateway: Running, *arguments: str) -> str:
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": f"{gateway.url}/v1",
        "OPENAI_API_KEY": "unused",
        "ANTHROPIC_BASE_URL": gateway.url,
        "PYTHONPATH": str(EXAMPLES.parent / "src"),
    }
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_router_runs_inside_a_program_and_keeps_what_the_small_model_vouches_for(gateway: Running):
    told = run("embed.py", gateway, "how many moons has Mars?")
    assert told.splitlines()[0] == "gpt-5.4-mini: Two: Phobos and Deimos."


def test_a_router_inside_a_program_asks_the_large_model_otherwise(gateway: Running):
    told = run("embed.py", gateway, "a tricky question")
    assert told.splitlines()[0] == "gpt-5.4: Nobody knows."
    assert "does not vouch" in told


def test_the_openai_client_gets_both_of_its_formats(gateway: Running):
    told = run("sdk_openai.py", gateway)
    assert told.count("Hello there.") == 2
    assert told.count("served by efficient") == 2
    assert {turn.format for turn in gateway.turns()} == {"openai_chat", "openai_responses"}


def test_failing_tests_move_the_anthropic_client_to_the_capable_model(gateway: Running):
    told = run("sdk_anthropic.py", gateway)
    assert told.startswith("[efficient] I look.")
    assert "[capable] Two tests fail." in told


def test_the_hand_over_note_is_what_the_guide_shows(gateway: Running):
    told = run("hand_over.py", gateway)
    guide = (EXAMPLES.parent / "docs" / "guide" / "hand-over.md").read_text("utf-8")
    assert told.partition("</handover>")[0] in guide
    assert "failure rests on messages [6]" in told


def test_every_example_is_run_here():
    here = Path(__file__).read_text("utf-8")
    assert all(f'"{path.name}"' in here for path in EXAMPLES.glob("*.py"))
