"""What calls state: plans that agents keep in their planning tools, read by structure (lists of steps with a status, or boxes
to tick), and command lines."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import ToolCall
from turnout.signals.calls.tools import read_call

STEPS_AT_MOST = 64
_LISTS = ("todos", "plan", "task_list", "tasks", "todoList", "todo_list", "items", "steps")
_TEXTS = ("content", "step", "title", "description", "text", "task", "subject", "name")
_THOUGHTS = ("explanation", "thought", "thinking")
_DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "finished", "skipped", "deleted"})
_BEGUN = frozenset({"in_progress", "in-progress", "inprogress", "active", "doing", "started"})
_BOX = re.compile(r"^\s*(?:[-*]|\d+[.)])?\s*\[([ xX~>/-]?)\]\s+(.+)$", re.MULTILINE)
"""A step as a box to tick: empty, ticked, or begun."""


class Step(Struct, frozen=True):
    """A step of a plan; `begun`: it is the one in progress, `done`: it is over."""

    text: str
    begun: bool = False
    done: bool = False


class Plan(Struct, frozen=True):
    """What a call of a planning tool states: steps, in order, and a thought beside or instead of them."""

    steps: tuple[Step, ...] = ()
    thought: str = ""

    @property
    def open(self) -> tuple[Step, ...]:
        """The steps that are not over."""
        return tuple(step for step in self.steps if not step.done)


def plan_of(call: ToolCall) -> Plan | None:
    """The plan that a call states; None when it is no call of a planning tool, or states nothing that is read here."""
    if read_call(call.name, call.arguments, call.namespace).kind != "plan":
        return None
    given = _given(call)
    if not isinstance(given, dict):
        given = {"todos": given}
    steps: tuple[Step, ...] = ()
    for key in _LISTS:
        steps = steps or _steps(given.get(key))
    thought = next((text for key in _THOUGHTS if isinstance(text := given.get(key), str) and text.strip()), "")
    return Plan(steps, thought) if steps or thought else None


def command_text(call: ToolCall) -> str:
    """The command line that a call asks for; "" for a call that has none."""
    given = _given(call)
    command = next((given[key] for key in ("command", "cmd") if key in given), "") if isinstance(given, dict) else ""
    if isinstance(command, list):
        command = " ".join(word for word in command if isinstance(word, str))
    return command if isinstance(command, str) else ""


def _given(call: ToolCall) -> Any:
    """The arguments of a call, decoded; as text where they are no JSON."""
    try:
        return msgspec.json.decode(call.arguments) if call.arguments else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return call.arguments


def _steps(value: Any) -> tuple[Step, ...]:
    if isinstance(value, str):
        boxes = _BOX.findall(value[:20_000])
        return tuple(
            Step(text.strip(), box in ("-", "~", ">", "/") and bool(box), box in ("x", "X")) for box, text in boxes
        )
    if not isinstance(value, list):
        return ()
    return tuple(step for one in value[:STEPS_AT_MOST] if (step := _step(one)) is not None)


def _step(value: Any) -> Step | None:
    if not isinstance(value, dict):
        return None
    status = value.get("status", value.get("state"))
    text = next((text for key in _TEXTS if isinstance(text := value.get(key), str) and text.strip()), "")
    if not text:
        return None
    if isinstance(value.get("completed", value.get("done")), bool) and status is None:
        return Step(text, False, bool(value.get("completed", value.get("done"))))
    said = status.lower().replace(" ", "_") if isinstance(status, str) else ""
    return Step(text, said in _BEGUN, said in _DONE)
