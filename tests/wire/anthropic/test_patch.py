"""Edits on native bodies: nothing else changes, twice is once, and the neutral form agrees."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from tests.native import messages_bodies
from turnout.conversation import DropForeignReasoning, Edit, Instruction, Note, apply, mark
from turnout.conversation.edits import Effort
from turnout.errors import ClientError
from turnout.wire.anthropic import MESSAGES

EDITS: list[Edit] = [Note("a note"), Instruction("a rule"), DropForeignReasoning(), Effort("low")]

SPACED = b"""{ "model" : "m",\t"max_tokens": 1e2,
  "system" : [ {"type":"text","text":"s","cache_control":{"type":"ephemeral"}} ] ,
  "messages": [ {"role":"user", "content": "\\u0068i"} ,
    {"content": [ {"type":"thinking","thinking":"t","signature":"s"} , {"type":"text","text":"yo", "x":1.0} ],"role":"assistant"},
    {"role":"user","content":[{"type":"text","text":"q" , "cache_control":{"type":"ephemeral"}} ] } ] , "new": {"k":[ 1 ]} }"""


def body(messages: list[Any], **fields: Any) -> bytes:
    return msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": messages, **fields})


def patched(raw: bytes, *edits: Edit) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(MESSAGES.patch(raw, edits))
    return value


def test_a_note_goes_behind_the_last_block_and_nothing_else_moves() -> None:
    out = MESSAGES.patch(SPACED, [Note("n")])
    note = b',{"type":"text","text":"n"}'
    assert out.replace(note, b"") == SPACED
    assert out.index(note) == SPACED.index(b" ] } ] ,")


def test_an_instruction_goes_before_the_first_block_and_nothing_else_moves() -> None:
    out = MESSAGES.patch(SPACED, [Instruction("i")])
    assert out.replace(b'{"type":"text","text":"i"},', b"") == SPACED


def test_reasoning_of_ones_own_stays_and_foreign_beside_it_goes() -> None:
    assert MESSAGES.patch(SPACED, [DropForeignReasoning((mark("s"),))]) is SPACED
    signed = [{"type": "thinking", "thinking": "t", "signature": whose} for whose in ("mine", "theirs", "")]
    redacted = [{"type": "redacted_thinking", "data": whose} for whose in ("mine", "theirs")]
    raw = body([{"role": "assistant", "content": [*signed, *redacted]}])
    assert patched(raw, DropForeignReasoning((mark("mine"),)))["messages"][0]["content"] == [signed[0], redacted[0]]


@pytest.mark.parametrize("mixed", [True, False])
def test_a_loop_that_others_began_without_thinking_is_finished_without(mixed: bool) -> None:
    fixed = {"type": "enabled", "budget_tokens": 2000}
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    own = {"type": "thinking", "thinking": "t", "signature": "mine"}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}
    edit = DropForeignReasoning((mark("mine"),), mixed)
    bare = patched(body([{"role": "assistant", "content": [call]}, result], thinking=fixed), edit)
    assert bare["thinking"] == ({"type": "disabled"} if mixed else fixed)
    led = body([{"role": "assistant", "content": [own, call]}, result], thinking=fixed)
    assert MESSAGES.patch(led, [edit]) == led
    over = body(
        [{"role": "assistant", "content": [call]}, result, {"role": "assistant", "content": "x"}], thinking=fixed
    )
    assert MESSAGES.patch(over, [edit]) == over


def test_dropping_reasoning_cuts_the_block_and_nothing_else() -> None:
    out = MESSAGES.patch(SPACED, [DropForeignReasoning()])
    assert out == SPACED.replace(b'{"type":"thinking","thinking":"t","signature":"s"} , ', b"")


def test_a_body_that_an_edit_does_not_concern_is_returned_as_it_is() -> None:
    raw = body([{"role": "user", "content": "about thinking"}])
    assert MESSAGES.patch(raw, [DropForeignReasoning()]) is raw


@given(messages_bodies())
@settings(deadline=None, max_examples=80)
def test_edits_are_idempotent_and_agree_with_the_neutral_form(native: dict[str, Any]) -> None:
    raw = msgspec.json.encode(native)
    before = MESSAGES.read_request(raw)
    for edit in EDITS:
        once = MESSAGES.patch(raw, [edit])
        assert MESSAGES.patch(once, [edit]) == once
        after = MESSAGES.read_request(once)
        conversation, wanted = apply(before.conversation, before.settings, (edit,))
        assert after.conversation == conversation
        if not isinstance(edit, DropForeignReasoning):
            assert after.settings == wanted


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hi", [{"type": "text", "text": "hi"}, {"type": "text", "text": "n"}]),
        ("", [{"type": "text", "text": "n"}]),
        ([], [{"type": "text", "text": "n"}]),
        ("n", "n"),
        ([{"type": "text", "text": "n"}], [{"type": "text", "text": "n"}]),
    ],
)
def test_a_note_in_every_kind_of_content(content: Any, expected: Any) -> None:
    assert patched(body([{"role": "user", "content": content}]), Note("n"))["messages"][0]["content"] == expected


def test_a_note_behind_tool_results_keeps_them_first() -> None:
    results = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    content = patched(body([{"role": "user", "content": results}]), Note("n"))["messages"][0]["content"]
    assert [b["type"] for b in content] == ["tool_result", "text"]


def test_a_note_behind_an_assistant_turn_opens_a_user_turn() -> None:
    messages = patched(body([{"role": "assistant", "content": "pre"}]), Note("n"))["messages"]
    assert messages[1] == {"role": "user", "content": [{"type": "text", "text": "n"}]}


@pytest.mark.parametrize("system", [None, "", [], "old", [{"type": "text", "text": "old"}]])
def test_an_instruction_in_every_kind_of_system(system: Any) -> None:
    texts = [b["text"] for b in patched(body([], system=system), Instruction("new"))["system"]]
    assert texts == (["new", "old"] if system else ["new"])


def test_two_instructions_stand_side_by_side() -> None:
    raw = MESSAGES.patch(body([], system="old"), [Instruction("a"), Instruction("b")])
    assert MESSAGES.patch(raw, [Instruction("a"), Instruction("b")]) == raw


def test_a_message_of_reasoning_alone_goes() -> None:
    raw = body(
        [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "d"}]},
            {"role": "user", "content": "r"},
        ]
    )
    assert [m["role"] for m in patched(raw, DropForeignReasoning())["messages"]] == ["user", "user"]


def test_a_tool_loop_that_loses_its_thinking_is_finished_without() -> None:
    loop = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
    ]
    management = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    fixed = {"type": "enabled", "budget_tokens": 2000}
    out = patched(body(loop, thinking=fixed, context_management=management), DropForeignReasoning())
    assert out["thinking"] == {"type": "disabled"}
    assert "context_management" not in out
    out = patched(body(loop, thinking={"type": "adaptive"}, context_management=management), DropForeignReasoning())
    assert out["thinking"] == {"type": "adaptive"}
    assert out["context_management"] == management
    out = patched(
        body([*loop, {"role": "assistant", "content": "done"}, loop[0]], thinking=fixed), DropForeignReasoning()
    )
    assert out["thinking"] == fixed


def test_an_effort_replaces_the_clients_and_keeps_what_is_beside_it() -> None:
    out = patched(body([], output_config={"effort": "max", "x": 1}), Effort("minimal"))
    assert out["output_config"] == {"effort": "low", "x": 1}
    out = patched(body([], output_config={"effort": "max"}, thinking={"type": "adaptive"}), Effort("none"))
    assert "output_config" not in out
    assert out["thinking"] == {"type": "disabled"}


def test_edits_on_a_broken_body_are_clear_errors() -> None:
    for raw in (b"[]", b"{", b'{"messages":7}', b'{"messages":[{"role":"user"}]}'):
        with pytest.raises(ClientError):
            MESSAGES.patch(raw, [Note("n")])
    with pytest.raises(ClientError, match="system"):
        MESSAGES.patch(b'{"system":7}', [Instruction("n")])
