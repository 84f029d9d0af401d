"""A script counts the turns of a conversation alike in every format it may be asked in."""

import json
from typing import Any

import pytest

from turnout.conversation import Format
from turnout.upstream.prompt_cache import PromptCache
from turnout.upstream.scripted import Line, ScriptedCall, assistant_turns, reply_of
from turnout.wire import CODECS
from turnout.wire.codec import Request

CHAT = CODECS["openai_chat"]
TWO = (ScriptedCall("run", {"n": 1}), ScriptedCall("run", {"n": 2}))


def conversation(turns: int) -> Request:
    """A Chat conversation of that many scripted turns, each with parallel calls and their results."""
    messages: list[Any] = [{"role": "user", "content": "go"}]
    for turn in range(turns):
        request = CHAT.read_request(json.dumps({"model": "m", "messages": messages}).encode())
        line = Line(text="Both." if turn % 2 else "", calls=TWO)
        reply = reply_of(line, request, turn, PromptCache("openai_chat"))
        said = json.loads(CHAT.write_reply(reply, request, "m").body)["choices"][0]["message"]
        messages += [said, *({"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in said["tool_calls"])]
    return CHAT.read_request(json.dumps({"model": "m", "messages": messages}).encode())


@pytest.mark.parametrize("format", list(CODECS))
@pytest.mark.parametrize("turns", range(4))
def test_parallel_calls_of_one_reply_are_one_turn(format: Format, turns: int) -> None:
    request = conversation(turns)
    codec = CODECS[format]
    body = request.body if format == "openai_chat" else codec.write_request(request, default_max_tokens=9).body
    assert assistant_turns(codec.read_request(body).conversation) == turns
