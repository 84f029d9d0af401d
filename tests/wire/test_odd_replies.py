"""Whatever JSON an upstream sends for a reply: it is read, or it is the upstream's fault, and never ours."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.conversation import Fault, Folding
from turnout.errors import UpstreamError
from turnout.wire import CODECS

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "hi", "reasoning_content": "r", "refusal": None, "tool_calls": [CALL]}
PROMPT = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
SPENT = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
CITED = {"type": "output_text", "text": "hi", "annotations": [{"type": "url_citation", "url": "u", "title": "t"}]}
OUTPUT: list[Any] = [
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"},
    {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [CITED]},
    {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "{}", "status": "completed"},
]
RESPONSE = {"id": "resp", "object": "response", "status": "completed", "model": "m", "output": OUTPUT, "usage": SPENT}
BLOCKS: list[Any] = [
    {"type": "thinking", "thinking": "t", "signature": "s"},
    {"type": "text", "text": "hi", "citations": [{"type": "char_location", "cited_text": "c"}]},
    {"type": "tool_use", "id": "toolu", "name": "f", "input": {}},
]
CLAUDES = {"input_tokens": 5, "output_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": 1}}
REPLIES: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}],
        "usage": PROMPT,
    },
    "openai_responses": RESPONSE,
    "anthropic_messages": {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": BLOCKS,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": CLAUDES,
    },
}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more}


STREAMS: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        chunk({"role": "assistant", "content": "hi", "reasoning_content": "r"}),
        chunk({"tool_calls": [{"index": 0, **CALL}]}),
        chunk({}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": PROMPT},
    ],
    "openai_responses": [
        {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
        *({"type": "response.output_item.added", "output_index": n, "item": item} for n, item in enumerate(OUTPUT)),
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "hi", "item_id": "msg"},
        *({"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(OUTPUT)),
        {"type": "response.completed", "response": RESPONSE},
    ],
    "anthropic_messages": [
        {"type": "message_start", "message": {**REPLIES["anthropic_messages"], "content": [], "stop_reason": None}},
        *({"type": "content_block_start", "index": n, "content_block": block} for n, block in enumerate(BLOCKS)),
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": CLAUDES},
        {"type": "message_stop"},
    ],
}
ODD = st.sampled_from([None, 5, -1, 1.5, "x", "", [], {}, True, [1], {"a": 1}, [None], ["x"], 10**30, ...])
FORMATS = list(REPLIES)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values inside `value` stand."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(value[key], (*path, key))


def altered(draw: st.DrawFn, value: Any) -> Any:
    """`value` with one value inside it replaced, or taken out."""
    value = copy.deepcopy(value)
    path = draw(st.sampled_from(list(paths(value))))
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    odd = draw(ODD)
    if odd is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    return value


@st.composite
def odd_replies(draw: st.DrawFn) -> tuple[str, bytes]:
    form = draw(st.sampled_from(FORMATS))
    return form, json.dumps(altered(draw, altered(draw, REPLIES[form]))).encode()


@st.composite
def odd_streams(draw: st.DrawFn) -> tuple[str, bytes]:
    form = draw(st.sampled_from(FORMATS))
    return form, b"".join(b"data: %s\n\n" % json.dumps(e).encode() for e in altered(draw, STREAMS[form]))


def asked(form: str) -> Any:
    key = "input" if form == "openai_responses" else "messages"
    body = {"model": "m", "max_tokens": 9, "stream": True, key: [{"role": "user", "content": "hi"}]}
    if form == "openai_responses":
        del body["max_tokens"]
    return CODECS[form].read_request(json.dumps(body).encode())  # type: ignore[index]  # one of the formats


@settings(max_examples=300, deadline=None)
@given(odd_replies(), st.sampled_from(FORMATS))
def test_an_odd_reply_is_read_or_the_upstreams_fault(reply: tuple[str, bytes], client: str) -> None:
    form, body = reply
    codec, request = CODECS[form], asked(client)  # type: ignore[index]  # one of the formats
    try:
        read = codec.read_reply(body, request)
    except UpstreamError:
        read = None
    try:
        codec.count_reply(body, request)
    except UpstreamError:
        assert read is None
    if read is not None and client != form:
        CODECS[client].write_reply(read, request, "m")  # type: ignore[index]  # one of the formats


@settings(max_examples=300, deadline=None)
@given(odd_streams(), st.sampled_from(FORMATS))
def test_an_odd_stream_is_read_or_the_upstreams_fault(sent: tuple[str, bytes], client: str) -> None:
    form, data = sent
    request = asked(client)
    reader, folding = CODECS[form].reader(request), Folding()  # type: ignore[index]  # one of the formats
    writer = CODECS[client].writer(request, "m")  # type: ignore[index]  # one of the formats
    for delta in (*reader.feed(data), *reader.close()):
        writer.feed(delta)
        if not isinstance(delta, Fault):
            folding.feed(delta)
    tally = CODECS[form].tally(asked(form))  # type: ignore[index]  # one of the formats
    assert data.startswith(tally.feed(data)) or form == "openai_chat"
    tally.close()


@pytest.mark.parametrize(
    ("form", "odd"),
    [
        ("anthropic_messages", {"id": None, "model": None}),
        ("anthropic_messages", {"content": [{"type": "news", "text": 5}], "stop_sequence": 5}),
        ("openai_responses", {"output": [{"type": {}}, 5, {"type": "message", "content": [{"type": 1}]}]}),
    ],
)
def test_a_relayed_reply_is_counted_whatever_it_holds(form: str, odd: dict[str, Any]) -> None:
    counted = CODECS[form].count_reply(json.dumps({**REPLIES[form], **odd}).encode())  # type: ignore[index]
    assert counted.usage is not None
    assert counted.usage.output_tokens == 2
