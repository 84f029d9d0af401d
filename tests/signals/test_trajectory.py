"""Signals of whole conversations: depth, boundaries, counting, memory of what was seen."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.story import Story

from turnout.conversation import Conversation, Lazy, Message, Reasoning, Text, ToolCall, ToolResult
from turnout.signals import OBSERVED_AT_MOST, observe, real_user_text
from turnout.signals.memo import Memo


def test_depth_counts_steps_since_the_last_real_user_turn() -> None:
    story = Story().bash("ls", "a", 0).bash("pwd", "b", 0).say("Next task.")
    assert observe(story.conversation).depth == 0
    story.bash("ls", "a", 0)
    assert observe(story.conversation).depth == 1
    story.say("I see.", "assistant").bash("ls", "a", 0)
    assert observe(story.conversation).depth == 2


def test_a_turn_is_one_step_for_each_call_however_its_units_stand() -> None:
    items = (
        Message("user", (Text("go"),)),
        Message("assistant", (Reasoning("hm"),)),
        Message("assistant", (Text("I look."),)),
        Message("assistant", (ToolCall("1", "shell", '{"command": ["ls"]}'),)),
        Message("assistant", (ToolCall("2", "shell", '{"command": ["pwd"]}'),)),
        Message("tool", (ToolResult("1", (Text("a"),)),)),
        Message("tool", (ToolResult("2", (Text("b"),)),)),
        Message("assistant", (Reasoning("hm"),)),
    )
    signals = observe(Conversation(items))
    assert (signals.depth, len(signals.observations), signals.results, signals.user_turn) == (2, 2, 2, False)
    told = observe(
        Conversation((*items, Message("assistant", (Text("There."),)), Message("user", (Text("[system]"),))))
    )
    assert told.depth == 3


def test_only_the_newest_results_are_kept_and_all_are_counted() -> None:
    story = Story()
    for i in range(OBSERVED_AT_MOST + 10):
        story.bash("ls", str(i), 0)
    signals = observe(story.conversation)
    assert len(signals.observations) == OBSERVED_AT_MOST
    assert signals.results == OBSERVED_AT_MOST + 10
    assert signals.observations[-1].message == len(story.messages) - 1


def test_an_empty_conversation_has_no_signals() -> None:
    signals = observe(Conversation(()))
    assert (signals.depth, signals.user_turn, signals.observations) == (0, False, ())


class Decoder:
    """Decodes small test messages and counts how many."""

    def __init__(self) -> None:
        self.decoded: list[int] = []

    def __call__(self, raw: Any, index: int) -> Message:
        self.decoded.append(index)
        one = msgspec.json.decode(bytes(raw))
        if one["role"] == "assistant":
            return Message("assistant", (ToolCall(one["id"], "bash", json.dumps({"command": one["command"]})),))
        if one["role"] == "tool":
            return Message("tool", (ToolResult(one["id"], (Text(one["content"]),)),))
        return Message("user", (Text(one["content"]),))

    def conversation(self, rows: list[dict[str, Any]]) -> Conversation:
        raw = [msgspec.Raw(msgspec.json.encode(r)) for r in rows]
        return Conversation(Lazy(raw, self), roles=tuple(r["role"] for r in rows), format="openai_chat")


def rows(count: int, salt: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"role": "user", "content": f"Do it {salt}."}]
    for i in range(count):
        made.append({"role": "assistant", "id": f"{salt}{i}", "command": f"cat {i}"})
        made.append({"role": "tool", "id": f"{salt}{i}", "content": f"{salt} {i}"})
    return made


def test_a_history_seen_before_is_not_decoded_again() -> None:
    first, second = Decoder(), Decoder()
    history = rows(20, "memo")
    before = observe(first.conversation(history))
    assert set(first.decoded) == set(range(41))
    longer = [
        *history,
        {"role": "assistant", "id": "new", "command": "pytest"},
        {"role": "tool", "id": "new", "content": "1 passed in 0.1s"},
    ]
    after = observe(second.conversation(longer))
    assert set(second.decoded) == {41, 42}
    assert after.observations[:-1] == before.observations
    assert after.observations[-1].tests_passed is True


def test_messages_before_the_last_user_turn_are_not_decoded() -> None:
    decoder = Decoder()
    history = [*rows(20, "tail"), {"role": "user", "content": "And now this, unseen before."}]
    signals = observe(decoder.conversation(history))
    assert decoder.decoded == [41]
    assert (signals.results, signals.depth) == (20, 0)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["ok", "fail", "edit", "test", "user", "reminder"]), max_size=12))
def test_memory_never_changes_an_answer(steps: list[str]) -> None:
    story = Story("Memory.")
    for step in steps:
        match step:
            case "ok":
                story.bash("ls", "a", 0)
            case "fail":
                story.bash("python x.py", "ValueError: x", 1)
            case "edit":
                story.call("Edit", {"file_path": "a"}, "The file a has been updated.")
            case "test":
                story.bash("pytest", "2 passed in 0.1s", 0)
            case "user":
                story.say("Go on.")
            case _:
                story.say("<system-reminder>x</system-reminder>")
    plain = observe(story.conversation)
    raw = [msgspec.Raw(msgspec.json.encode(m)) for m in story.messages]
    lazy = Conversation(Lazy(raw, lambda r, i: msgspec.json.decode(r, type=Message)), roles=story.conversation.roles)
    assert observe(lazy) == plain
    assert observe(lazy) == plain


def test_a_memo_is_bounded_and_keeps_what_is_used() -> None:
    memo: Memo[int] = Memo(8)
    for i in range(100):
        memo.put(i, i)
        assert memo.get(0) == 0 or i == 0
        assert len(memo) <= 8
    assert memo.get(50) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "hello"),
        ("<system-reminder>a</system-reminder>", None),
        ("<system-reminder>a</system-reminder>\n\nhello", "hello"),
        ("hello\n<system-reminder>a</system-reminder>", "hello"),
        ("<environment_context>\n<cwd>/</cwd>\n</environment_context>\n<user_instructions>x</user_instructions>", None),
        ("<div>is this html right?</div>", "<div>is this html right?</div>"),
        ("<user_query>\nfix it\n</user_query>", "fix it"),
        ("why does <system-reminder> appear?", "why does <system-reminder> appear?"),
        ("", None),
        ("<returncode>0</returncode>\n<output>x</output>", None),
    ],
)
def test_real_user_text(text: str, said: str | None) -> None:
    assert real_user_text(Message("user", (Text(text),))) == said
    assert real_user_text(Message("assistant", (Text(text),))) is None


def test_agents_without_tool_calls_are_read_by_their_texts() -> None:
    messages = (
        Message("user", (Text("Fix it."),)),
        Message("assistant", (Text("I run it.\n```bash\npytest -q\n```"),)),
        Message("user", (Text("<returncode>1</returncode>\n<output>\n1 failed in 0.1s\n</output>"),)),
    )
    signals = observe(Conversation(messages))
    assert (signals.depth, signals.user_turn) == (1, False)
    assert [(o.kind, o.error_kind) for o in signals.observations] == [("test", "test_failure")]
