"""`turnout replay`: a ledger decided again by a configuration."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lived import FAILED, PASSED, Life

from turnout.cli import exits
from turnout.cli.app import run
from turnout.gateway.config import load, parse
from turnout.gateway.facts import facts
from turnout.gateway.versions import folder_of, table_of, version
from turnout.ledger.store import Ledger

CONFIG = """\
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
api_key_env = "A_VARIABLE_THAT_IS_NOT_SET"
[targets.small]
upstream = "main"
model = "vendor-small"
price = { input = 1.0, output = 5.0, cache_read = 0.1 }
[targets.large]
upstream = "main"
model = "vendor-large"
price = { input = 10.0, output = 50.0, cache_read = 1.0 }
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
[routes.always-large]
type = "passthrough"
target = "large"
[routes.sorted]
type = "classifier"
efficient = "small"
capable = "large"
judge = "large"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration and a ledger that its route made: two sessions, the second a day later."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turnout.toml").write_text(CONFIG)
    config = parse(CONFIG)
    route = config.routes["coder"]
    ledger = Ledger.open("sqlite:///turnout.db")
    for number, session in enumerate(("s1", "s2")):
        begins = 1e9 + 86_400.0 * number
        life = Life(route.router, policy=route.policy, session=session, targets=facts(config), begins=begins)
        for text in (PASSED, FAILED, FAILED, PASSED):
            life.turn()
            life.result(text)
        life.turn()
        for record in life.records:
            ledger.append(record)
    ledger.close()
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["replay", "turnout.db", "turnout.toml", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_routes_that_made_a_ledger_decide_it_as_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "--strict")
    assert (found["turns"], found["replayed"], found["own"]["turns"], found["own"]["exact"]) == (10, 10, 10, 10)
    assert (found["agreement"], found["flips"], found["unsupported"]) == (1.0, [], {})
    assert found["was"] == found["now"] == {"small": 6, "large": 4}
    assert found["cost"]["candidate_usd"] == found["cost"]["live_usd"] > 0
    assert any("same prompts and replies" in one for one in found["cost"]["assumptions"])
    assert run(["replay", "sqlite:///turnout.db", "turnout.toml"]) == 0
    assert "10 come out exactly the same" in capsys.readouterr().out


def test_another_route_is_asked_with_as_and_its_flips_are_listed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, "--as", "always-large", "--flips", "2")
    assert (found["replayed"], found["agreed"], found["own"]["turns"]) == (10, 4, 0)
    assert found["flipped"] == [{"was": "small", "now": "large", "turns": 6}]
    assert len(found["flips"]) == 2
    assert found["flips"][0]["was"]["sentence"]
    assert found["cost"]["saved_usd"] < 0
    assert run(["replay", "turnout.db", "turnout.toml", "--as", "always-large", "--flips", "1"]) == 0
    out = capsys.readouterr().out
    for part in (
        "6 from small to large",
        "small -> large",
        "(5 more: --flips N)",
        "assumed: the same prompts",
        "caches included",
    ):
        assert part in out


def test_turns_can_be_chosen_and_printed_one_by_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--session", "s2")["turns"] == 5
    assert shown(capsys, "--route", "coder")["turns"] == 10
    assert shown(capsys, "--until", "2001-09-10")["turns"] == 5
    # Of a lane that began before the period, what it remembers is known: its turns come out the same.
    late = shown(capsys, "--since", "2001-09-10T01:46:50", "--as", "coder")
    assert (late["turns"], late["agreement"]) == (4, 1.0)
    assert run(["replay", "turnout.db", "turnout.toml", "--turns"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["target"] for row in rows] == [row["was"] for row in rows]
    assert {row["session"] for row in rows} == {"s1", "s2"}
    assert all(row["why"]["sentence"] and row["usd"] for row in rows)


def test_a_version_of_a_route_is_asked_before_it_serves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = load("turnout.toml", None)
    made = version(config, "coder", {**table_of(config.routes["coder"]), "threshold": 0.99})
    folder_of(config).add(made)
    same, other = shown(capsys, "--as", "coder"), shown(capsys, "--as", "coder", "--policy", made.digest[:6])
    assert (same["agreed"], same["own"]["turns"]) == (10, 10)
    assert other["agreed"] < 10
    assert other["own"]["turns"] == 0
    assert run(["replay", "turnout.db", "turnout.toml", "--as", "coder", "--policy", "nothing"]) == exits.USAGE
    assert "has no version `nothing`" in capsys.readouterr().err
    assert run(["replay", "turnout.db", "turnout.toml", "--policy", made.digest]) == exits.USAGE
    assert "name the route with --as" in capsys.readouterr().err


def test_what_needs_a_call_is_counted_and_never_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--as", "sorted")["unsupported"] == {"conversation": 2, "memory": 8}
    assert run(["replay", "turnout.db", "turnout.toml", "--as", "sorted"]) == 0
    assert 'not supported: reads what was said, which only capture = "full" keeps' in capsys.readouterr().out


def test_strict_fails_when_a_route_decides_its_own_turns_otherwise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from turnout.cli import replay as command

    def other(route: Any) -> Any:
        from turnout.evaluate.replaying import Candidate

        router = msgspec.structs.replace(route.router, threshold=0.99) if route.name == "coder" else route.router
        return Candidate(route.name, router, route.policy, route.fault)

    original, command.candidate = command.candidate, other
    try:
        assert run(["replay", "turnout.db", "turnout.toml", "--strict"]) == exits.FOUND
    finally:
        command.candidate = original
    assert "instead of" in capsys.readouterr().out


def test_bad_input_is_said_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, part in (
        (["nowhere.db", "turnout.toml"], exits.NOT_FOUND, "nowhere.db does not exist"),
        (["turnout.db", "nowhere.toml"], exits.USAGE, "no such file"),
        (["turnout.db", "turnout.toml", "--as", "codr"], exits.NOT_FOUND, "did you mean `coder`"),
        (["turnout.db", "turnout.toml", "--since", "last week"], exits.USAGE, "--since: 'last week' is no moment"),
        (["mysql://x/y", "turnout.toml"], exits.USAGE, "SQLite or PostgreSQL"),
    ):
        assert run(["replay", *arguments]) == code
        assert part in capsys.readouterr().err
    assert run(["replay", "turnout.db", "turnout.toml", "--since", "1h"]) == 0
    assert "no such turns" in capsys.readouterr().err


def test_moments_are_days_times_and_spans() -> None:
    from turnout.cli.periods import moment

    assert moment("", "--since") is None
    assert moment("2001-09-09T01:46:40", "--since") == moment("2001-09-09T03:46:40+02:00", "--since") == 1e9
    found = moment("2h", "--since")
    assert found is not None
    assert abs(time.time() - 7200 - found) < 60
