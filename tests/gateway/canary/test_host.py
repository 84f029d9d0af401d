"""A canary in a gateway: outcomes that are posted stop it, the stop is kept, and survives a restart."""

import json
import sqlite3
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.ledger.records import turn as turn_record
from tests.running import Running, running, script

from turnout.cli.app import run
from turnout.gateway.canary.host import Canaries
from turnout.gateway.canary.watch import CanaryStatus
from turnout.gateway.config import parse
from turnout.ledger.canaries import Checkpoint, Place
from turnout.ledger.outcome import Outcome
from turnout.ledger.store import Ledger
from turnout.routing.core import Why

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


def same(one: CanaryStatus, other: CanaryStatus) -> None:
    assert (one.lanes, one.running, one.metrics, one.reason) == (
        other.lanes,
        other.running,
        other.metrics,
        other.reason,
    )


def recorded(ledger: Ledger, first: int, count: int) -> None:
    """Lanes of one turn each and what became of them, of whom those of the candidate never succeed."""
    for n in range(first, first + count):
        arm = "candidate" if n % 2 else "incumbent"
        why = Why("canary", "", values={"canary": {"name": "trial", "arm": arm, "share": 0.5}})
        session = f"s{n}"
        ledger.append(turn_record(n, id=f"t{n}", session=session, agent="", route="coder", why=why, at=100.0 + n))
    ledger.flush()
    for n in range(first, first + count):
        ledger.add_outcome(Outcome(session=f"s{n}", success=n % 2 == 0))


def watching(ledger: Ledger, toml: str = CONFIG) -> Canaries:
    return Canaries(parse(toml), ledger)


def test_after_a_restart_the_watch_goes_on_from_what_was_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script(tmp_path, "replies.jsonl", {"text": "done"})
    config = CONFIG.replace("replies.jsonl", str(tmp_path / "replies.jsonl"))
    url = f"sqlite:///{tmp_path}/a.db"
    ledger = Ledger.open(url, flush_interval_s=0.01)
    first = watching(ledger, config)
    recorded(ledger, 0, 12)
    first.look(105.0)
    first.keep()
    recorded(ledger, 12, 60)
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE kept AS SELECT * FROM canary_watches")
        database.execute("DELETE FROM canary_watches")
    whole = watching(ledger, config)
    whole.look(1000.0, keep=False)
    # What was read is gone, as when old turns are deleted; what was learnt of it is not.
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("INSERT INTO canary_watches SELECT * FROM kept")
        database.execute("DELETE FROM turns WHERE at < 112")
        database.execute("DELETE FROM outcomes WHERE seq <= 12")
    second = watching(ledger, config)
    second.look(1000.0)
    same(second.statuses()[0], whole.statuses()[0])
    assert second.stopped == {"coder": {"trial"}}
    # Under other settings the evidence is another one, and is gathered from what is there.
    other = watching(ledger, config.replace('"success", "errors"', '"success"'))
    other.look(1000.0, keep=False)
    assert sum(other.statuses()[0].lanes.values()) == 60
    second.keep()
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("UPDATE canary_watches SET state = x'00'")
    third = watching(ledger, config)
    third.look(1000.0, keep=False)
    assert sum(third.statuses()[0].lanes.values()) == 60
    assert "the ledger is read from its beginning" in caplog.text
    ledger.close()


def test_what_other_writers_store_late_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "replies.jsonl", {"text": "done"})
    config = CONFIG.replace("replies.jsonl", str(tmp_path / "replies.jsonl"))
    ledger = Ledger.open(f"sqlite:///{tmp_path}/a.db", flush_interval_s=0.01)
    monkeypatch.setattr(Ledger, "stores_in_order", False)
    canaries = watching(ledger, config)
    recorded(ledger, 0, 10)
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE aside AS SELECT * FROM turns WHERE id = 't4'")
        database.execute("DELETE FROM turns WHERE id = 't4'")
    canaries.look(1000.0)
    assert sum(canaries.statuses()[0].lanes.values()) == 0
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("INSERT INTO turns SELECT * FROM aside")
    canaries.look(1000.0)
    assert sum(canaries.statuses()[0].lanes.values()) == 10
    ledger.close()


def test_a_watch_that_has_read_less_does_not_replace_what_one_has_kept_that_read_more(tmp_path: Path) -> None:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/a.db")
    for turns, settings in ((5, "a"), (3, "a")):
        ledger.keep_watch(Checkpoint("r", "c", settings, 1.0, Place(turns, 0), b"x"))
    kept = ledger.kept_watch("r", "c")
    assert kept is not None
    assert kept.place == Place(5, 0)
    ledger.keep_watch(Checkpoint("r", "c", "b", 1.0, Place(1, 0), b"y"))
    assert ledger.kept_watch("r", "c") == Checkpoint("r", "c", "b", 1.0, Place(1, 0), b"y")
    assert ledger.kept_watch("r", "d") is None
    ledger.close()
