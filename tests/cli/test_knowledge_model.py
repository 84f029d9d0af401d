"""`turnout knowledge build --model`: what is bought, kept, and bought once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wordllama", reason="the extra `knowledge` is not installed")

from tests.knowledge.extraction.server import Server, serving

from turnout.cli.app import run
from turnout.knowledge.store import Store

CONFIG = """
[upstreams.main]
format = "openai_chat"
base_url = "{url}"
max_retries = 0
[targets.reader]
upstream = "main"
model = "vendor-reader"
price = {{ input = 1.0, output = 4.0 }}
[targets.unpriced]
upstream = "main"
model = "vendor-unheard-of"
[routes.any]
type = "passthrough"
target = "reader"
"""
PASSAGES = [f"Harbour Town {i} has {i} ropes." for i in range(24)]
BUILD = ["knowledge", "build", "c.jsonl", "--embedder", "hashed", "--no-bm25", "--model", "reader"]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"p{i}", "title": "", "text": text} for i, text in enumerate(PASSAGES)]
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving() as found:
        Path("turnout.toml").write_text(CONFIG.format(url=found.url))
        yield found


def build(*arguments: str, out: str = "k") -> int:
    return run([*BUILD, "--out", out, *arguments])


def facts(folder: str) -> list[Any]:
    store = Store(Path(folder))
    try:
        return [store.facts(), store.entities(), list(store.incidence())]
    finally:
        store.close()


def journal(name: str = "k.calls.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()[1:]]


def test_a_killed_build_pays_for_nothing_twice_and_ends_the_same(server: Server) -> None:
    server.delay_s = 0.02
    command = [sys.executable, "-m", "turnout", *BUILD, "--out", "k", "--at-once", "3"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while sum(server.asked.values()) < 9 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL, process.stderr and process.stderr.read()
    assert process.stderr is not None
    process.stderr.close()
    kept = len(journal())
    assert 0 < kept < len(PASSAGES)
    time.sleep(0.1)  # what was in flight is over at the server
    before = server.asked.copy()
    assert sum(before.values()) <= kept + 3
    server.delay_s = 0.0
    assert build() == 0
    assert set(server.asked) == set(PASSAGES)
    assert sum((server.asked - before).values()) == len(PASSAGES) - kept
    assert len(journal()) == len({entry["key"] for entry in journal()}) == len(PASSAGES)
    assert build("--journal", "other.jsonl", out="whole") == 0
    assert facts("k") == facts("whole")
    assert server.most <= 8


def test_what_is_known_is_not_asked_again(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert build("--json") == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["passages"], built["facts"], built["bad"]) == (24, 24, {})
    asked = sum(server.asked.values())
    assert build("--json") == 0
    assert json.loads(capsys.readouterr().out)["same"] == 24
    # Another folder, from the same journal: nothing is paid for either.
    assert build("--journal", "k.calls.jsonl", out="k2") == 0
    assert sum(server.asked.values()) == asked == 24
    assert facts("k") == facts("k2")
    assert "24 calls, 10800 tokens" in capsys.readouterr().err
    # Whatever shapes a reply asks for new ones.
    assert build("--output-tokens", "100", "--journal", "n.jsonl") == 0
    assert sum(server.asked.values()) == 48


@pytest.mark.parametrize(
    ("limit", "most"), [(["--max-calls", "5"], 5), (["--max-tokens", "8000"], 12), (["--max-usd", "0.02"], 12)]
)
def test_a_limit_ends_it_with_what_there_is(
    limit: list[str], most: int, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(*limit) == 1
    assert 0 < sum(server.asked.values()) <= most
    said = capsys.readouterr().err
    assert f"not extracted: another call might exceed the limit on {limit[0][6:]}" in said
    spent = journal()
    assert sum(one["input_tokens"] + one["output_tokens"] for one in spent) <= (
        8000 if "--max-tokens" in limit else 10**6
    )
    assert sum(one["usd"] for one in spent) <= 0.02
    assert build() == 0
    assert len(journal()) == sum(server.asked.values()) == 24


def test_an_unreadable_reply_is_asked_for_once_more_then_left_out(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, busy = PASSAGES[0], PASSAGES[1], PASSAGES[2]
    server.faults = {good: ["Sure! Here are the facts."], bad: ["nothing", '{"facts": 3}'], busy: [503]}
    assert build("--json") == 0
    caught = capsys.readouterr()
    built = json.loads(caught.out)
    assert built["facts"] == 23
    assert built["bad"] == {"no reply that can be read": 1}
    assert [one for one in built["problems"] if one.startswith("p1: ") and "the model's answer" in one]
    assert "1 piece left out" in caught.err
    assert (server.asked[good], server.asked[bad], server.asked[busy]) == (2, 2, 2)
    assert build() == 0
    assert server.asked[bad] == 2


def test_a_server_that_gives_nothing_is_given_up(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.faults = {text: [401] for text in PASSAGES}
    assert build("--at-once", "2") == 3
    assert "gave no replies" in capsys.readouterr().err
    assert sum(server.asked.values()) <= 4
    server.faults = {}
    assert build() == 0
    assert len(facts("k")[0]) == 24


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "raeder"], "has no target 'raeder'"),
        (["--model", "unpriced", "--max-usd", "1"], "no price is known for unpriced"),
        (["--config", "none.toml"], "no such file"),
        (["--journal", "c.jsonl"], "not a line of a build's journal"),
    ],
)
def test_bad_input_is_named(
    arguments: list[str], said: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(*arguments) == 2
    assert said in capsys.readouterr().err
    assert not server.asked
    assert not Path("k").exists()
