"""A recorded session: what a user asks, what a model says and calls, and what the tools return."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from turnout.upstream.scripted import Line, ScriptedCall

SESSIONS = Path(__file__).with_name("sessions")
CONFIG = Path(__file__).with_name("turnout.toml")

LOST = (
    "I am a scripted model: I can only replay the recorded sessions of `turnout demo`, and this is not one of them. The turn was "
    "routed and recorded all the same; `turnout why last` explains it."
)
"""What the scripted models answer to anything else."""


class ToolSpec(Struct, frozen=True):
    """A tool that is offered. `parameters`: JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Result(Struct, frozen=True):
    """What a tool returned. `error`: it is flagged as failed, where the client's format has such a flag."""

    text: str
    error: bool = False


class Step(Struct, frozen=True):
    """One turn. `user`: what the user says before it. `say`, `calls`: the model's reply. `results`: of its calls, in order."""

    say: str
    user: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    results: tuple[Result, ...] = ()


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """A session and the client that drives it. Raises ValueError when it does not hang together."""

    client: Literal["anthropic", "openai_chat", "openai_responses"]
    title: str
    system: str
    tools: tuple[ToolSpec, ...]
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        answered = True
        for number, step in enumerate(self.steps):
            if len(step.calls) != len(step.results):
                raise ValueError(f"step {number}: {len(step.calls)} calls, {len(step.results)} results")
            if answered == (not step.user):
                raise ValueError(f"step {number}: the user speaks when, and only when, no call is open")
            answered = not step.calls


def load(folder: Path = SESSIONS) -> list[Session]:
    """The recorded sessions, in the order of their file names."""
    return [msgspec.convert(tomllib.loads(path.read_text("utf-8")), Session) for path in sorted(folder.glob("*.toml"))]


def script(sessions: Iterable[Session]) -> list[Line]:
    """Lines that play the sessions: a reply is given after as many turns, to the same newest text, as in the recording."""
    lines = [
        Line(
            turn=number,
            contains=step.user or session.steps[number - 1].results[-1].text,
            text=step.say,
            calls=step.calls,
        )
        for session in sessions
        for number, step in enumerate(session.steps)
    ]
    return [*lines, Line(text=LOST)]


def lay_out(folder: Path, sessions: Iterable[Session]) -> Path:
    """Write the demo's configuration and script into `folder`, where its ledger is kept too; gives the file to serve."""
    encoder = msgspec.json.Encoder()
    (folder / "script.jsonl").write_bytes(b"".join(encoder.encode(line) + b"\n" for line in script(sessions)))
    ledger = msgspec.json.encode(f"sqlite:///{folder / 'turnout.db'}").decode()
    path = folder / "turnout.toml"
    path.write_text(f"{CONFIG.read_text('utf-8')}\n[ledger]\nurl = {ledger}\n", "utf-8")
    return path
