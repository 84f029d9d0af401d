"""The service tier that served a reply means the same in Chat Completions and Responses, so neither loses it."""

from typing import Any

import msgspec
import pytest

from turnout.conversation import Folding
from turnout.wire import CODECS

CHAT, RESPONSES = CODECS["openai_chat"], CODECS["openai_responses"]
ASKED = {
    CHAT: CHAT.read_request(b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'),
    RESPONSES: RESPONSES.read_request(b'{"model": "m", "input": "hi"}'),
}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 5,
    "status": "completed",
    "model": "m",
    "service_tier": "flex",
    "output": [{**MESSAGE, "content": [{"type": "output_text", "text": "hi", "annotations": []}]}],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 5,
    "model": "m",
    "service_tier": "flex",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


@pytest.mark.parametrize(("source", "body", "target"), [(RESPONSES, RESPONSE, CHAT), (CHAT, COMPLETION, RESPONSES)])
def test_a_whole_reply_keeps_it(source: Any, body: Any, target: Any) -> None:
    written = target.write_reply(source.read_reply(msgspec.json.encode(body)), ASKED[target], "m")
    assert msgspec.json.decode(written.body)["service_tier"] == "flex"
    assert "service_tier" not in [drop.path for drop in written.drops]


def test_a_stream_keeps_it() -> None:
    event = b'event: response.completed\ndata: {"type": "response.completed", "response": %b}\n\n'
    reader, folding = RESPONSES.reader(ASKED[RESPONSES]), Folding()
    writer = CHAT.writer(ASKED[CHAT], "m")
    chunks = b""
    for delta in reader.feed(event % msgspec.json.encode(RESPONSE)):
        folding.feed(delta)
        chunks += writer.feed(delta)
    assert folding.reply.text == "hi"
    assert chunks.count(b'"service_tier":"flex"') == 1
