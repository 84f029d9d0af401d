"""Chat streams as servers really send them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.chat.exchange import call, chunk, deltas, reply, request, sse
from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    Citation,
    Conversation,
    End,
    Fault,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Settings,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
)
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request

USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 70}}


def in_order(found: list[Any]) -> None:
    """The order law of deltas."""
    opened: int | None = None
    last = -1
    for position, delta in enumerate(found):
        match delta:
            case Begin():
                assert position == 0
            case PartBegin():
                assert opened is None
                assert delta.index == last + 1
                opened = last = delta.index
            case TextDelta() | ArgumentsDelta():
                assert delta.index == opened
            case PartEnd():
                assert delta.index == opened
                opened = None
            case End() | Fault():
                assert position == len(found) - 1
                assert isinstance(delta, Fault) or opened is None


def calls(stream: bytes) -> list[tuple[str, str, str]]:
    in_order(deltas(stream))
    return [(c.id, c.name, c.arguments) for c in reply(stream).calls]


def test_text_usage_and_stop() -> None:
    stream = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk(finish="stop"),
        {**chunk(), "choices": [], "usage": USAGE},
    )
    found = deltas(stream)
    in_order(found)
    assert found == [
        Begin("c1", "m", 7, format="openai_chat"),
        PartBegin(0, Text("")),
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        PartEnd(0),
        End("end", Usage(30, 5, cache_read_tokens=70)),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (USAGE, Usage(30, 5, cache_read_tokens=70)),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5},
            Usage(5, 1, cache_read_tokens=4, extra={"prompt_cache_miss_tokens": 5}),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 3,
            },
            Usage(2, 1, cache_read_tokens=4, cache_write_tokens=3),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "cached_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(5, 1, cache_read_tokens=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cache_write_tokens": 2}},
            Usage(7, 1, cache_write_tokens=2),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 2}},
            Usage(3, 4, reasoning_tokens=2),
        ),
        ({"prompt_tokens": 3, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(0, 0, 9)),
        ({"prompt_tokens": 3}, Usage(3)),
        ({}, None),
    ],
)
def test_usage_in_every_spelling(usage: Any, expected: Usage | None) -> None:
    finish = {**chunk(finish="stop"), "usage": usage}
    assert reply(sse(chunk({"content": "x"}), finish)).usage == expected


def test_a_usage_chunk_that_repeats_the_finish_reason_changes_nothing_else() -> None:
    stream = sse(chunk({"content": "x"}), chunk(finish="stop"), {**chunk(finish="stop"), "usage": USAGE})
    found = deltas(stream)
    assert sum(isinstance(d, End) for d in found) == 1
    assert found[-1] == End("end", Usage(30, 5, cache_read_tokens=70))


def test_reasoning_comes_before_text_even_in_one_chunk() -> None:
    stream = sse(chunk({"content": "b", "reasoning_content": "a"}), chunk(finish="stop"))
    assert [type(p) for p in reply(stream).parts] == [Reasoning, Text]


def test_reasoning_details_are_put_together() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **fields}]}

    stream = sse(
        chunk({"reasoning": "a", **detail(text="a")}),
        chunk({"reasoning": "b", **detail(text="b")}),
        chunk(detail(signature="s")),
        chunk({"content": "x"}),
        chunk(finish="stop"),
    )
    part = reply(stream).parts[0]
    assert part == Reasoning(
        "ab",
        origin="openai_chat",
        details=[{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}],
        extra={"field": "reasoning"},
    )


def test_details_alone_are_readable_and_encrypted_ones_are_kept() -> None:
    summary = {"type": "reasoning.summary", "summary": "why", "text": ""}
    secret = {"type": "reasoning.encrypted", "data": "zzz"}
    stream = sse(chunk({"reasoning_details": [summary]}), chunk({"reasoning_details": [secret]}), chunk(finish="stop"))
    part = reply(stream).parts[0]
    assert isinstance(part, Reasoning)
    assert (part.text, part.details) == ("why", [summary, secret])


def test_calls_in_fragments() -> None:
    stream = sse(
        chunk(call(0, id="a", type="function", name="f", arguments="")),
        chunk(call(0, arguments='{"x":')),
        chunk(call(0, arguments="1}")),
        chunk(call(1, id="b", type="function", name="g", arguments="")),
        chunk(call(1, arguments='{"y":2}')),
        chunk(finish="tool_calls"),
    )
    assert calls(stream) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_fragments_pass_on_as_they_come() -> None:
    reader = CHAT.reader()
    reader.feed(sse(chunk(call(0, id="a", name="f")), chunk(call(0, arguments="{")), done=False))
    assert reader.feed(sse(chunk(call(0, arguments='"k"')), done=False)) == [ArgumentsDelta(0, '"k"')]


def test_a_second_call_passes_on_once_the_first_is_whole() -> None:
    reader = CHAT.reader()
    reader.feed(sse(chunk(call(0, id="a", name="f", arguments="{}")), done=False))
    found = reader.feed(sse(chunk(call(1, id="b", name="g", arguments="{")), done=False))
    assert [type(d) for d in found] == [PartEnd, PartBegin, ArgumentsDelta]


@pytest.mark.parametrize(
    "chunks",
    [
        # the id and name with every fragment
        [call(0, id="a", name="f", arguments='{"x"'), call(0, id="a", name="f", arguments=":1}")],
        # empty names, null ids
        [call(0, id="a", name="f"), call(0, id=None, name="", arguments='{"x":1}')],
        # no index
        [call(None, id="a", name="f"), call(None, arguments='{"x":1}')],
        # the name in pieces
        [call(0, id="a", name="f"[:1]), call(0, name="", arguments='{"x":1}')],
        # numbers as text
        [call("0", id="a", name="f", arguments='{"x":1}')],
        # whole in one chunk, arguments as an object
        [call(0, id="a", name="f", arguments={"x": 1})],
    ],
)
def test_one_call_in_odd_fragments(chunks: list[Any]) -> None:
    assert calls(sse(*map(chunk, chunks), chunk(finish="tool_calls"))) == [("a", "f", '{"x":1}')]


def test_a_name_in_pieces_is_announced_once_whole() -> None:
    stream = sse(
        chunk(call(0, id="a", name="get_")),
        chunk(call(0, name="weather")),
        chunk(call(0, arguments="{}")),
        chunk(finish="tool_calls"),
    )
    begins = [d for d in deltas(stream) if isinstance(d, PartBegin)]
    assert [b.part for b in begins] == [ToolCall("a", "get_weather")]


def test_several_whole_calls_under_the_same_index() -> None:
    stream = sse(
        chunk(call(0, id="a", name="f", arguments="{}")),
        chunk(call(0, id="b", name="f", arguments="{}")),
        chunk(call(None, id="c", name="g", arguments="{}")),
        chunk(finish="stop"),
    )
    assert [c[0] for c in calls(stream)] == ["a", "b", "c"]
    assert reply(stream).stop == "tool_calls"


def test_interleaved_calls_are_told_apart() -> None:
    stream = sse(
        chunk(call(0, id="a", name="f", arguments='{"x"')),
        chunk(call(1, id="b", name="g", arguments='{"y"')),
        chunk(call(0, arguments=":1}")),
        chunk(call(1, arguments=":2}")),
        chunk(finish="tool_calls"),
    )
    assert calls(stream) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_text_then_two_calls_the_second_without_arguments() -> None:
    stream = sse(
        chunk({"content": "hi"}),
        chunk(call(0, id="a", name="f", arguments="{}")),
        chunk(call(1, id="b", name="g", arguments="")),
        chunk({"content": "\n"}),
        chunk(finish="tool_calls"),
    )
    assert calls(stream) == [("a", "f", "{}"), ("b", "g", "")]
    assert reply(stream).text == "hi\n"


def test_calls_without_ids_get_distinct_ones() -> None:
    stream = sse(
        chunk(call(0, name="f", arguments="{}")), chunk(call(1, name="f", arguments="{}")), chunk(finish="tool_calls")
    )
    ids = [c[0] for c in calls(stream)]
    assert len(set(ids)) == 2
    assert all(ids)
    assert calls(stream) == calls(stream)


def test_legacy_function_call() -> None:
    stream = sse(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk(finish="function_call"),
    )
    assert [c[1:] for c in calls(stream)] == [("f", "{}")]
    assert reply(stream).stop == "tool_calls"


def test_custom_calls_and_restored_names() -> None:
    custom = {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "p", "input": "raw"}}]}
    assert reply(sse(chunk(custom), chunk(finish="tool_calls"))).calls == (ToolCall("a", "p", "raw", "custom"),)
    conversation = Conversation(
        (), tools=(Tool("p", style="custom"), Tool("g", namespace="ns")), format="openai_responses"
    )
    asked = Request("openai_responses", conversation, Settings("m"))
    stream = sse(
        chunk(call(0, id="a", name="p", arguments='{"input":')),
        chunk(call(0, arguments='"raw"}')),
        chunk(call(1, id="b", name="ns__g", arguments="{}")),
        chunk(finish="tool_calls"),
    )
    in_order(deltas(stream, asked))
    assert reply(stream, asked).calls == (
        ToolCall("a", "p", "raw", "custom"),
        ToolCall("b", "g", "{}", namespace="ns"),
    )


def test_refusal_annotations_logprobs_and_other_choices() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.org", "start_index": 0, "end_index": 1}}
    other = {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}
    stream = sse(
        {**chunk({"content": "x"}), "choices": [chunk({"content": "x"})["choices"][0], other]},
        chunk({"annotations": [cited]}),
        chunk({"refusal": "no"}),
        chunk(finish="content_filter"),
    )
    found = reply(stream)
    assert found.parts == (Text("x", (Citation("https://example.org", None, 0, 1),)), Refusal("no"))
    assert found.stop == "refusal"


def test_a_named_stop_word_is_reported() -> None:
    finish = chunk(finish="stop")
    finish["choices"][0]["stop_reason"] = "END"
    found = reply(sse(chunk({"content": "x"}), finish), request(stop=["END"]))
    assert (found.stop, found.stop_sequence) == ("stop_sequence", "END")
    finish["choices"][0]["stop_reason"] = 128001
    assert reply(sse(chunk({"content": "x"}), finish)).stop == "end"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "maximum context length is 10 tokens", "code": 400}}, "overflow"),
        ({"error": "rate limit exceeded"}, "rate_limit"),
        ({"object": "error", "message": "prompt is too long", "code": 400}, "overflow"),
        ({"detail": "model is loading"}, "unavailable"),
        ({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, "unavailable"),
        ({"id": "c", "choices": [{"index": 0, "delta": {}, "error": {"code": 429, "message": "slow"}}]}, "rate_limit"),
    ],
)
def test_an_error_inside_a_stream_is_a_fault_and_the_last_word(error: Any, kind: str) -> None:
    found = deltas(sse(chunk({"content": "x"}), error, chunk({"content": "y"}), chunk(finish="stop")))
    in_order(found)
    assert isinstance(found[-1], Fault)
    assert found[-1].error.kind == kind


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        sse(chunk({"content": "x"}), done=False),
        sse(chunk({"content": "x"})),
        sse(chunk(call(0, id="a", name="f", arguments="{")), done=False),
        sse(chunk({"content": "x"}), done=False) + b'data: {"id":',
        b"data: <html>\n\n",
        b"data: [1]\n\n",
        b"data: \xff\n\n",
        b"<html>busy</html>",
    ],
)
def test_a_cut_or_broken_stream_is_a_fault(stream: bytes) -> None:
    found = deltas(stream)
    in_order(found)
    assert isinstance(found[-1], Fault)
    assert found[-1].error.kind == "malformed"


def test_a_server_without_terminator_has_finished_when_it_says_why() -> None:
    assert reply(sse(chunk({"content": "x"}), chunk(finish="stop"), done=False)).text == "x"


def test_a_lenient_reader_takes_the_terminator_at_its_word() -> None:
    reader = CHAT.reader(None)
    lenient = type(reader)(lenient=True)
    stream = sse(chunk({"content": "x"}))
    assert isinstance(reader.feed(stream)[-1], Fault)
    assert isinstance(lenient.feed(stream)[-1], End)


def test_a_server_that_ignores_stream_is_understood() -> None:
    body = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    found = reply(msgspec.json.encode(body))
    assert (found.text, found.stop, found.usage) == ("x", "end", Usage(30, 5, cache_read_tokens=70))


pieces = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6), max_size=4)


@given(
    pieces,
    pieces,
    st.lists(st.tuples(st.sampled_from("fgh"), st.sampled_from(["{}", '{"a":[1]}', ""])), max_size=3),
    st.integers(1, 40),
)
def test_stream_then_fold_is_the_buffered_reply(
    thoughts: list[str], texts: list[str], called: list[tuple[str, str]], size: int
) -> None:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    tool_calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(called)
    ]
    if tool_calls:
        message["tool_calls"] = tool_calls
    finish = "tool_calls" if called else "stop"
    chunks = [chunk({"reasoning_content": t}) for t in thoughts] + [chunk({"content": t}) for t in texts]
    for i, (name, arguments) in enumerate(called):
        chunks.append(chunk(call(i, id=f"c{i}", type="function", name=name, arguments="")))
        chunks += [chunk(call(i, arguments=arguments[j : j + 2])) for j in range(0, len(arguments), 2)]
    stream = sse(*chunks, chunk(finish=finish), {**chunk(), "choices": [], "usage": USAGE})
    body = {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "usage": USAGE}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    buffered = CHAT.read_reply(msgspec.json.encode({**body, "choices": choices}))
    found = deltas(stream, size=size)
    in_order(found)
    assert found == deltas(stream)
    streamed = reply(stream)
    assert msgspec.structs.replace(buffered, frames=None) == streamed
