"""`turnout trial`, end to end: scripted models, an agent of its own, and what is written of each run."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import Running, running, script

from turnout.cli import exits
from turnout.cli.app import run
from turnout.ledger.outcome import Outcome
from turnout.ledger.store import Ledger

CONFIG = """
[upstreams.played]
format = "openai_chat"
script = "replies.jsonl"

[targets.large]
upstream = "played"
model = "large"
price = { input = 5.0, output = 25.0 }
[targets.small]
upstream = "played"
model = "small"
price = { input = 1.0, output = 5.0 }

[routes.capable]
type = "passthrough"
target = "large"
[routes.efficient]
type = "passthrough"
target = "small"
[routes.routed]
type = "random"
targets = ["large", "small"]
seed = 3
"""
# The names of the tasks say which set they belong to.
TASKS = [f"{kind}-{n}" for kind in ("SAFE", "LOSS", "RESCUE", "HARD") for n in range(1)]
SCRIPT: list[dict[str, Any]] = [
    {"contains": "SAFE", "text": "It works."},
    {"model": "large", "contains": "LOSS", "text": "It works."},
    {"model": "small", "contains": "RESCUE", "text": "It works."},
    {"text": "It fails."},
]
AGENT = r"""
import http.client, json, os, sys, time
from urllib.parse import urlsplit
task = sys.argv[1]
url = urlsplit(os.environ["OPENAI_BASE_URL"])
connection = http.client.HTTPConnection(url.netloc)
body = {"model": os.environ["TURNOUT_ARM"], "messages": [{"role": "user", "content": task}]}
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
connection.request("POST", url.path + "/chat/completions", json.dumps(body), headers)
text = json.load(connection.getresponse())["choices"][0]["message"]["content"]
with open("answer.txt", "w") as file:
    file.write(text)
wait = os.environ.get("WAIT_FOR")
if wait and task == "HARD-0":
    open(wait + "." + os.environ["TURNOUT_ARM"], "w").write(str(os.getpid()))
    while not os.path.exists(wait):
        time.sleep(0.01)
if os.environ.get("OUTCOME"):
    told = {"session": os.environ["TURNOUT_SESSION"], "success": "works" in text, "rollback": task == "HARD-0"}
    connection.request("POST", url.path + "/outcomes", json.dumps(told))
    connection.getresponse().read()
    sys.exit(0)
sys.exit(0 if "works" in text else 1)
"""
SRC = str(Path(__file__).parents[2] / "src")
PYTHON = [sys.executable, "-I", "-S"]
ARMS = ["--arms", "capable,efficient,routed"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gateway")
    script(folder, "replies.jsonl", *SCRIPT)
    with running(CONFIG, folder) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tasks and the agent, to be in."""
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps({"id": id, "prompt": id}) + "\n" for id in TASKS))
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "template").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*options: str) -> list[str]:
    given = [*ARMS, "--tasks", "tasks.jsonl", "--workdir", "template", *options]
    return ["trial", *given, "--", *PYTHON, "{here}/agent.py", "{prompt}"]


def rows(folder: Path, out: str = "trial") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / out / "outcomes.jsonl").read_text().splitlines()]


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """What another run of the same would have too. The routed arm draws by session, so there it is less."""
    if row["model"] == "routed":
        return {name: row[name] for name in ("task_id", "trial", "seed", "steps", "timed_out")}
    return {name: row[name] for name in row if name not in ("latency_s", "model_s", "session", "at", "conditions")}


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_trial_gives_the_sets_it_was_made_of(folder: Path, gateway: Running, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("numpy")
    assert run(command("--gateway", gateway.url, "--jobs", "3", "--trials", "2")) == 0
    said = capsys.readouterr().out
    assert "differ in nothing but the arm" in said
    following = said.splitlines()[-1].removeprefix("next: turnout ").split()
    assert run([*following, "--json", "--resamples", "100"]) == 0
    found = told(capsys)
    assert found["quadrants"] == {"SAFE": 2, "LOSS": 2, "RESCUE": 2, "HARD": 2}
    assert (found["n"], found["n_tasks"], found["n_cost"]) == (8, 4, 8)
    # The scripted models never differ from themselves.
    assert found["control"]["capable"]["LOSS"]["value"] == 0.0
    recorded = {turn.session: turn for turn in gateway.turns()}
    for row in rows(folder):
        turn = recorded[row["session"]]
        assert (row["model"], row["cost_usd"], row["steps"]) == (turn.route, turn.cost_usd, 1)
        assert row["success"] == (row["exit_code"] == 0)
        assert row["efficient_share"] == (float(turn.target == "small") if row["model"] == "routed" else None)
    seeds = {(row["task_id"], row["trial"]): row["seed"] for row in rows(folder)}
    assert all(row["seed"] == seeds[row["task_id"], row["trial"]] for row in rows(folder))
    assert len(set(seeds.values())) == 8


def test_a_trial_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(
    folder: Path, gateway: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run(command("--gateway", gateway.url, "--out", "whole")) == 0
    monkeypatch.setenv("WAIT_FOR", str(folder / "go"))
    monkeypatch.setenv("PYTHONPATH", SRC)
    given = command("--gateway", gateway.url, "--jobs", "2")
    trial = subprocess.Popen([sys.executable, "-m", "turnout", *given])
    until = time.monotonic() + 60
    # Two arms wait in the middle of a task, so that both jobs are busy.
    while len(waiting := list(folder.glob("go.*"))) < 2:
        assert time.monotonic() < until
        assert trial.poll() is None
        time.sleep(0.02)
    pids = [int(path.read_text()) for path in waiting]
    trial.kill()
    trial.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.02)
    journal = folder / "trial" / "journal.jsonl"
    before = journal.read_bytes()
    journal.write_bytes(before + b'{"line":"finished","session":"tri')
    (folder / "go").touch()
    capsys.readouterr()
    assert run([*given[:1], "--json", *given[1:]]) == 0
    found = told(capsys)
    assert (found["over"], found["given_up"]) == (12, 2)
    assert found["given_up_usd"] > 0
    assert journal.read_bytes().startswith(before)
    finished = [json.loads(line)["session"] for line in journal.read_text().splitlines() if '"finished"' in line[:30]]
    assert len(finished) == len(set(finished)) == 12
    assert [lasting(row) for row in rows(folder)] == [lasting(row) for row in rows(folder, "whole")]
    # All is done, so nothing is run again.
    turns = len(gateway.turns())
    assert run(given) == 0
    assert len(gateway.turns()) == turns


def test_a_trial_starts_a_gateway_of_its_own_and_reads_outcomes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PYTHONPATH", SRC)
    monkeypatch.setenv("OUTCOME", "1")
    script(folder, "replies.jsonl", *SCRIPT)
    (folder / "turnout.toml").write_text(CONFIG + '[ledger]\nurl = "sqlite:///elsewhere.db"\n')
    assert run(command("--success", "outcome", "--jobs", "4", "--json")) == 0
    found = told(capsys)
    assert [(arm["arm"], arm["succeeded"], arm["known"]) for arm in found["arms"][:2]] == [
        ("capable", 2, 4),
        ("efficient", 2, 4),
    ]
    assert [arm["irreversible_errors"] for arm in found["arms"]] == [1, 1, 1]
    assert all(
        (row["rollbacks"], row["irreversible_errors"]) == (1, 1) for row in rows(folder) if row["task_id"] == "HARD-0"
    )
    assert not (folder / "elsewhere.db").exists()
    ledger = Ledger.read(f"sqlite:///{folder / 'trial' / 'ledger.db'}")
    assert len(ledger.turns(limit=100).turns) == 12
    ledger.close()


def test_each_run_works_in_a_copy_of_its_own_and_the_check_looks_at_it(
    folder: Path, gateway: Running, capsys: pytest.CaptureFixture[str]
):
    (folder / "tasks.jsonl").write_text('{"id": 1, "prompt": "SAFE-0"}\n{"id": 2, "prompt": "HARD-0"}\n')
    check = "test $(ls | wc -l) = 1 && grep -q works answer.txt"
    assert run(command("--gateway", gateway.url, "--check", check, "--keep")) == 0
    assert list((folder / "template").iterdir()) == []
    assert {row["check_code"] for row in rows(folder)} == {0, 1}
    assert all(row["success"] == (row["check_code"] == 0) for row in rows(folder))
    assert len(list((folder / "trial" / "work").glob("*/answer.txt"))) == 6


def changed_conditions(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each makes one thing different, and says what is to be named."""
    yield "timeout_s: 1800.0 became 60.0", ["--timeout", "60"]
    yield "seed: 0 became 1", ["--seed", "1"]
    (folder / "agent.py").write_text(AGENT + "\n")
    yield "files {here}/agent.py", []
    (folder / "agent.py").write_text(AGENT)
    (folder / "tasks.jsonl").write_text("".join(json.dumps({"id": id, "prompt": id + "!"}) + "\n" for id in TASKS))
    yield "-0: its fields", []


def test_changed_conditions_are_refused_by_name_and_reported_when_accepted(
    folder: Path, gateway: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    halted = command("--gateway", gateway.url, "--max-cost-usd", "0.0002", "--json")
    assert run(halted) == exits.FOUND
    found = told(capsys)
    assert "cost limit" in found["halted"]
    assert 0 < found["over"] < 12
    for said, options in changed_conditions(folder):
        assert run(command("--gateway", gateway.url, *options)) == exits.USAGE
        error = capsys.readouterr().err
        assert said in error
        assert "--accept-differences" in error
    (folder / "tasks.jsonl").write_text("".join(json.dumps({"id": id, "prompt": id}) + "\n" for id in TASKS))
    monkeypatch.setenv("MODE", "other")
    assert run(command("--gateway", gateway.url)) == exits.USAGE
    assert "environment MODE: is new" in capsys.readouterr().err
    assert run(command("--gateway", gateway.url, "--accept-differences", "--json")) == 0
    found = told(capsys)
    # Of the unit in the middle of which the first start halted, one arm ran under other conditions.
    assert found["differences"] == {"environment MODE: is new": 1}
    assert found["over"] == 12


def test_at_the_time_out_a_run_ends_and_has_failed(
    folder: Path, gateway: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("WAIT_FOR", str(folder / "never"))
    (folder / "tasks.jsonl").write_text('{"id": "HARD-0", "prompt": "HARD-0"}\n')
    given = command("--gateway", gateway.url, "--timeout", "1", "--jobs", "3", "--json")
    assert run(given) == 0
    assert [arm["timed_out"] for arm in told(capsys)["arms"]] == [1, 1, 1]
    assert all((row["success"], row["timed_out"], row["exit_code"]) == (False, True, -15) for row in rows(folder))
    for path in folder.glob("never.*"):
        assert not Path(f"/proc/{path.read_text()}").exists()


def test_ctrl_c_ends_the_runs_and_keeps_what_was_done(folder: Path, gateway: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAIT_FOR", str(folder / "never"))
    monkeypatch.setenv("PYTHONPATH", SRC)
    given = command("--gateway", gateway.url)
    trial = subprocess.Popen([sys.executable, "-m", "turnout", *given], stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(folder.glob("never.*")):
        assert time.monotonic() < until
        time.sleep(0.02)
    trial.send_signal(signal.SIGINT)
    said, _ = trial.communicate(timeout=60)
    assert trial.returncode == exits.INTERRUPTED
    assert "the same command goes on from here" in said
    assert all(not Path(f"/proc/{path.read_text()}").exists() for path in folder.glob("never.*"))
    journal = (folder / "trial" / "journal.jsonl").read_text()
    assert len(rows(folder)) == journal.count('"line":"finished"')


def test_a_command_that_goes_past_the_gateway_or_its_arm_is_told_so(
    folder: Path, gateway: Running, capsys: pytest.CaptureFixture[str]
):
    arms = ["--arms", "capable,efficient", "--gateway", gateway.url, "--tasks", "2", "--json"]
    assert run(["trial", *arms, "--out", "past", "--", *PYTHON, "-c", "pass"]) == 0
    found = told(capsys)
    assert [arm["silent"] for arm in found["arms"]] == [2, 2]
    assert [arm["cost_usd"] for arm in found["arms"]] == [None, None]
    assert "must use OPENAI_BASE_URL" in " ".join(found["notes"])
    given = ["--arms", "capable", "--gateway", gateway.url, "--tasks", "1", "--json", "--out", "fail"]
    assert run(["trial", *given, "--", "false"]) == 0
    found = told(capsys)
    assert "no run succeeded; what they printed is in fail/logs" in found["notes"]
    assert found["next"] is None
    stubborn = AGENT.replace('os.environ["TURNOUT_ARM"]', '"capable"', 1)
    assert run(["trial", *arms, "--out", "stray", "--", *PYTHON, "-c", stubborn, "{id}"]) == 0
    found = told(capsys)
    assert [arm["strays"] for arm in found["arms"]] == [0, 2]
    assert "asked for another model than efficient" in " ".join(found["notes"])


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--arms", "capable", "--tasks", "1"], 2, "no COMMAND behind `--`"),
        (["--tasks", "1", "--", "true"], 2, "--arms names the routes"),
        (["--arms", "capable,capable", "--tasks", "1", "--", "true"], 2, "twice; `--trials 2`"),
        (["--arms", "capable,eficient", "--tasks", "1", "--", "true"], 4, "unknown route `eficient`; did you mean"),
        (["--arms", "capable", "--", "true"], 2, "--tasks says which"),
        (["--arms", "capable", "--tasks", "1", "--", "nothing-of-this-name"], 4, "there is no such program"),
        (["--arms", "capable", "--tasks", "1", "--workdir", "gone", "--", "true"], 4, "--workdir gone: no such folder"),
        (["--arms", "capable", "--tasks", "1", "--workdir", "template", "--", "cat", "agent.py"], 2, "{here}/agent.py"),
        (["--arms", "capable", "--tasks", "1", "--success", "check", "--", "true"], 2, "belong together"),
        (
            ["--arms", "capable", "--tasks", "1", "--success", "exits", "--", "true"],
            2,
            "expected exit, check or outcome",
        ),
        (
            ["--arms", "capable", "--tasks", "1", "--success", "outcome", "--", "true"],
            2,
            "name its ledger with --ledger",
        ),
    ],
)
def test_bad_input_is_told_with_what_to_do(
    folder: Path, gateway: Running, capsys: pytest.CaptureFixture[str], given: list[str], code: int, said: str
):
    split = given.index("--") if "--" in given else len(given)
    assert run(["trial", *given[:split], "--gateway", gateway.url, *given[split:]]) == code
    assert said in capsys.readouterr().err
    assert not (folder / "trial").exists()


def test_a_trial_without_a_configuration_says_how_to_get_one(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(command()) == exits.USAGE
    assert "`turnout init`" in capsys.readouterr().err


def test_outcomes_of_a_running_gateway_are_read_from_its_ledger(
    folder: Path, gateway: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OUTCOME", "1")
    (folder / "tasks.jsonl").write_text('{"id": "SAFE-0", "prompt": "SAFE-0"}\n')
    given = command("--gateway", gateway.url, "--ledger", gateway.ledger_url, "--success", "outcome", "--json")
    assert run(given) == 0
    assert [row["success"] for row in rows(folder)] == [True, True, True]
    # Whoever looks later tells of damage: the newest word counts the next time the trial is summed up.
    ledger = Ledger.read(gateway.ledger_url)
    ledger.add_outcome(Outcome(session=rows(folder)[0]["session"], severe_failure=True))
    ledger.close()
    capsys.readouterr()
    assert run(given) == 0
    assert [row["success"] for row in rows(folder)] == [False, True, True]
    assert [row["severe_failures"] for row in rows(folder)] == [1, 0, 0]
