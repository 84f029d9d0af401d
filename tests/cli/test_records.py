"""`turnout turns` and `turnout why`: recorded turns, read from a ledger and from a gateway."""

import json
from pathlib import Path

import pytest
from tests.running import running
from tests.story import Story

from turnout.cli import exits, records
from turnout.cli.app import run
from turnout.conversation import Settings, Usage
from turnout.ledger.store import Ledger
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing import Lane, Stage, TargetName, Turn
from turnout.routing.core import Why
from turnout.signals import Observation, Signals, observe

CONFIG = """\
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "main"
model = "m-small"
price = { input = 1.0, output = 2.0, cache_read = 0.1 }
[targets.large]
upstream = "main"
model = "m-large"
price = { input = 10.0, output = 20.0 }
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
"""


def record(number: int, route: str = "coder") -> TurnRecord:
    failed = Observation(
        "bash", "test", status="failed", evidence="exit_code", error_class="capability", error_kind="traceback"
    )
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=9000)
    return TurnRecord(
        id=f"turn-{number}",
        at=1_700_000_000.0 + number,
        route=route,
        session="s1",
        asked_for="coder",
        target="small",
        model="m-small",
        why=Why(
            "signals",
            "two tests failed [in a row]",
            "severity",
            score=0.7,
            confidence=0.7,
            threshold=0.5,
            values={"severity": 0.8, "spinning": 0.0},
        ),
        signals=Signals((failed,), depth=3, results=5),
        memory={"/StageMemory": {"tier": "small"}},
        remembered=({"event": "stage_served"},),
        calls=(Call("small", "m-small", served=True, usage=usage, cost_usd=0.0021, status=200, first_byte_s=0.4),),
        usage=usage,
        cost_usd=0.0021,
        drops=1,
        drop_report=({"path": "thinking", "how": "dropped", "why": "no place for it"},),
        total_s=1.5,
        format="anthropic_messages",
        upstream_format="openai_chat",
        policy="abc123",
        router="stage",
    )


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'turnout.db'}"
    store = Ledger.open(url)
    for number in range(30):
        store.append(record(number, "coder" if number % 3 else "background"))
    store.close()
    return url


def test_turns_lists_the_newest(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["turns", "--json", "-n", "5"]) == 0
    ids = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert ids == [f"turn-{n}" for n in (29, 28, 27, 26, 25)]
    assert run(["turns", "--json", "--route", "background", "--ledger", ledger]) == 0
    routes = {json.loads(line)["route"] for line in capsys.readouterr().out.splitlines()}
    assert routes == {"background"}
    assert run(["turns"]) == 0
    out = capsys.readouterr().out
    assert out.index("turn-10") < out.index("turn-29")
    assert "two tests failed [in a row]" in out
    assert "$0.0021" in out


def test_a_gateway_that_wants_a_key_says_how_to_give_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "hush")
    keys = '[server]\nrequire_keys = true\n[server.tenants.team]\nkey_env = "TEAM_KEY"\n'
    with running(CONFIG + keys, tmp_path, env={"TEAM_KEY": "hush"}) as served:
        assert run(["turns", "--url", served.url]) == exits.UPSTREAM
        assert "--key-env VAR" in capsys.readouterr().err
        assert run(["turns", "--url", served.url, "--key-env", "NO_SUCH_VARIABLE"]) == exits.USAGE
        assert "NO_SUCH_VARIABLE is not set" in capsys.readouterr().err
        assert run(["turns", "--url", served.url, "--key-env", "TEAM_KEY"]) == 0


def test_why_explains_a_turn_as_text(ledger: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "turnout.toml").write_text(CONFIG)
    assert run(["why", "turn-4", "--ledger", ledger]) == 0
    out = capsys.readouterr().out
    for part in (
        "two tests failed [in a row]", "decided by signals, rule severity", "score +0.700", "0.700 >= threshold 0.5",
        "seen: severity 0.8", "not seen: spinning", "first byte after 400 ms", "1.5 s in all",
        "bash, test, failed, capability traceback (by exit_code)", "10000 in (9000 cached), 100 out",
        "* small (m-small): $0.0021 as cached, $0.0102 uncached", "large (m-large): unpriced as cached, $0.102 uncached",
        "/StageMemory", "stage_served", "lost in translation: 1", "thinking dropped: no place for it", "policy abc123",
    ):  # fmt: skip
        assert part in out


def test_why_as_json_holds_the_names_of_route_and_more(
    ledger: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "turnout.toml").write_text(CONFIG)
    assert run(["why", "last", "--json", "--ledger", ledger]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["turn"] == "turn-29"
    assert (told["target"], told["source"], told["score"], told["confidence"]) == ("small", "signals", 0.7, 0.7)
    assert told["why"]["sentence"] == "two tests failed [in a row]"
    assert told["signals"]["depth"] == 3
    assert [(p["target"], p["served"], p["as_cached"], p["cold"]) for p in told["prices"]] == [
        ("small", True, 0.0021, 0.0102),
        ("large", False, None, 0.102),
    ]
    assert told["memory"] == {"/StageMemory": {"tier": "small"}}
    assert told["calls"][0]["cost_usd"] == 0.0021


def test_a_rejected_turn_is_explained_by_its_error_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Ledger.open("sqlite:///turnout.db")
    rejected = {"ended": "rejected", "error": "model_not_found", "error_message": "no route is called 'x'"}
    store.append(TurnRecord(id="turn-0", at=1.0, route="", asked_for="x", status=404, format="openai_chat", **rejected))
    store.close()
    assert run(["why"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first == "turn turn-0   x   rejected"
    assert second.endswith("error model_not_found 404: no route is called 'x'")
    assert not any(empty in line for empty in ("->", "()", "policy", "none") for line in rest)


def test_turns_that_are_not_there_are_named(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["turns", "--route", "none", "--session", "s9"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "no turns of route `none` and session `s9` are recorded\n")


def test_a_gateway_can_be_asked_instead(
    ledger: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(CONFIG, tmp_path) as gateway:  # its ledger is the one that holds the turns
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        assert run(["turns", "--url", gateway.url, "--json", "-n", "2"]) == 0
        assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["turn-29", "turn-28"]
        assert run(["turns", "--url", gateway.url, "--json", "--route", "background"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 10
        assert run(["why", "last", "--url", gateway.url + "/v1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["turn"] == "turn-29"
        assert run(["why", "turn-99", "--url", gateway.url]) == exits.NOT_FOUND
        assert "turn-99" in capsys.readouterr().err


def test_lists_longer_than_a_page_are_read_whole(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PAGE", 7)
    found = records.Records(ledger).recent(24)
    assert [record.id for record in found] == [f"turn-{n}" for n in range(29, 5, -1)]
    assert len(records.Records(ledger).recent(1000)) == 30


def test_what_is_not_there_is_said_with_the_next_step(
    ledger: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["why", "turn-99"]) == exits.NOT_FOUND
    assert "turnout turns" in capsys.readouterr().err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run(["turns"]) == exits.NOT_FOUND
    assert "--ledger" in capsys.readouterr().err
    assert not (elsewhere / "turnout.db").exists()
    assert run(["why", "x", "--ledger", "mongodb://x"]) == exits.USAGE
    assert run(["why", "x", "--ledger", ledger, "--url", "http://127.0.0.1:1"]) == exits.USAGE
    assert run(["why", "x", "--url", "http://127.0.0.1:9"]) == exits.UPSTREAM


@pytest.mark.parametrize("command", [["why", "last"], ["turns"]])
def test_looking_for_a_ledger_does_not_make_one(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.db"
    assert run([*command, "--json", "--ledger", f"sqlite:///{missing}"]) == exits.NOT_FOUND
    assert "does not exist" in capsys.readouterr().err
    assert not missing.exists()


def test_a_stage_decision_is_taken_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the ledger alone: the call each signal comes from, the sum, and what would have changed it."""
    monkeypatch.chdir(tmp_path)
    story = Story().bash("python x.py", "Traceback (most recent call last):\nValueError: bad value", 1)
    signals = observe(story.conversation)
    router = Stage(TargetName("small"), TargetName("large"))
    decision = router.route(Turn("t", Lane(), story.conversation, Settings(), signals, {}))
    store = Ledger.open("sqlite:///turnout.db")
    store.append(
        TurnRecord(
            id="turn-0", at=1.0, route="coder", target="large", why=decision.why, signals=signals, router="stage"
        )
    )
    store.close()
    assert run(["why", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["explained"]
    terms = {term["signal"]: term for term in told["terms"]}
    assert (told["same"], told["tier"], told["evidence"]) == (True, "capable", 1.25)
    assert terms["severity"]["seen"][0]["message"] == 2
    assert terms["severity"]["seen"][0]["tool"] == "bash"
    assert {change["input"] for change in told["changes"]} >= {"threshold", "severity", "newest"}
    assert run(["why"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in (
        "evidence +1.250 units", "severity 0.7: share 1.00 x weight 1 = +1.000", "newest 0.7: share 1.00 x weight 0.25",
        "message 2: bash", "ValueError: bad value", "what would have changed it", "threshold 0.5 -> 0.55",
    ):  # fmt: skip
        assert part in out, part


def test_no_password_of_a_ledger_is_shown() -> None:
    assert (
        records.shown("postgresql+psycopg://me:hunter2@db.local/turnout")
        == "postgresql+psycopg://me:***@db.local/turnout"
    )
    assert records.shown("sqlite:////srv/turnout.db") == "sqlite:////srv/turnout.db"
