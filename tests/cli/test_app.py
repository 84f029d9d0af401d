"""The command line as a whole: help, exit codes, errors in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turnout.cli import exits
from turnout.cli.app import run
from turnout.errors import ConfigError, RouterError, UpstreamError

OPTIONS = {
    "init": ["--preset", "--force"],
    "check": ["--strict", "--show"],
    "serve": ["--host", "--port", "--log-level"],
    "launch": ["--config", "--url", "--route", "--small-route", "--key-env", "--print", "--"],
    "turns": ["--limit", "--route", "--session", "--ledger", "--url"],
    "why": ["--ledger", "--url", "--config"],
    "observe": ["FILE.jsonl", "--table"],
    "route": ["CONFIG", "ROUTE", "FILE.jsonl", "--table"],
    "prices show": ["--provider", "--base-url"],
    "prices update": [],
    "version": [],
}


def test_help_lists_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert {name.split()[0] for name in OPTIONS} <= set(out.split())
    for part in exits.LEGEND.split():
        assert part in out


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_every_command_mentions_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    for option in [*OPTIONS[command], "--json"]:
        assert option in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chek"], "check"),
        (["check", "--nope"], "--nope"),
        (["serve", "--port", "x"], "--port"),
        (["serve", "--port", "70000"], "--port"),
        (["launch"], "agent"),
        (["launch", "emacs"], "claude"),
        (["launch", "claude", "-p", "hi"], "No such option: -p; the agent's own arguments stand behind `--`"),
        (["init", "--preset", "x"], "Invalid value for '--preset': 'x' is not one of"),
        (["check", "a", "b"], "(b); `turnout check --help` shows the usage"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    error = capsys.readouterr().err
    assert says in error
    assert "--help" in error
    assert len(error.strip().splitlines()) == 1


def test_a_bare_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == exits.USAGE
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("bad", file="f", line=3, key="k"), exits.USAGE),
        (UpstreamError("timeout", "late"), exits.UPSTREAM),
        (exits.CommandError("gone", exits.NOT_FOUND, "look elsewhere"), exits.NOT_FOUND),
        (FileNotFoundError(2, "No such file or directory", "x.jsonl"), exits.USAGE),
        (ModuleNotFoundError("No module named 'psycopg'", name="psycopg"), exits.USAGE),
        (RouterError("odd"), exits.INTERNAL),
        (ZeroDivisionError("oops\nsecond line"), exits.INTERNAL),
    ],
)
def test_errors_have_an_exit_code_by_category(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.delenv("TURNOUT_DEBUG", raising=False)
    assert exits.ended(fail) == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert len(said.strip().splitlines()) == 1
    monkeypatch.setenv("TURNOUT_DEBUG", "1")
    assert exits.ended(fail) == code
    assert "Traceback" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from turnout.cli.app import run; run(['--help']);"
        "heavy = {'uvicorn', 'uvloop', 'starlette', 'sqlalchemy', 'alembic', 'rich.console', 'genai_prices', 'asyncio',"
        " 'anthropic', 'openai', 'urllib.request'} & set(sys.modules); print(sorted(heavy), file=sys.stderr)"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.stderr.strip() == "[]"


def test_version_as_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out.startswith("turnout ")
    assert run(["version", "--json"]) == 0
    assert '"turnout":' in capsys.readouterr().out
