"""What an importer finds in a file, in the order it is found: messages, replies of models, outcomes."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnout.conversation import Format, Usage
from turnout.ledger.outcome import Outcome


class Who(Struct, frozen=True):
    """Whose message it is. `program`: the harness. `format`: the wire format it speaks, "" where that is not known.
    `agent`: "" is the main one."""

    session: str
    agent: str = ""
    program: str = ""
    kind: Literal["main", "subagent", "background"] = "main"
    parent: str = ""
    format: Format | Literal[""] = ""


class Said(Struct, frozen=True):
    """A message that no model made, in chat form: `role`, `content`; of tools also `tool_call_id`, `is_error`, `returncode`."""

    who: Who
    message: dict[str, Any]


class Replied(Struct, frozen=True):
    """A model's message in chat form: a turn.

    `key`: names it within its lane. `unique`: names it in the whole world, "" = nothing does; a copy in another session is the
    same turn then. `at`: when it was asked for, Unix seconds, None = not recorded. `total_s`: how long it took.
    `cost_usd`: as recorded, None = to be priced from `usage`. `error`: the fault it ended in, "" none.
    """

    who: Who
    message: dict[str, Any]
    key: str
    at: float | None = None
    total_s: float = 0.0
    model: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    error: str = ""
    unique: str = ""


class Ended(Struct, frozen=True):
    """Nothing more comes of this session."""

    session: str


class Told(Struct, frozen=True):
    """An outcome. `key`: names it for good, whatever file it comes from. `at`: Unix seconds, None = not recorded."""

    key: str
    outcome: Outcome
    at: float | None = None


Event: TypeAlias = Said | Replied | Ended | Told


def assistant(text: str, calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A model's message in chat form."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return message


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call in chat form. `arguments`: JSON text, or the raw input of a free-form tool."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(
    call_id: str, content: str, *, name: str = "", is_error: bool | None = None, returncode: int | None = None
) -> dict[str, Any]:
    """A tool result in chat form, with what recorders know beside it."""
    message: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": content}
    if name:
        message["name"] = name
    if is_error is not None:
        message["is_error"] = is_error
    if returncode is not None:
        message["returncode"] = returncode
    return message


def user(text: str) -> dict[str, Any]:
    """A user's message in chat form."""
    return {"role": "user", "content": text}
