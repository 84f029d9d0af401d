"""Edits on the neutral form: applied once or twice, the same."""

from hypothesis import given
from hypothesis import strategies as st
from tests import strategies

from turnout.conversation import (
    Conversation,
    DropForeignReasoning,
    Instruction,
    Message,
    Note,
    Reasoning,
    Settings,
    Text,
    ToolCall,
    ToolResult,
    apply,
)
from turnout.conversation import Effort as EffortSetting
from turnout.conversation.edits import Effort

edits = st.lists(
    st.one_of(
        st.builds(Note, strategies.words),
        st.builds(Instruction, strategies.words),
        st.builds(DropForeignReasoning, st.just(()), st.booleans()),
        st.builds(Effort, st.sampled_from(["low", "high"])),
    ),
    max_size=5,
).map(tuple)


def only_one_effort(edits):
    return len({e.level for e in edits if isinstance(e, Effort)}) <= 1


@given(strategies.conversations(media=True), edits.filter(only_one_effort))
def test_applying_edits_twice_is_applying_them_once(conversation, edits):
    once = apply(conversation, Settings(), edits)
    assert apply(*once, edits) == once


@given(strategies.conversations(media=True), edits)
def test_edits_only_add_what_they_say(conversation, edits):
    after, _ = apply(conversation, Settings(model="m"), edits)
    notes = [e.text for e in edits if isinstance(e, Note)]
    instructions = [e.text for e in edits if isinstance(e, Instruction)]
    assert list(after.system)[-len(conversation.system) :] == list(conversation.system) or not conversation.system
    assert {p.text for p in after.system} == {p.text for p in conversation.system} | set(instructions)
    assert list(after.messages)[: len(conversation.messages) - 1] == list(conversation.messages)[:-1]
    assert list(after.roles) == [m.role for m in after.messages]
    assert after.tools == conversation.tools
    if notes:
        assert after.messages[-1].role == "user"
        assert set(notes) <= {p.text for p in after.messages[-1].parts if isinstance(p, Text)}


def test_a_note_joins_the_trailing_user_message_and_follows_tool_results():
    asked = Conversation((Message("user", (Text("fix it"),), flat=True),))
    noted, _ = apply(asked, Settings(), (Note("be brief"),))
    assert noted.messages == (Message("user", (Text("fix it"), Text("be brief"))),)
    worked = Conversation(
        (Message("assistant", (ToolCall("1", "run"),)), Message("tool", (ToolResult("1", (Text("ok"),)),)))
    )
    noted, _ = apply(worked, Settings(), (Note("be brief"),))
    assert noted.messages[-1] == Message("user", (Text("be brief"),))
    assert noted.messages[:-1] == worked.messages
    mixed = Conversation((Message("user", (ToolResult("1", (Text("ok"),)),)),))
    noted, _ = apply(mixed, Settings(), (Note("be brief"),))
    assert noted.messages == (Message("user", (ToolResult("1", (Text("ok"),)), Text("be brief"))),)


def test_several_instructions_stand_before_the_clients_own():
    asked = Conversation((Message("user", (Text("hi"),)),), (Text("you are"),))
    instructed, _ = apply(asked, Settings(), (Instruction("a"), Instruction("b")))
    assert [p.text for p in instructed.system] == ["b", "a", "you are"]


def test_reasoning_that_only_its_issuer_reads_goes_and_the_rest_stays_in_order():
    parts = (
        Reasoning("t", signature="s"),
        Text("a"),
        Reasoning(redacted=True, encrypted="e"),
        Reasoning("summary", summary=("summary",), encrypted="e", id="rs_1"),
        Reasoning(encrypted="e", id="rs_2"),
        Reasoning("plain"),
        ToolCall("1", "run"),
    )
    conversation = Conversation((Message("assistant", parts), Message("assistant", (Reasoning("t", signature="s"),))))
    after, _ = apply(conversation, Settings(), (DropForeignReasoning(),))
    left = (Text("a"), Reasoning("summary", summary=("summary",)), Reasoning("plain"), ToolCall("1", "run"))
    assert after.messages == (Message("assistant", left),)


def test_an_effort_keeps_the_rest_of_the_clients_wish():
    settings = Settings(effort=EffortSetting(level="low", summary="auto", extra={"x": 1}))
    _, after = apply(Conversation(()), settings, (Effort("high"),))
    assert after.effort == EffortSetting(level="high", summary="auto", extra={"x": 1})
    _, after = apply(Conversation(()), Settings(), (Effort("high"),))
    assert after.effort == EffortSetting(level="high")
