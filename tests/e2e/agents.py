"""The real Claude Code and Codex, run without a terminal in an empty folder of their own."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.recorded import ROOT

NAMES = ("claude", "codex")
DIALECT = {"claude": "anthropic_messages", "codex": "openai_responses"}
RUNG = {"claude": "claude_code", "codex": "codex"}
PROGRAM = {"claude": "claude-code", "codex": "codex"}


def programs() -> Path | None:
    """The folder of the agents' programs: of `TURNOUT_AGENTS_DIR` (a `node_modules`), else of `.agents` in the repository."""
    named = os.environ.get("TURNOUT_AGENTS_DIR")
    modules = Path(named) if named else ROOT / ".agents" / "node_modules"
    found = modules / ".bin"
    return found if all((found / name).exists() for name in NAMES) else None


needs_agents = pytest.mark.skipif(
    programs() is None and os.environ.get("CI") != "true",
    reason="Claude Code and Codex are not installed (CI=true scripts/check brings them; or set TURNOUT_AGENTS_DIR)",
)


class Ran(Struct, frozen=True):
    """How a run of an agent ended. `said`: its last words."""

    code: int
    said: str
    out: str
    err: str


def clean(folder: Path) -> dict[str, str]:
    """An environment without the settings of whoever runs the tests, at home in `folder`."""
    bin_folder = programs()
    assert bin_folder is not None, "npm did not bring the agents"
    kept = {name: os.environ[name] for name in ("LANG", "TERM", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def command(agent: str, model: str = "") -> list[str]:
    """The agent's command line for a task it does without asking."""
    if agent == "claude":
        named = ["--model", model] if model else []
        return ["claude", "-p", "Run echo", *named, "--allowedTools", "Bash", "--output-format", "json"]
    skip = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["codex", "exec", *skip, "--json", "Run echo"]


def run(agent: str, url: str, route: str, folder: Path, *, within_s: float = 120) -> Ran:
    """Let an agent do its task on a gateway."""
    folder.mkdir(parents=True, exist_ok=True)
    env = clean(folder)
    if agent == "claude":
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-dummy"}
    else:
        home = folder / ".codex"
        home.mkdir()
        (home / "config.toml").write_text(
            f'model = "{route}"\nmodel_provider = "gw"\n[model_providers.gw]\nname = "gw"\nbase_url = "{url}/v1"\n'
            'env_key = "GW_KEY"\nwire_api = "responses"\nsupports_websockets = false\n'
        )
        env |= {"CODEX_HOME": str(home), "GW_KEY": "dummy"}
    return ended(agent, command(agent, route), env, folder, within_s)


def ended(agent: str, argv: list[str], env: dict[str, str], folder: Path, within_s: float) -> Ran:
    """Run a command to its end in `folder`."""
    program = shutil.which(argv[0], path=env["PATH"]) or argv[0]
    done = subprocess.run(
        [program, *argv[1:]],
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    return Ran(done.returncode, last_words(agent, done.stdout), done.stdout, done.stderr)


def last_words(agent: str, out: str) -> str:
    """What the agent said last, from its JSON output."""
    lines = [line for line in out.splitlines() if line.startswith("{")]
    events: list[Any] = [json.loads(line) for line in lines]
    if agent == "claude":
        return str(events[-1].get("result", "")) if events else ""
    messages = [e["item"]["text"] for e in events if e.get("item", {}).get("type") == "agent_message"]
    return str(messages[-1]) if messages else ""
