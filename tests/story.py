"""Hand-built conversations for the tests of signals."""

import json
from typing import Any

from turnout.conversation import Conversation, Message, Text, ToolCall, ToolResult
from turnout.signals import Observation, observe


class Story:
    """A conversation that grows by calls and results."""

    def __init__(self, task: str = "Fix the bug.") -> None:
        self.messages: list[Message] = [Message("user", (Text(task),))]
        self.calls = 0

    def say(self, text: str, role: Any = "user") -> "Story":
        self.messages.append(Message(role, (Text(text),)))
        return self

    def call(self, tool: str, arguments: Any, text: str = "", is_error: bool | None = None, **extra: Any) -> "Story":
        self.calls += 1
        call_id = f"call_{self.calls}"
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self.messages.append(Message("assistant", (ToolCall(call_id, tool, raw),)))
        result = ToolResult(call_id, (Text(text),) if text else (), is_error=is_error, extra=extra)
        self.messages.append(Message("tool", (result,)))
        return self

    def bash(self, command: str, text: str = "", code: int | None = None, is_error: bool | None = None) -> "Story":
        shown = text if code is None else f"<returncode>{code}</returncode>\n<output>\n{text}\n</output>"
        return self.call("bash", {"command": command}, shown, is_error)

    @property
    def conversation(self) -> Conversation:
        return Conversation(tuple(self.messages))

    @property
    def seen(self) -> tuple[Observation, ...]:
        return observe(self.conversation).observations

    @property
    def last(self) -> Observation:
        return self.seen[-1]
