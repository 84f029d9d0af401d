# ruff: noqa: E501 - small bodies stand on one line each
"""What agents rely on when a request or a reply crosses from one format to another, pair by pair."""

from typing import Any

import msgspec
import pytest

from tests.wire.laws import asked, instructions, read_all, said, streamed, written
from turnout.conversation import (
    Conversation,
    Image,
    Media,
    Message,
    OutputFormat,
    Reasoning,
    Reply,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
    unfold,
)
from turnout.errors import ClientError
from turnout.wire import CODECS
from turnout.wire.codec import Codec, Request
from turnout.wire.drops import refuse_drops

CHAT, MESSAGES, RESPONSES = (CODECS[f] for f in ("openai_chat", "anthropic_messages", "openai_responses"))
SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}, "required": ["z", "a"]}
HI = (Message("user", (Text("hi"),)),)

pairs = pytest.mark.parametrize(
    ("source", "target"),
    [pytest.param(s, t, id=f"{s.format}-{t.format}") for s in CODECS.values() for t in CODECS.values()],
)
crossings = pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(s, t, id=f"{s.format}-{t.format}")
        for s in CODECS.values()
        for t in CODECS.values()
        if s is not t  # a relay changes nothing
    ],
)
formats = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())


def carried(source: Codec, target: Codec, conversation: Conversation, settings: Settings | None = None) -> Request:
    """The request as a target reads it that a client of `source` has made."""
    first = source.write_request(Request(source.format, conversation, settings or Settings(model="m", max_tokens=99)))
    return target.read_request(target.write_request(source.read_request(first.body)).body)


def body(codec: Codec, value: dict[str, Any], source: Codec) -> dict[str, Any]:
    """The body in a format of a request that came as `value` in the source's."""
    request = source.read_request(msgspec.json.encode(value))
    written: dict[str, Any] = msgspec.json.decode(codec.write_request(request, default_max_tokens=99).body)
    return written


# Tools


@pairs
@pytest.mark.parametrize("strict", [True, False, None])
def test_whether_a_tool_is_strict_arrives_as_said(source, target, strict):
    tool = Tool("f", "what it does", {**SCHEMA, "additionalProperties": False}, strict=strict)
    (arrived,) = carried(source, target, Conversation(HI, tools=(tool,))).conversation.tools
    assert (arrived.name, arrived.description) == ("f", "what it does")
    # Responses takes silence for strict, so what the others leave unsaid is said there.
    unsaid = (None, False) if RESPONSES in (source, target) else (None,)
    assert arrived.strict in ((strict,) if strict is not None else unsaid)
    assert msgspec.json.encode(arrived.parameters) == msgspec.json.encode(tool.parameters)


@pairs
@pytest.mark.parametrize("mode", ["auto", "required", "none", "named"])
@pytest.mark.parametrize("parallel", [True, False, None])
def test_the_choice_of_a_tool_and_parallel_calls_arrive_as_said(source, target, mode, parallel):
    choice = ToolChoice(mode, name="g" if mode == "named" else None)
    settings = Settings(model="m", max_tokens=99, tool_choice=choice, parallel=parallel)
    tools = (Tool("f", None, SCHEMA), Tool("g", None, SCHEMA))
    arrived = carried(source, target, Conversation(HI, tools=tools), settings).settings
    assert arrived.tool_choice is not None
    assert (arrived.tool_choice.mode, arrived.tool_choice.name) == (mode, choice.name)
    if not (mode == "none" and MESSAGES in (source, target)):  # nothing is called: Messages has no place for the flag
        assert arrived.parallel is not True or parallel is True
        assert (arrived.parallel is False) == (parallel is False)


@crossings
def test_without_tools_there_is_no_choice(source, target):
    value = {"openai_chat": "auto", "openai_responses": "auto", "anthropic_messages": {"type": "auto"}}[source.format]
    first = msgspec.json.decode(
        source.write_request(Request(source.format, Conversation(HI), Settings(model="m", max_tokens=9))).body
    )
    for tools in ({}, {"tools": []}):
        assert "tool_choice" not in body(target, {**first, **tools, "tool_choice": value}, source)


LONG = "mcp__a_server_with_a_rather_long_name__" + "and_a_tool_with_an_even_longer_name_" * 3


@crossings
def test_a_name_too_long_for_a_provider_is_the_same_every_turn_and_restored(source, target):
    history = (
        *HI,
        Message("assistant", (ToolCall("c1", LONG, "{}"),)),
        Message("tool", (ToolResult("c1", (Text("ok"),)),)),
    )
    request = source.read_request(
        source.write_request(
            Request(
                source.format,
                Conversation(history, tools=(Tool(LONG, None, SCHEMA),), format=source.format),
                Settings(model="m", max_tokens=9),
            )
        ).body
    )
    arrived = target.read_request(target.write_request(request).body).conversation
    (tool,) = arrived.tools
    assert len(tool.name) <= 64
    assert [x[2] for x in said(arrived) if x[0] == "call"] == [tool.name]
    answer = Reply((ToolCall("c2", tool.name, "{}"),), "tool_calls", Usage(1, 1), id="x", model="m")
    reply = target.read_reply(target.write_reply(answer, asked(target, stream=False), "m").body, request)
    assert [c.name for c in reply.calls] == [LONG]
    stream = written(target, list(unfold(answer)), asked(target))
    assert [c.name for c in streamed(target, stream, request).calls] == [LONG]


@pytest.mark.parametrize("target", [CHAT, MESSAGES], ids=["openai_chat", "anthropic_messages"])
def test_two_namespaces_with_a_tool_of_the_same_name_keep_their_owner(target):
    spaces = [
        {
            "type": "namespace",
            "name": n,
            "description": "d",
            "tools": [{"type": "function", "name": "search", "parameters": SCHEMA}],
        }
        for n in ("web", "docs")
    ]
    request = RESPONSES.read_request(
        msgspec.json.encode({"model": "m", "input": "hi", "tools": spaces, "stream": True})
    )
    offered = target.read_request(target.write_request(request, default_max_tokens=9).body).conversation.tools
    assert len({tool.name for tool in offered}) == 2
    calls = tuple(ToolCall(f"c{i}", tool.name, "{}") for i, tool in enumerate(offered))
    answer = Reply(calls, "tool_calls", Usage(1, 1), id="x", model="m")
    for reply in (
        target.read_reply(target.write_reply(answer, asked(target, stream=False), "m").body, request),
        streamed(target, written(target, list(unfold(answer)), asked(target)), request),
    ):
        assert [(c.namespace, c.name) for c in reply.calls] == [("web", "search"), ("docs", "search")]
        items = msgspec.json.decode(RESPONSES.write_reply(reply, request, "m").body)["output"]
        assert [(i["type"], i["name"], i["namespace"]) for i in items] == [
            ("function_call", "search", "web"),
            ("function_call", "search", "docs"),
        ]


@pytest.mark.parametrize("target", [CHAT, MESSAGES], ids=["openai_chat", "anthropic_messages"])
def test_a_freeform_tool_is_emulated_and_its_call_comes_back_freeform(target):
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch"}
    tools = [{"type": "custom", "name": "apply_patch", "description": "edits", "format": grammar}]
    request = RESPONSES.read_request(msgspec.json.encode({"model": "m", "input": "hi", "tools": tools, "stream": True}))
    out = target.write_request(request, default_max_tokens=9)
    refuse_drops(out.drops)
    (tool,) = target.read_request(out.body).conversation.tools
    if tool.style == "function":
        assert list((tool.parameters or {})["properties"]) == ["input"]
        assert "begin_patch" in (tool.description or "")
        raw = '{"input":"*** Begin Patch\\n\\"é\\""}'
    else:
        raw = '*** Begin Patch\n"é"'
    answer = Reply((ToolCall("c", "apply_patch", raw, tool.style),), "tool_calls", Usage(1, 1), id="x", model="m")
    stream = written(target, list(unfold(answer)), asked(target))
    for reply in (
        target.read_reply(target.write_reply(answer, asked(target, stream=False), "m").body, request),
        streamed(target, stream, request),
    ):
        (call,) = reply.calls
        assert (call.style, call.name, call.arguments) == ("custom", "apply_patch", '*** Begin Patch\n"é"')
    native = written(RESPONSES, read_all(target.reader(request), [stream]), request)
    assert b'"type":"custom_tool_call"' in native
    assert b'"type":"function_call"' not in native


@pairs
def test_an_image_in_a_tool_result_reaches_the_model_as_an_image(source, target):
    picture = Image(Media("base64", "iVBORw0KGgo=", "image/png"))
    result = ToolResult("c1", (Text("see"), picture), text_only=False)
    history = (*HI, Message("assistant", (ToolCall("c1", "shot", "{}"),)), Message("tool", (result,)))
    first = MESSAGES.read_request(
        MESSAGES.write_request(Request(MESSAGES.format, Conversation(history), Settings(model="m"))).body
    )
    there = source.read_request(source.write_request(first).body)
    arrived = target.write_request(there, default_max_tokens=9).body
    assert arrived.count(b"iVBORw0KGgo=") == 1
    kinds = {"openai_chat": b'"image_url"', "openai_responses": b'"input_image"', "anthropic_messages": b'"image"'}
    assert kinds[target.format] in arrived


@pytest.mark.parametrize("target", [CHAT, MESSAGES], ids=["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("kind", ["local_shell_call", "shell_call", "apply_patch_call", "computer_call"])
def test_the_history_of_a_built_in_tool_is_refused_and_never_told_as_text(target, kind):
    item = {
        "type": kind,
        "call_id": "c",
        "id": "i",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"]},
    }
    value = {
        "model": "m",
        "input": [{"role": "user", "content": "hi"}, item, {"type": f"{kind}_output", "call_id": "c", "output": "x"}],
    }
    with pytest.raises(ClientError) as caught:
        body(target, value, RESPONSES)
    assert caught.value.status == 400
    assert caught.value.code.startswith("unsupported")
    assert body(RESPONSES, value, RESPONSES)["input"] == value["input"]


# Settings


@pairs
def test_structured_output_arrives_with_its_schema_in_order(source, target):
    output = OutputFormat("json_schema", name="answer", schema={**SCHEMA, "additionalProperties": False})
    settings = Settings(model="m", max_tokens=99, output=output)
    arrived = carried(source, target, Conversation(HI), settings).settings.output
    assert arrived is not None
    assert arrived.kind == "json_schema"
    assert msgspec.json.encode(arrived.schema) == msgspec.json.encode(output.schema)
    if target is not MESSAGES:
        assert arrived.name


@pairs
def test_stop_words_arrive_or_are_reported(source, target):
    settings = Settings(model="m", max_tokens=99, stop=("END", "STOP"))
    first = source.write_request(Request(source.format, Conversation(HI), settings))
    if source is RESPONSES:
        return  # such a client cannot say them
    out = target.write_request(source.read_request(first.body))
    if target is RESPONSES:
        assert {d.path for d in out.drops} & {"stop", "stop_sequences"}
    else:
        assert target.read_request(out.body).settings.stop == ("END", "STOP")


@pairs
def test_identity_of_the_user_stays_with_its_vendor(source, target):
    users = {
        "openai_chat": {"safety_identifier": "u-secret"},
        "openai_responses": {"safety_identifier": "u-secret"},
        "anthropic_messages": {"metadata": {"user_id": "u-secret"}},
    }
    first = msgspec.json.decode(
        source.write_request(Request(source.format, Conversation(HI), Settings(model="m", max_tokens=9))).body
    )
    out = target.write_request(source.read_request(msgspec.json.encode({**first, **users[source.format]})))
    same_vendor = (source is MESSAGES) == (target is MESSAGES)
    assert (b"u-secret" in out.body) == same_vendor
    if not same_vendor:
        assert any(d.path.startswith(("metadata", "safety_identifier")) for d in out.drops)


@pytest.mark.parametrize("source", [CHAT, RESPONSES], ids=["openai_chat", "openai_responses"])
def test_fields_of_messages_are_not_smuggled_in_by_a_client_of_another_format(source):
    smuggled = {
        "container": "c",
        "mcp_servers": [],
        "context_management": {"edits": []},
        "thinking": {"type": "enabled"},
    }
    first = msgspec.json.decode(
        source.write_request(Request(source.format, Conversation(HI), Settings(model="m", max_tokens=9))).body
    )
    request = source.read_request(msgspec.json.encode({**first, **smuggled, "stop_sequences": ["x"]}))
    out = MESSAGES.write_request(request)
    assert not {*smuggled, "stop_sequences"} & set(msgspec.json.decode(out.body))
    assert {"container", "mcp_servers", "context_management", "thinking", "stop_sequences"} <= {
        d.path for d in out.drops
    }


@formats
@pytest.mark.parametrize("role", ["robot", "", 7, None])
def test_an_unknown_role_is_refused_where_it_stands(codec, role):
    field = "input" if codec is RESPONSES else "messages"
    value = {"model": "m", "max_tokens": 9, field: [{"role": "user", "content": "hi"}, {"role": role, "content": "x"}]}
    with pytest.raises(ClientError) as caught:
        list(codec.read_request(msgspec.json.encode(value)).conversation.messages)
    assert f"{field}[1]" in f"{caught.value.param} {caught.value.message}"


@pairs
def test_instructions_reach_the_model_once_and_in_order(source, target):
    conversation = Conversation(HI, system=(Text("one"), Text("two")), system_flat=False)
    assert instructions(carried(source, target, conversation).conversation) == ["one", "two"]


# Replies


@pairs
@pytest.mark.parametrize("stop", ["end", "length", "tool_calls", "refusal"])
def test_why_a_model_stopped_means_the_same_everywhere(source, target, stop):
    parts = (Text("so"), ToolCall("c", "f", "{}")) if stop == "tool_calls" else (Text("so"),)
    reply = Reply(parts, stop, Usage(3, 4), id="x", model="m")
    there = source.read_reply(source.write_reply(reply, asked(source, stream=False), "m").body)
    assert there.stop == stop
    assert target.read_reply(target.write_reply(there, asked(target, stream=False), "m").body).stop == stop
    stream = written(source, list(unfold(reply)), asked(source))
    deltas = read_all(source.reader(), [stream])
    assert streamed(target, written(target, deltas, asked(target))).stop == stop


@pytest.mark.parametrize("target", [CHAT, RESPONSES], ids=["openai_chat", "openai_responses"])
def test_a_paused_turn_is_never_passed_off_as_finished_without_a_word(target):
    reply = Reply((Text("so"),), "pause", Usage(3, 4), id="x", model="m", format="anthropic_messages")
    assert target.write_reply(reply, asked(target, stream=False), "m").drops


@pairs
def test_cached_tokens_are_counted_once_everywhere(source, target):
    usage = Usage(30, 20, cache_read_tokens=70, reasoning_tokens=5)
    reply = Reply((Text("so"),), "end", usage, id="x", model="m")
    there = source.read_reply(source.write_reply(reply, asked(source, stream=False), "m").body)
    arrived = target.write_reply(there, asked(target, stream=False), "m").body
    counted = msgspec.json.decode(arrived)["usage"]
    if target is MESSAGES:
        assert (counted["input_tokens"], counted["cache_read_input_tokens"], counted["output_tokens"]) == (30, 70, 20)
    elif target is CHAT:
        assert (counted["prompt_tokens"], counted["prompt_tokens_details"]["cached_tokens"]) == (100, 70)
        assert (counted["completion_tokens"], counted["total_tokens"]) == (20, 120)
    else:
        assert (counted["input_tokens"], counted["input_tokens_details"]["cached_tokens"]) == (100, 70)
        assert counted["output_tokens_details"]["reasoning_tokens"] == 5
        assert (counted["output_tokens"], counted["total_tokens"]) == (20, 120)
    read = target.read_reply(arrived).usage
    assert read is not None
    assert (read.input_tokens, read.cache_read_tokens, read.reasoning_tokens) == (30, 70, 5)


@formats
def test_usage_nobody_stated_is_unknown_and_not_zero(codec):
    bodies = {
        "openai_chat": {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "so"}}]},
        "openai_responses": {"id": "x", "object": "response", "model": "m", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so", "annotations": []}]}]},
        "anthropic_messages": {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "so"}], "stop_reason": "end_turn"},
    }  # fmt: skip
    assert codec.read_reply(msgspec.json.encode(bodies[codec.format])).usage in (None, Usage())


@pairs
def test_text_then_two_calls_the_second_without_arguments_come_one_after_the_other(source, target):
    parts = (Text("both"), ToolCall("c1", "f", '{"a": 1.0, "b": "é"}'), ToolCall("c2", "g", ""))
    reply = Reply(parts, "tool_calls", Usage(1, 2), id="x", model="m")
    stream = written(source, list(unfold(reply)), asked(source))
    deltas = read_all(source.reader(), [stream[i : i + 11] for i in range(0, len(stream), 11)])
    arrived = streamed(target, written(target, deltas, asked(target)))
    assert arrived.text == "both"
    assert [(c.id, c.name, c.arguments or "{}") for c in arrived.calls] == [
        ("c1", "f", '{"a": 1.0, "b": "é"}'),  # byte for byte, as the model wrote it
        ("c2", "g", "{}"),
    ]


@pairs
def test_reasoning_is_shown_before_the_text_and_not_mixed_into_it(source, target):
    reply = Reply((Reasoning("hm"), Text("so")), "end", Usage(1, 2), id="x", model="m")
    deltas = read_all(source.reader(), [written(source, list(unfold(reply)), asked(source))])
    arrived = streamed(target, written(target, deltas, asked(target)))
    assert [(type(p), p.text) for p in arrived.parts if isinstance(p, Reasoning | Text) and p.text] == [
        (Reasoning, "hm"),
        (Text, "so"),
    ]


@pairs
def test_the_model_that_served_is_the_one_the_gateway_names(source, target):
    reply = Reply((Text("so"),), "end", Usage(1, 2), id="x", model="inner")
    there = source.read_reply(source.write_reply(reply, asked(source, stream=False), "inner").body)
    assert there.model == "inner"
    assert target.read_reply(target.write_reply(there, asked(target, stream=False), "served").body).model == "served"
    stream = written(
        target,
        read_all(source.reader(), [written(source, list(unfold(reply)), asked(source), "inner")]),
        asked(target),
        "served",
    )
    assert streamed(target, stream).model == "served"
    assert b"inner" not in stream


@pytest.mark.parametrize("target", CODECS.values(), ids=CODECS.keys())
def test_a_stream_of_responses_has_one_terminal_and_rising_numbers_whatever_it_came_from(target):
    reply = Reply((Reasoning("hm"), Text("so"), ToolCall("c", "f", "{}")), "tool_calls", Usage(1, 2), id="x", model="m")
    deltas = read_all(target.reader(), [written(target, list(unfold(reply)), asked(target))])
    stream = written(RESPONSES, deltas, asked(RESPONSES))
    events = [msgspec.json.decode(line[6:]) for line in stream.splitlines() if line.startswith(b"data: ")]
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    assert [e["type"] for e in events if e["type"].startswith("response.") and e["type"].count(".") == 1][
        -1
    ] == "response.completed"
    assert sum(e["type"] in ("response.completed", "response.incomplete", "response.failed") for e in events) == 1
    usage = events[-1]["response"]["usage"]
    assert {"input_tokens_details", "output_tokens_details", "total_tokens"} <= set(usage)
