"""`turnout cache` and the part of `turnout why` that speaks of caches: read from a ledger and from a gateway."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.running import running

from turnout.cli import cache, exits
from turnout.cli.app import run
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.routing.warmth import CacheUse

CONFIG = """
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "main"
model = "m"
[routes.coder]
type = "passthrough"
target = "small"
"""


def record(number: int, use: CacheUse | None, session: str = "s1", ago_s: float = 10.0) -> TurnRecord:
    return TurnRecord(
        id=f"turn-{session}-{number}",
        at=time.time() - ago_s + number * 0.01,
        route="coder",
        session=session,
        target="small",
        model="m-small",
        cache=use,
    )


def growing(turns: int, target: str = "small", **more: Any) -> list[CacheUse]:
    """Uses of a session that reads all but its newest 2,000 tokens."""
    return [
        CacheUse(
            target=target,
            prompt_tokens=10_000 + 2_000 * i,
            predicted_read=8_000 + 2_000 * i,
            reported_read=8_000 + 2_000 * i,
            held_tokens=10_000 + 2_000 * i,
            lifetime="5m",
            bias=0.0 if i > 2 else None,
            **more,
        )
        for i in range(turns)
    ]


BROKEN = CacheUse(
    target="small",
    prompt_tokens=30_000,
    predicted_read=10_000,
    reported_read=9_000,
    cause="agent",
    part="message",
    message=12,
    upto=13,
    lost_tokens=17_000,
    held_tokens=30_000,
    lifetime="5m",
)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'turnout.db'}"
    store = Ledger.open(url)
    for number, use in enumerate([*growing(9), BROKEN]):
        store.append(record(number, use))
    for number, use in enumerate(growing(3)):
        store.append(record(number, use, session="old", ago_s=4_000.0))
    store.append(record(0, None, session="chat"))
    store.close()
    return url


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["cache", "--json", *arguments]) == exits.OK
    return json.loads(capsys.readouterr().out)


def test_figures_per_lane_and_target(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "--ledger", ledger)
    assert found["turns"] == 14
    assert [(lane["session"], lane["turns"]) for lane in found["lanes"]] == [("s1", 10), ("old", 3)]
    newest, old = found["lanes"]
    prompt = sum(10_000 + 2_000 * i for i in range(9)) + 30_000
    read = sum(8_000 + 2_000 * i for i in range(9)) + 9_000
    assert newest["hit_rate"] == pytest.approx(read / prompt, abs=1e-4)
    assert newest["read_error"] == pytest.approx(1_000 / read, abs=1e-4)
    assert (newest["held_tokens"], newest["state"]) == (30_000, "warm")
    assert (old["held_tokens"], old["state"]) == (14_000, "expired")
    assert newest["bias"] == 0.0
    assert newest["lost_tokens"] == 17_000
    (broken,) = newest["breaks"]
    assert (broken["turn"], broken["cause"], broken["message"], broken["upto"]) == ("turn-s1-9", "agent", 12, 13)
    assert newest["reported_write"] is None


def test_sessions_that_have_ended_tell_how_long_they_last(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    remaining = shown(capsys)["remaining"]
    # Only the old one is over, and one is too few to go by.
    assert remaining["sessions_ended"] == 1
    assert remaining["expected_turns"] is None
    assert remaining["packaged_expected_turns"]["1"] == pytest.approx(38.2, abs=0.5)
    store = Ledger.open(ledger)
    for session in range(cache.ENOUGH):
        for number in range(3):
            store.append(record(number, None, session=f"past-{session}", ago_s=4_000.0))
    store.close()
    remaining = shown(capsys)["remaining"]
    assert remaining["sessions_ended"] == cache.ENOUGH + 1
    # All but the one that goes on had three turns.
    assert 3 <= remaining["expected_turns"]["1"] < 15


def test_the_table_says_who_broke_what(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cache", "--session", "s1"]) == exits.OK
    out = " ".join(capsys.readouterr().out.split())
    assert "agent changed a message, from message 12 to 13: 17,000 tokens" in out
    assert "30,000" in out
    assert "old" not in out


def test_nothing_to_show_says_what_it_takes(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cache", "--session", "chat"]) == exits.OK
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "price for cached tokens" in captured.err


def test_why_shows_the_cache_of_a_turn(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "turn-s1-9", "--ledger", ledger]) == exits.OK
    out = capsys.readouterr().out
    assert "read: 10000 predicted, 9000 reported" in out
    assert "broken: agent changed a message" in out
    assert run(["why", "turn-s1-9", "--json"]) == exits.OK
    found = json.loads(capsys.readouterr().out)
    assert found["cache"]["lost_tokens"] == 17_000
    assert found["cache"]["reported_write"] is None
    assert run(["why", "turn-chat-0", "--json"]) == exits.OK
    assert json.loads(capsys.readouterr().out)["cache"] is None


def test_a_gateway_is_asked_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(CONFIG, tmp_path) as served:
        for number, use in enumerate(growing(4)):
            served.gateway.ledger.append(record(number, use))
        served.turns()
        (lane,) = shown(capsys, "--url", served.url)["lanes"]
    assert (lane["turns"], lane["held_tokens"]) == (4, 16_000)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (CacheUse("a", cause="switch", lost_tokens=5_000), "model switch: 5,000 tokens"),
        (CacheUse("a", cause="provider", lost_tokens=5_000), "provider no longer had it: 5,000 tokens"),
        (
            CacheUse("a", cause="client", part="rewind", message=3, lost_tokens=9),
            "client went back, from message 3: 9 tokens",
        ),
    ],
)
def test_breaks_in_words(use: CacheUse, said: str) -> None:
    assert cache.words(use) == said


def test_lanes_that_differ_only_at_their_end_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Ledger.open(f"sqlite:///{tmp_path / 'turnout.db'}")
    sessions = [f"8c494055-a0d1-48e5-a0fb-63c7071ba63c-agent-{number}" for number in (1, 2)]
    for session in sessions:
        store.append(record(0, growing(1)[0], session=session))
    store.close()
    assert run(["cache"]) == exits.OK
    out = capsys.readouterr().out
    assert all(session in out for session in sessions)
