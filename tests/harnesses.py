"""How agents' harnesses print what a shell command did: the same run, told by each of them."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.story import Story


class Told(NamedTuple):
    """A call of a harness's shell tool and its result."""

    tool: str
    arguments: dict[str, Any]
    text: str
    is_error: bool | None = None


def claude_code(command: str, text: str, code: int) -> Told:
    return Told("Bash", {"command": command}, f"Exit code {code}\n{text}" if code else text, code != 0)


def codex(command: str, text: str, code: int) -> Told:
    head = f"Exit code: {code}\nWall time: 0.4 seconds\nOutput:\n"
    return Told("shell_command", {"command": command}, head + text)


def codex_unified(command: str, text: str, code: int) -> Told:
    head = f"Chunk ID: 1f3a\nWall time: 1.2 seconds\nProcess exited with code {code}\nOutput:\n"
    return Told("exec_command", {"cmd": command}, head + text)


def codex_json(command: str, text: str, code: int) -> Told:
    told = {"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.2}}
    return Told("shell", {"command": ["bash", "-lc", command]}, json.dumps(told))


def mini_swe_agent(command: str, text: str, code: int) -> Told:
    return Told("bash", {"command": command}, f"<returncode>{code}</returncode>\n<output>\n{text}\n</output>")


def openhands(command: str, text: str, code: int) -> Told:
    end = f"\n[The command completed with exit code {code}.]\n[Current working directory: /app]"
    return Told("execute_bash", {"command": command}, text + end)


def gemini_cli(command: str, text: str, code: int) -> Told:
    shown = f"Command: {command}\nDirectory: (root)\nOutput: {text or '(empty)'}\nError: (none)\nExit Code: {code}"
    return Told("run_shell_command", {"command": command}, f"{shown}\nSignal: 0\nBackground PIDs: (none)")


SHELLS: dict[str, Callable[[str, str, int], Told]] = {
    "claude_code": claude_code,
    "codex": codex,
    "codex_unified": codex_unified,
    "codex_json": codex_json,
    "mini_swe_agent": mini_swe_agent,
    "openhands": openhands,
    "gemini_cli": gemini_cli,
}
"""Harnesses whose results tell the exit code."""


def run(story: Story, harness: str, command: str, text: str = "", code: int = 0) -> Story:
    """`command` run in `harness`, which printed `text` and left with `code`."""
    told = SHELLS[harness](command, text, code)
    return story.call(told.tool, told.arguments, told.text, told.is_error)
