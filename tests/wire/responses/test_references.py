"""The ids of a reply's items are those the client got, however it got them; named items are read back whole."""

import pytest
from msgspec import Raw

from turnout.conversation import Conversation, Message, Reasoning, Reply, Text, ToolCall, unfold
from turnout.wire import CODECS
from turnout.wire.codec import Request
from turnout.wire.responses.references import given_items, named_items, names_items, with_items

RESPONSES = CODECS["openai_responses"]
ASKED = RESPONSES.read_request(b'{"model": "m", "input": "hi"}')
PARTS = (
    Reasoning("I look."),
    Text("Two calls."),
    ToolCall("call_1", "run", '{"a": 1}'),
    ToolCall("call_2", "run", "{}"),
)
REPLY = Reply(PARTS, "tool_calls", id="resp_of_ours")


def streamed(reply: Reply) -> bytes:
    writer = RESPONSES.writer(ASKED, "m")
    return b"".join(writer.feed(delta) for delta in unfold(reply))


def referring(names: list[str]) -> Request:
    items = ",".join(f'{{"type": "item_reference", "id": "{name}"}}' for name in names)
    return RESPONSES.read_request(f'{{"model": "m", "input": [{items}]}}'.encode())


@pytest.mark.parametrize(
    "frames", [streamed(REPLY), RESPONSES.write_reply(REPLY, ASKED, "m").body], ids=["stream", "whole"]
)
def test_ids_are_those_that_were_written(frames: bytes) -> None:
    items = given_items(REPLY, b"")
    assert list(items) == list(given_items(REPLY, frames))
    assert [name.partition("_")[0] for name in items] == ["rs", "msg", "fc", "fc"]
    assert all(name.encode() in frames for name in items)


def test_named_items_are_read_back() -> None:
    items = given_items(REPLY, streamed(REPLY))
    request = referring(list(items))
    assert names_items(request.body)
    assert named_items(request.conversation) == list(items)
    whole = with_items(request.conversation, items)
    said = [part for message in whole.messages for part in message.parts]
    assert [part.text for part in said if isinstance(part, Reasoning | Text)] == ["I look.", "Two calls."]
    assert [(c.id, c.arguments) for c in said if isinstance(c, ToolCall)] == [("call_1", '{"a": 1}'), ("call_2", "{}")]
    assert named_items(whole) == []


def test_what_is_not_known_stays() -> None:
    conversation = referring(["msg_never_seen_before"]).conversation
    assert with_items(conversation, {"another": Raw(b"{}")}) == conversation


def test_ids_that_a_server_gives_every_reply_name_nothing() -> None:
    body = b'{"output": [{"type": "message", "id": "msg_0", "role": "assistant", "content": []}]}'
    assert given_items(REPLY, body) == {}


@pytest.mark.parametrize(
    "frames", [b"{", b'{"output": 1}', b'data: {"type": "response.output_item.done"}\n\n', b"\xff"]
)
def test_what_cannot_be_read_is_no_failure(frames: bytes) -> None:
    assert given_items(REPLY, frames) == {}


def test_conversations_of_other_formats_name_nothing() -> None:
    assert named_items(Conversation((Message("assistant", (Text("hi"),)),))) == []
