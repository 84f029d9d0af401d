"""The paths that drop reports name are those of the source."""

import pytest

from turnout.conversation import Message, Reasoning, Refusal, Text, ToolCall, ToolResult
from turnout.wire.paths import inner_path, part_path

MIXED = Message("assistant", (Reasoning("r"), Text("a"), Text("b"), ToolCall("1", "x"), ToolCall("2", "y")))


@pytest.mark.parametrize(
    ("source", "message", "part", "path"),
    [
        ("openai_chat", MIXED, 0, "messages[3].reasoning_content"),
        ("openai_chat", MIXED, 1, "messages[3].content[0]"),
        ("openai_chat", MIXED, 2, "messages[3].content[1]"),
        ("openai_chat", MIXED, 4, "messages[3].tool_calls[1]"),
        ("openai_chat", Message("assistant", (Reasoning(details=[{}]),)), 0, "messages[3].reasoning_details"),
        ("openai_chat", Message("assistant", (Text("a"),), flat=True), 0, "messages[3].content"),
        ("openai_chat", Message("assistant", (Refusal("a"),)), 0, "messages[3].refusal"),
        ("openai_chat", Message("tool", (ToolResult("1"),)), 0, "messages[3]"),
        ("anthropic_messages", MIXED, 3, "messages[3].content[3]"),
        ("anthropic_messages", Message("user", (Text("a"),), flat=True), 0, "messages[3].content"),
        ("openai_responses", Message("assistant", (ToolCall("1", "x"),)), 0, "input[3]"),
        ("openai_responses", Message("assistant", (Reasoning("r"),)), 0, "input[3]"),
        ("openai_responses", Message("user", (Text("a"), Text("b"))), 1, "input[3].content[1]"),
        ("openai_responses", Message("user", (Text("a"),), flat=True), 0, "input[3].content"),
        (None, MIXED, 1, "messages[3].content[1]"),
    ],
)
def test_a_part_is_named_as_its_source_has_it(source, message, part, path):
    assert part_path(source, message, 3, part) == path


def test_a_part_of_a_result_is_named_as_its_source_has_it():
    flat, listed = ToolResult("1", (Text("a"),)), ToolResult("1", (Text("a"),), text_only=False)
    assert inner_path("openai_responses", listed, "input[1]", 0) == "input[1].output[0]"
    assert inner_path("openai_responses", flat, "input[1]", 0) == "input[1].output"
    assert inner_path("openai_chat", listed, "messages[1]", 0) == "messages[1].content[0]"
    assert inner_path("anthropic_messages", flat, "messages[1].content[2]", 0) == "messages[1].content[2].content"
