"""`turnout launch`: the agent's environment, its exit code, and what is left alone."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.running import running

from turnout.cli import exits, gateways
from turnout.cli.app import run
from turnout.cli.init import PRESETS
from turnout.cli.serve import announce
from turnout.gateway.config import load

AGENT = """\
#!{python}
import json, os, pathlib, sys
home = os.environ.get("CODEX_HOME")
seen = {{"argv": sys.argv[1:], "env": dict(os.environ), "files": {{}}}}
if home:
    seen["home"] = home
    seen["files"] = {{p.name: p.read_text() for p in pathlib.Path(home).iterdir() if p.is_file()}}
pathlib.Path({report!r}).write_text(json.dumps(seen))
sys.exit(7)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A gateway with the routes coder and background."""
    folder = tmp_path / "gateway"
    folder.mkdir()
    (folder / "demo-replies.jsonl").write_bytes((PRESETS / "demo-replies.jsonl").read_bytes())
    with running((PRESETS / "demo.toml").read_text(), folder) as gateway:
        yield gateway.url


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program that stands for the agents reports what it was given."""
    report = tmp_path / "seen.json"
    for name in ("claude", "codex"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(AGENT.format(python=sys.executable, report=str(report)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))  # for a gateway in a process of its own
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "own-codex"))
    (tmp_path / "own-codex").mkdir()
    (tmp_path / "own-codex" / "AGENTS.md").write_text("be brief")
    (tmp_path / "own-codex" / "auth.json").write_text("{}")
    (tmp_path / "own-codex" / "config.toml").write_text('model = "mine"')
    monkeypatch.chdir(tmp_path)
    return report


def test_claude_is_pointed_at_the_gateway(url: str, seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the user's own")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert run(["launch", "claude", "--url", url + "/v1/", "--", "-p", "fix it"]) == 7
    told = json.loads(seen.read_text())
    env = told["env"]
    assert told["argv"] == ["-p", "fix it"]
    assert env["ANTHROPIC_BASE_URL"] == url
    models = (
        "ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
    )
    assert {env[name] for name in models} == {"coder"}
    assert env["ANTHROPIC_AUTH_TOKEN"]
    assert "ANTHROPIC_API_KEY" not in env
    assert "CLAUDE_CODE_USE_BEDROCK" not in env
    assert os.environ["ANTHROPIC_API_KEY"] == "the user's own"


def test_claude_gets_the_routes_and_the_key_that_are_named(
    url: str, seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "tk")
    given = ["--url", url, "--route", "background", "--small-route", "coder", "--key-env", "TEAM_KEY"]
    assert run(["launch", "claude", *given]) == 7
    env = json.loads(seen.read_text())["env"]
    assert (env["ANTHROPIC_MODEL"], env["ANTHROPIC_SMALL_FAST_MODEL"]) == ("background", "coder")
    assert env["ANTHROPIC_AUTH_TOKEN"] == "tk"


def test_claude_may_keep_its_login(url: str, seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the user's own")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    assert run(["launch", "claude", "--url", url, "--keep-login"]) == 7
    env = json.loads(seen.read_text())["env"]
    assert env["ANTHROPIC_API_KEY"] == "the user's own"
    assert "ANTHROPIC_AUTH_TOKEN" not in env


def test_codex_gets_a_home_of_its_own_that_is_gone_afterwards(url: str, seen: Path, tmp_path: Path) -> None:
    assert run(["launch", "codex", "--url", url, "--", "exec", "hi"]) == 7
    told = json.loads(seen.read_text())
    config = tomllib.loads(told["files"]["config.toml"])
    provider = config["model_providers"][config["model_provider"]]
    assert config["model"] == "coder"
    assert provider["base_url"] == f"{url}/v1"
    assert (provider["wire_api"], provider["supports_websockets"]) == ("responses", False)
    assert told["env"][provider["env_key"]]
    assert told["files"]["AGENTS.md"] == "be brief"
    assert "auth.json" not in told["files"]
    assert not Path(told["home"]).exists()
    assert (tmp_path / "own-codex" / "config.toml").read_text() == 'model = "mine"'
    assert (tmp_path / "own-codex" / "AGENTS.md").read_text() == "be brief"


def test_the_smallest_window_behind_the_route_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    assert run(["init", str(file), "--preset", "demo"]) == 0
    file.write_text(file.read_text().replace("200_000", "150_000", 1))
    capsys.readouterr()
    assert run(["launch", "claude", "--config", str(file), "--print", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "150000"
    assert run(["launch", "codex", "--config", str(file), "--print", "--json"]) == 0
    assert tomllib.loads(json.loads(capsys.readouterr().out)["config"])["model_context_window"] == 150_000


def test_print_shows_settings_and_names_the_key_only(
    url: str, seen: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "hush")
    for agent in ("claude", "codex"):
        assert run(["launch", agent, "--url", url, "--route", "coder", "--key-env", "TEAM_KEY", "--print"]) == 0
        out = capsys.readouterr().out
        assert url in out
        assert '"${TEAM_KEY}"' in out
        assert "hush" not in out
        assert run(["launch", agent, "--url", url, "--print", "--json", "--route", "coder"]) == 0
        assert url in json.dumps(json.loads(capsys.readouterr().out))
    assert not seen.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--route", "codr"], exits.NOT_FOUND, "did you mean `coder`?"),
        (["--small-route", "none"], exits.NOT_FOUND, "unknown route `none`"),
        (["--config", "x.toml"], exits.USAGE, "exclude each other"),
        (["--key-env", "NO_SUCH_VARIABLE"], exits.USAGE, "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(
    arguments: list[str],
    code: int,
    says: str,
    url: str,
    seen: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["launch", "claude", "--url", url, *arguments]) == code
    assert says in capsys.readouterr().err
    assert not seen.exists()


def test_without_a_gateway_the_next_step_is_named(seen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "claude", "--url", "http://127.0.0.1:9"]) == exits.UPSTREAM
    assert "turnout serve" in capsys.readouterr().err
    assert run(["launch", "claude", "--url", "localhost:4000"]) == exits.USAGE
    assert "not a URL" in capsys.readouterr().err


def test_an_agent_that_is_not_installed_is_named_with_its_install(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert run(["launch", "codex", "--url", url]) == exits.NOT_FOUND
    assert "npm install -g @openai/codex" in capsys.readouterr().err


def test_a_gateway_that_does_not_start_is_explained(
    seen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.toml").write_text("[routes]\n")
    assert run(["launch", "claude", "--config", str(tmp_path / "bad.toml")]) == exits.USAGE
    assert "no routes" in capsys.readouterr().err
    assert not seen.exists()


CALLING = """\
#!{python}
import json, os, sys, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
body = {{"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 50, "messages": [{{"role": "user", "content": "hi"}}]}}
headers = {{"authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"], "content-type": "application/json"}}
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
    open({report!r}, "wb").write(answer.read())
"""


def test_a_gateway_is_started_for_the_agent_and_its_turns_are_explained(
    seen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin" / "claude"
    program.write_text(CALLING.format(python=sys.executable, report=str(seen)))
    assert run(["init", "turnout.toml", "--preset", "demo"]) == 0
    assert run(["launch", "claude", "--config", "turnout.toml"]) == 0, capsys.readouterr().err
    assert "efficient model of the demo" in json.loads(seen.read_text())["content"][0]["text"]
    capsys.readouterr()
    assert run(["turns", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    turn = json.loads(line)
    assert (turn["route"], turn["target"], turn["format"]) == ("coder", "efficient", "anthropic_messages")
    assert run(["why", turn["id"], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(option["target"], option["served"]) for option in told["prices"]] == [
        ("efficient", True),
        ("capable", False),
    ]
    assert told["prices"][0]["as_cached"] == pytest.approx(told["cost_usd"])


def test_serve_says_where_to_watch(capsys: pytest.CaptureFixture[str]) -> None:
    announce(load(PRESETS / "demo.toml", None), "127.0.0.1", 4321, as_json=False)
    assert "http://127.0.0.1:4321/dashboard" in capsys.readouterr().err


def test_serve_says_when_its_port_is_taken(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gateway" / "turnout.toml"
    assert run(["serve", str(file), "--port", url.rsplit(":", 1)[1]]) == exits.USAGE
    assert "choose another --port" in capsys.readouterr().err


WAITING = """\
#!{python}
import json, os, pathlib, time
report = pathlib.Path({report!r})
report.with_suffix(".new").write_text(json.dumps({{"url": os.environ["ANTHROPIC_BASE_URL"], "pid": os.getpid()}}))
report.with_suffix(".new").rename(report)
time.sleep(60)
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_agent_and_gateway_end_when_asked_or_when_the_terminal_closes(
    end: signal.Signals, seen: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "claude").write_text(WAITING.format(python=sys.executable, report=str(seen)))
    assert run(["init", "turnout.toml", "--preset", "demo"]) == 0
    command = [sys.executable, "-m", "turnout", "launch", "claude", "--config", "turnout.toml"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while not seen.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        told = json.loads(seen.read_text())
        assert gateways.alive(told["url"])
        process.send_signal(end)
        process.wait(30)
    assert not gateways.alive(told["url"])
    with pytest.raises(ProcessLookupError):
        os.kill(told["pid"], 0)
