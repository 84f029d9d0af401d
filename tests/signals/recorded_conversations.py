"""Recorded sessions as conversations that any format can carry."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from tests.recorded import rows

from turnout.conversation import Conversation, Message, Text, ToolCall, ToolResult

FILES = (
    "sessions_coding_agents",
    "traj_ljoukov_agent_bench",
    "traj_miniswe_gemini3pro_swebench_verified",
    "traj_miniswe_sonnet4_terminal_bench",
    "traj_sweagent_lm32b_swebench_verified",
    "traj_taubench_gpt4o_airline",
)


def recorded(per_file: int, seed: int) -> Iterator[tuple[str, Conversation]]:
    """Conversations with a name each: of every file all, or `per_file` drawn at random."""
    draw = random.Random(seed)
    for name in FILES:
        found = list(enumerate(rows(f"traces/{name}.jsonl.gz")))
        for at, row in draw.sample(found, per_file) if len(found) > per_file else found:
            yield f"{name}:{at}", conversation(row["messages"])


def conversation(messages: list[dict[str, Any]]) -> Conversation:
    """The conversation of recorded messages. What a recorder kept beside the wire (return codes) is left out; a result whose
    call the recorder lost gets one, since two formats know no result without a call."""
    made: list[Message] = []
    called: set[str] = set()
    for index, one in enumerate(messages):
        content = one.get("content")
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode() if content else ""
        if one["role"] == "tool":
            name, call_id = one.get("name") or "unknown", one.get("tool_call_id") or f"lost_{index}"
            if call_id not in called:
                called.add(call_id)
                made.append(Message("assistant", (ToolCall(call_id, "unknown" if name == "?" else name, "{}"),)))
            made.append(Message("tool", (ToolResult(call_id, (Text(text),), is_error=one.get("is_error")),)))
            continue
        parts: list[Any] = [Text(text)] if text.strip() else []
        for call in one.get("tool_calls") or []:
            called.add(call["id"])
            parts.append(ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"] or "{}"))
        if parts:
            made.append(Message(one["role"], tuple(parts)))
    return Conversation(tuple(made))
