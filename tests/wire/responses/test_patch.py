"""Edits on native bodies of Responses."""

from typing import Any

import msgspec
import pytest

from turnout.conversation import DropForeignReasoning, Instruction, Note, Settings, apply, mark
from turnout.conversation.edits import Effort
from turnout.wire.responses import RESPONSES

USER = {"role": "user", "content": "do it"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
TRIGGER = {"type": "compaction_trigger"}
NOTE = {"type": "input_text", "text": "be careful"}


def body(**fields: Any) -> bytes:
    return msgspec.json.encode({"model": "m", **fields, "unknown": [1.50, "é"]})


def patched(data: bytes, *edits: Any) -> Any:
    once = RESPONSES.patch(data, edits)
    assert RESPONSES.patch(once, edits) == once
    return msgspec.json.decode(once)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("do it", [{"type": "message", **USER, "content": [{"type": "input_text", "text": "do it"}, NOTE]}]),
        ([USER], [{**USER, "content": [{"type": "input_text", "text": "do it"}, NOTE]}]),
        ([{"role": "user", "content": []}], [{"role": "user", "content": [NOTE]}]),
        ([USER, OUTPUT], [USER, OUTPUT, {"type": "message", "role": "user", "content": [NOTE]}]),
        ([OUTPUT, TRIGGER], [OUTPUT, {"type": "message", "role": "user", "content": [NOTE]}, TRIGGER]),
        ([], [{"type": "message", "role": "user", "content": [NOTE]}]),
    ],
)
def test_a_note_goes_to_the_end(given, expected):
    after = patched(body(input=given), Note("be careful"))
    assert after["input"] == expected
    assert after["unknown"] == [1.5, "é"]


def test_every_byte_before_the_note_stays():
    data = b'{ "input" : [ {"role":"user","content":"a\\u00e9"} , {"type":"reasoning", "x":1.0} ] , "model":"m" }'
    after = RESPONSES.patch(data, [Note("n")])
    assert after.startswith(data[: data.index(b" ] , ")])
    assert after.endswith(b' ] , "model":"m" }')


def test_an_instruction_goes_first_and_two_stand_side_by_side():
    assert patched(body(input="x"), Instruction("a"))["instructions"] == "a"
    after = patched(body(input="x", instructions="old"), Instruction("a"), Instruction("b"))
    assert after["instructions"] == "b\n\na\n\nold"


def test_effort_leaves_the_rest_of_the_reasoning():
    after = patched(body(input="x", reasoning={"summary": "auto", "effort": "low"}, include=["y"]), Effort("high"))
    assert after["reasoning"] == {"summary": "auto", "effort": "high"}
    assert after["include"] == ["y"]
    assert patched(body(input="x"), Effort("high"))["reasoning"] == {"effort": "high"}


def test_reasoning_of_ones_own_stays_and_what_goes_takes_the_ids_made_with_it_along():
    def thought(payload):
        return {"type": "reasoning", "id": f"rs_{payload}", "summary": [], "encrypted_content": payload}

    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    items = [thought("theirs"), said, call, output, said, thought("mine"), said, call, output]
    edit = DropForeignReasoning((mark("mine"),))
    after = patched(body(input=items), edit)["input"]
    bare = [{k: v for k, v in item.items() if k != "id"} for item in (said, call)]
    assert after == [*bare, output, *items[4:]]
    raw = RESPONSES.patch(body(input=items), [edit])
    assert RESPONSES.patch(raw, [edit]) == raw
    conversation, _ = apply(RESPONSES.read_request(body(input=items)).conversation, Settings(), (edit,))
    assert list(conversation.messages) == list(RESPONSES.read_request(raw).conversation.messages)


def test_reasoning_of_others_loses_what_only_they_can_read():
    summary = [{"type": "summary_text", "text": "t"}]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        USER,
        {"type": "reasoning", "id": "rs_2", "summary": summary, "encrypted_content": "x"},
        {"type": "reasoning", "id": "rs_3", "summary": summary},
        OUTPUT,
    ]
    assert patched(body(input=items), DropForeignReasoning())["input"] == [
        USER,
        {"type": "reasoning", "summary": summary},
        items[3],
        OUTPUT,
    ]
    assert patched(body(input=items[:1]), DropForeignReasoning())["input"] == []
    untouched = body(input=[USER, items[3]])
    assert RESPONSES.patch(untouched, [DropForeignReasoning()]) == untouched
