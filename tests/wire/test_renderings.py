"""What was written once is kept within its bounds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Conversation, Settings, Tool, ToolChoice
from turnout.wire import CODECS
from turnout.wire.codec import Request
from turnout.wire.renderings import Renderings


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40))))
def test_never_more_bytes_than_allowed_and_the_newest_is_there(puts: list[tuple[int, int]]) -> None:
    kept: Renderings[int] = Renderings(200)
    sizes: dict[int, int] = {}
    for source, size in puts:
        kept.put(source, size, size)
        if size <= 25:
            sizes[source] = size
            assert kept.get(source) == size
        assert kept.size <= 200
    held = [s for s in sizes if kept.get(s) is not None]
    assert len(held) == len(kept)
    assert sum(sizes[s] for s in held) == kept.size


def test_what_was_used_last_stays() -> None:
    kept: Renderings[str] = Renderings(32)
    for source in "abcdefgh":
        kept.put(source, source, 4)
    assert kept.get("a") == "a"
    kept.put("z", "z", 4)
    assert kept.get("b") is None
    assert kept.get("a") == "a"


def test_remembered_tools_are_written_as_the_first_time_under_every_choice() -> None:
    body = b"""{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi."}], "tools": [
        {"name": "read.file", "description": "Reads.", "input_schema": {"type": "object", "z": 1, "a": 2}, "strict": true},
        {"name": "b", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}, "more": 1}]}"""
    chat, messages = CODECS["openai_chat"], CODECS["anthropic_messages"]
    choices = (None, ToolChoice("auto"), ToolChoice("named", "b"), ToolChoice("allowed", names=("b",)))
    for choice in choices:
        settings = Settings(model="m", tool_choice=choice)
        for _ in range(2):
            read = messages.read_request(body).conversation
            plain = Conversation(tuple(read.messages), read.system, tuple[Tool, ...](read.tools), format=read.format)
            assert written(chat, read, settings) == written(chat, plain, settings)


def written(codec: Any, conversation: Conversation, settings: Settings) -> Any:
    return codec.write_request(Request("anthropic_messages", conversation, settings))
