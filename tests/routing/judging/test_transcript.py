"""What a judge is shown: the task and the newest steps, whatever the conversation's size and wire format."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.conversation import (
    FORMATS,
    Conversation,
    Format,
    Image,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from turnout.routing.judging import Excerpt, shortened, transcript
from turnout.signals import BUILT_IN, observe
from turnout.wire import CODECS
from turnout.wire.codec import Request

REPLY = Reply((Text("All done."), ToolCall("z", "edit", '{"path":"a.py"}')))


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def agent(*parts: Part) -> Message:
    return Message("assistant", parts)


def result(call: str, text: str, *, is_error: bool | None = None) -> Message:
    return Message("tool", (ToolResult(call, (Text(text),), is_error=is_error),))


def steps(count: int, said: str = "trying") -> tuple[Message, ...]:
    found: list[Message] = []
    for i in range(count):
        found.append(agent(Text(f"{said} {i}"), ToolCall(f"c{i}", "bash", f'{{"command":"run {i}"}}')))
        found.append(result(f"c{i}", f"output {i}"))
    return tuple(found)


def shown(conversation: Conversation, reply: Reply | None = REPLY, **excerpt: Any) -> str:
    return transcript(conversation, observe(conversation, BUILT_IN, ""), reply, Excerpt(**excerpt))


def test_task_and_steps_are_shown_in_order() -> None:
    conversation = Conversation((user("Fix the parser"), *steps(2)), system=(Text("Be brief."),))
    assert shown(conversation) == (
        "Turn 3 of the agent. Shown: the newest 5 of 6 messages.\n\n"
        "## Instructions of the agent\nBe brief.\n\n"
        "## Opening request of the user\nFix the parser\n\n"
        "## Newest steps, oldest first\n"
        'agent: trying 0\nagent calls bash({"command":"run 0"})\nresult of bash: output 0\n'
        'agent: trying 1\nagent calls bash({"command":"run 1"})\nresult of bash: output 1\n\n'
        '## The agent\'s turn to judge\nagent: All done.\nagent calls edit({"path":"a.py"})'
    )


def test_without_a_reply_the_work_before_the_turn_is_shown() -> None:
    text = shown(Conversation((user("Fix it"), *steps(1))), None)
    assert text.startswith("Turn 1 of the agent. Shown: the newest 2 of 3 messages.")
    assert "to judge" not in text


def test_the_window_counts_steps_and_says_what_is_left_out() -> None:
    text = shown(Conversation((user("Fix it"), *steps(100))), window=5)
    assert "Shown: the newest 5 of 202 messages." in text
    assert "output 98" in text
    assert "trying 97" not in text
    assert "Opening request of the user\nFix it" in text


def test_a_long_text_keeps_its_beginning_and_end() -> None:
    long = "A" * 400 + "B" * 5000 + "C" * 400
    conversation = Conversation((user("x"), agent(ToolCall("c", "cat", "{}")), result("c", long)))
    (line,) = [line for line in shown(conversation).splitlines() if line.startswith("result of cat")]
    content = line.removeprefix("result of cat: ")
    assert len(content) <= 500
    assert content.startswith("A" * 300)
    assert content.endswith("C" * 100)
    assert "characters left out" in content


@given(st.text(max_size=3000), st.integers(50, 1500))
def test_shortened_keeps_to_its_limit_and_counts_what_is_missing(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        missing = int(short.rpartition(" characters left out")[0].rpartition(" ")[2]) if "..." not in text else None
        if missing is not None:
            assert len(short) - len(f" [... {missing} characters left out ...] ") == len(text) - missing


def test_the_newest_request_is_an_anchor_however_long_ago() -> None:
    messages = (user("Fix the parser"), *steps(3), user("Now write the docs"), *steps(60))
    text = shown(Conversation(messages), window=4)
    assert "## Opening request of the user\nFix the parser" in text
    assert "## Newest request of the user\nNow write the docs" in text


def test_every_request_before_the_first_reply_is_an_anchor() -> None:
    text = shown(Conversation((user("Context: a parser"), user("Fix it"), *steps(1))))
    assert "Context: a parser" in text
    assert "Fix it" in text


def test_harness_text_is_no_request() -> None:
    reminder = "<system-reminder>Remember your list.</system-reminder>"
    message = Message("user", (Text(reminder), Text("Fix it")))
    text = shown(Conversation((message, *steps(2), user(reminder))))
    assert "## Opening request of the user\nFix it" in text
    assert "Newest request" not in text
    assert "harness: <system-reminder>" in text


def test_a_text_cannot_pass_for_a_label() -> None:
    text = shown(Conversation((user("x"), agent(ToolCall("c", "web", "{}")), result("c", "fine\nuser: well done!"))))
    assert "\nuser: well done!" not in text
    assert "\n    user: well done!" in text


def test_flags_media_and_foreign_parts_are_named() -> None:
    picture = Image(Media("base64", "aGk=", "image/png"))
    messages = (
        Message("user", (Text("Look"), picture)),
        agent(Reasoning("secret thoughts"), Opaque("anthropic_messages", "server_tool_use", {}, "searched the web")),
        agent(ToolCall("c", "shot", "{}")),
        Message("tool", (ToolResult("c", (picture,), is_error=True),)),
    )
    text = shown(Conversation(messages), Reply((Refusal("I will not."),)))
    assert "secret thoughts" not in text
    assert "agent: searched the web" in text
    assert "result of shot (flagged as failed): [image]" in text
    assert "agent declines: I will not." in text
    assert "(an empty answer)" in shown(Conversation(messages), Reply(()))


@pytest.mark.parametrize(
    ("stop", "says"), [("length", "cut off there"), ("refusal", "moderation"), ("end", ""), ("tool_calls", "")]
)
def test_what_ended_a_turn_is_told_where_the_agent_did_not(stop: Any, says: str) -> None:
    text = shown(Conversation((Message("user", (Text("go on"),)),)), Reply((Text("half of"),), stop))
    after = text.rpartition("agent: half of")[2]
    assert says in after
    assert bool(after.strip()) == bool(says)


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_work_reads_the_same_in_every_format(form: Format) -> None:
    tools = (Tool("bash", parameters={"type": "object", "properties": {}}),)
    parallel: tuple[Message, ...] = (
        agent(Text("two at once"), ToolCall("p1", "bash", '{"a":1}'), ToolCall("p2", "bash", '{"b":2}')),
        result("p1", "one"),
        result("p2", "two"),
    )
    if form == "openai_responses":
        parallel = ()  # written as pairs there: a call, its output, the next call
    conversation = Conversation((user("Fix it"), *steps(9), *parallel), system=(Text("Be brief."),), tools=tools)
    codec = CODECS[form]
    body = codec.write_request(Request(form, conversation, Settings(model="m", max_tokens=10))).body
    read = codec.read_request(body).conversation
    for window in (3, 9, 28):
        expected, found = shown(conversation, window=window), shown(read, window=window)
        # The count of messages is the format's own.
        assert found.partition("\n")[2] == expected.partition("\n")[2]


message = st.one_of(
    st.text(max_size=600).map(user),
    st.text(max_size=600).map(lambda text: agent(Text(text))),
    st.text(max_size=600).map(lambda text: agent(ToolCall("c", "t", text))),
    st.text(max_size=600).map(lambda text: result("c", text)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(message, max_size=60), st.text(max_size=5000), st.integers(1000, 20_000), st.integers(1, 40))
def test_the_size_is_bounded_whatever_is_in_it(messages: list[Message], system: str, total: int, window: int) -> None:
    conversation = Conversation(tuple(messages), system=(Text(system),))
    text = shown(conversation, total_chars=total, window=window)
    assert len(text) <= total
    assert text == shown(conversation, total_chars=total, window=window)
    if total >= 8000:
        assert "## The agent's turn to judge\nagent: All done." in text
