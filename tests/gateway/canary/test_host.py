"""A canary in a gateway: outcomes that are posted stop it, the stop is kept, and survives a restart."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.running import Running, running, script

from turnout.cli.app import run
from turnout.ledger.store import Ledger

CONFIG = """
[upstreams.u]
format = "openai_chat"
script = "replies.jsonl"
[targets.small]
upstream = "u"
model = "small"
[targets.large]
upstream = "u"
model = "large"
[routes.coder]
type = "canary"
name = "trial"
share = 0.5
incumbent = "large"
candidate = "small"
watching = { settle_s = 0.1, metrics = ["success", "errors"] }
"""


def post(gateway: Running, path: str, body: object, session: str = "") -> str:
    headers = {"content-type": "application/json", **({"x-turnout-session": session} if session else {})}
    with urlopen(Request(gateway.url + path, json.dumps(body).encode(), headers), timeout=20) as response:
        return str(response.headers.get("x-turnout-target") or response.status)


def turn(gateway: Running, session: str, *said: str) -> None:
    words = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(("hi", *said))]
    post(gateway, "/v1/chat/completions", {"model": "coder", "messages": words}, session)


def test_it_stops_by_itself_keeps_lanes_and_stays_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(tmp_path, "replies.jsonl", {"text": "done"})
    with running(CONFIG, tmp_path) as gateway:
        for n in range(80):
            turn(gateway, f"s{n}")
        arms = {t.session: t.target for t in gateway.settled()}
        assert set(arms.values()) == {"small", "large"}
        for session, target in arms.items():
            assert post(gateway, "/v1/outcomes", {"session": session, "success": target == "large"}) == "201"
        gateway.gateway.canaries.look(2e9)
        ((_, names),) = gateway.gateway.canaries.stopped.items()
        assert names == {"trial"}
        for n in range(80, 110):
            turn(gateway, f"s{n}")
        assert {t.target for t in gateway.settled()[:30]} == {"large"}
        taken = next(session for session, target in arms.items() if target == "small")
        turn(gateway, taken, "done", "go on")
        assert gateway.settled()[0].target == "small"
        with urlopen(gateway.url + "/metrics", timeout=20) as response:
            scraped = response.read().decode()
        assert 'turnout_canary_stopped{canary="trial",route="coder"} 1.0' in scraped
        assert f'arm="candidate",canary="trial",route="coder"}} {list(arms.values()).count("small")}.0' in scraped
        where = gateway.ledger_url
    ledger = Ledger.read(where)
    (stop,) = ledger.stopped_canaries()
    ledger.close()
    assert (stop.route, stop.name, stop.metric) == ("coder", "trial", "success")
    with running(CONFIG, tmp_path) as gateway:
        assert gateway.gateway.canaries.stopped == {"coder": {"trial"}}
        for n in range(200, 220):
            turn(gateway, f"s{n}")
        assert {t.target for t in gateway.settled()[:20]} == {"large"}
        gateway.gateway.canaries.look(2e9)
        (status,) = gateway.gateway.canaries.statuses()
        # Read again from the ledger, the same lanes and outcomes say the same.
        assert (status.state, status.reason) == ("stopped", stop.reason)
    file = tmp_path / "turnout.toml"
    file.write_text(CONFIG)
    capsys.readouterr()
    assert run(["canary", "status", str(file), "--ledger", where, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["state"], told["metric"], told["reason"]) == ("stopped", "success", stop.reason)
    assert run(["canary", "status", str(file), "--ledger", where]) == 0
    assert "canary trial of route coder: stopped" in capsys.readouterr().out


def test_the_first_stop_of_a_canary_stays(tmp_path: Path) -> None:
    from turnout.ledger.canaries import Stop

    ledger = Ledger.open(f"sqlite:///{tmp_path}/a.db")
    ledger.stop_canary(Stop("r", "a", 1.0, "cost", "first"))
    ledger.stop_canary(Stop("r", "a", 2.0, "cost", "second"))
    ledger.stop_canary(Stop("r", "b", 3.0, "cost", "other"))
    assert [stop.reason for stop in ledger.stopped_canaries()] == ["first", "other"]
    ledger.close()
