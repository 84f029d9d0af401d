"""The real Claude Code and Codex, started by `turnout launch` on scripted models: no account, no network."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from turnout.cli.app import run

ARGUMENTS = {
    "claude": ["-p", "Say hello.", "--output-format", "json"],
    "codex": ["exec", "--skip-git-repo-check", "Say hello."],
}


@pytest.mark.agents
@pytest.mark.parametrize("agent", ARGUMENTS)
def test_the_real_agent_answers_through_a_gateway_of_its_own(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not on the PATH")
    monkeypatch.chdir(tmp_path)
    assert run(["init", "turnout.toml", "--preset", "demo"]) == 0
    home = tmp_path / "home"
    home.mkdir()
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-m", "turnout", "launch", agent, "--config", "turnout.toml", "--", *ARGUMENTS[agent]],
        env={**os.environ, "HOME": str(home), "PYTHONPATH": source, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "efficient model of the demo" in done.stdout
    capsys.readouterr()
    assert run(["turns", "--json"]) == 0
    turns = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {turn["agent_program"] for turn in turns} == {"claude-code" if agent == "claude" else "codex"}
    assert all(turn.get("ended", "ok") == "ok" for turn in turns)
    assert {turn["rung"] for turn in turns} == {"claude_code" if agent == "claude" else "codex"}
