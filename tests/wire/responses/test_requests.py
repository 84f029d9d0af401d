"""Requests of Responses: every item, tool and setting in, and out again."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests import native, strategies
from tests.recorded import captures, needs_recordings
from turnout.conversation import (
    Conversation,
    Document,
    Image,
    Media,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire.codec import Request
from turnout.wire.responses import RESPONSES

CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}


def read(**body: Any) -> Request:
    return RESPONSES.read_request(msgspec.json.encode({"model": "m", "input": "hi", **body}))


def item(value: dict[str, Any]) -> Message:
    return read(input=[value]).conversation.messages[0]


def rebuilt(request: Request) -> Request:
    """The request with nothing left to copy from: every message and tool decoded."""
    conversation = msgspec.structs.replace(
        request.conversation, messages=tuple(request.conversation.messages), tools=tuple(request.conversation.tools)
    )
    return msgspec.structs.replace(request, conversation=conversation)


def body(request: Request) -> Any:
    return msgspec.json.decode(RESPONSES.write_request(request).body)


def written(conversation: Conversation, **settings: Any) -> Any:
    source = conversation.format or "openai_chat"
    return body(Request(source, conversation, Settings(model="m", **settings)))


def told(request: Request) -> list[Message]:
    """The messages; a call without arguments is one with an empty object."""

    def full(part: Any) -> Any:
        return msgspec.structs.replace(part, arguments=part.arguments or "{}") if isinstance(part, ToolCall) else part

    return [msgspec.structs.replace(m, parts=tuple(map(full, m.parts))) for m in request.conversation.messages]


ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "hi"},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be brief"}], "id": "msg_1"},
    {
        "type": "message",
        "id": "msg_2",
        "status": "completed",
        "role": "assistant",
        "content": [
            {
                "type": "output_text",
                "text": "see",
                "annotations": [
                    {"type": "url_citation", "url": "https://a.b", "title": "t", "start_index": 0, "end_index": 3},
                    {"type": "file_citation", "file_id": "f", "filename": "n", "index": 1},
                ],
                "logprobs": [{"token": "see", "logprob": -1.0, "bytes": [1], "top_logprobs": []}],
            },
            {"type": "refusal", "refusal": "no"},
        ],
        "phase": "commentary",
    },
    {"type": "message", "role": "assistant", "content": " \n"},
    {"type": "message", "role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "low"}]},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_image", "image_url": "data:image/svg+xml,%3Csvg/%3E"},
            {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="},
            {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"},
            {"type": "input_file", "file_url": "https://a.b/c.pdf", "detail": "high"},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "input_hologram", "depth": 3},
        ],
    },
    {"type": "message", "role": "user", "content": [{"type": "input_hologram", "depth": 3}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": t} for t in ("a", "b")]},
    {**CALL, "id": "fc_1", "status": "completed", "namespace": "ns", "caller": {"type": "direct"}},
    {**OUTPUT, "id": "fco_1", "name": "f", "namespace": "ns"},
    {**OUTPUT, "output": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "https://a.b/i"}]},
    {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin", "id": "ctc_1"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "Done"},
    {"type": "local_shell_call", "id": "x", "call_id": "c3", "action": {"type": "exec"}, "status": "completed"},
    {"type": "local_shell_call_output", "id": "x", "call_id": "c3", "output": "{}"},
    {"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "c4", "output": []},
    {"type": "apply_patch_call", "call_id": "c5", "status": "completed", "operation": {"type": "delete_file"}},
    {"type": "apply_patch_call_output", "call_id": "c5", "status": "completed"},
    {"type": "computer_call", "id": "x", "call_id": "c6", "action": {"type": "click"}},
    {"type": "computer_call_output", "call_id": "c6", "output": {"type": "computer_screenshot"}},
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "fs", "queries": ["q"], "status": "completed"},
    {"type": "code_interpreter_call", "id": "ci", "code": "1", "container_id": "c", "status": "completed"},
    {"type": "image_generation_call", "id": "ig", "result": "AAAA", "status": "completed"},
    {"type": "mcp_list_tools", "id": "ml", "server_label": "s", "tools": []},
    {"type": "mcp_call", "id": "mc", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
    {"type": "mcp_approval_request", "id": "ma", "server_label": "s", "name": "n", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "ma", "approve": True},
    {"type": "tool_search_call", "call_id": "c7", "arguments": {"query": "q"}, "execution": "client"},
    {"type": "tool_search_output", "call_id": "c7", "tools": [{"type": "function", "name": "found"}]},
    {"type": "compaction", "id": "cmp", "encrypted_content": "xyz"},
    {"type": "compaction_trigger"},
    {"type": "item_reference", "id": "msg_9"},
    {"id": "msg_8"},
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "extra"}]},
    {"type": "something_new", "payload": {"z": 1, "a": [None]}},
]


@pytest.mark.parametrize("value", ITEMS, ids=lambda v: v.get("type", "untyped"))
def test_every_item_is_written_as_it_was_read(value):
    request = read(input=[value], previous_response_id="resp_1")
    assert body(request)["input"] == [value]
    assert body(rebuilt(request))["input"] == [value]
    assert RESPONSES.write_request(rebuilt(request)).drops == ()


def test_a_whole_history_is_written_as_it_was_read():
    request = read(input=ITEMS)
    assert body(rebuilt(request))["input"] == ITEMS


@given(native.responses_bodies())
def test_a_rebuilt_request_reads_as_the_same(value):
    request = RESPONSES.read_request(native.encoded(value))
    again = RESPONSES.read_request(RESPONSES.write_request(rebuilt(request)).body)
    assert told(again) == told(request)
    assert list(again.conversation.tools) == list(request.conversation.tools)
    assert again.conversation.system == request.conversation.system
    assert again.settings == request.settings


@needs_recordings
def test_every_recorded_request_is_written_as_it_was_sent_also_when_rebuilt():
    for row in captures():
        if row["protocol"] == "openai_responses" and row["request"]:
            request = RESPONSES.read_request(msgspec.json.encode(row["request"]))
            assert body(request) == {k: v for k, v in row["request"].items() if v is not None and v is not False}
            again = RESPONSES.read_request(RESPONSES.write_request(rebuilt(request)).body)
            assert again.conversation.messages == request.conversation.messages, row["id"]
            assert list(again.conversation.tools) == list(request.conversation.tools), row["id"]


def test_an_item_without_a_type_is_told_by_its_shape():
    conversation = read(input=[{"role": "system", "content": "s"}, {"id": "msg_1"}]).conversation
    assert list(conversation.roles) == ["system", "assistant"]
    assert conversation.messages[0] == Message("system", (Text("s"),), flat=True)
    assert isinstance(conversation.messages[1].parts[0], Opaque)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": None}, "input"),
        ({"input": True}, "input"),
        ({"input": {}}, "input"),
        ({"input": [1]}, "input[0]"),
        ({"input": [{"content": "x"}]}, "input[0]"),
        ({"input": [{"role": "captain", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": 1, "content": "x"}]}, "input[0].role"),
        ({"instructions": 3}, "instructions"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"max_output_tokens": "5"}, "max_output_tokens"),
        ({"model": 5}, "model"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort"),
        ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"conversation": {}}, "conversation.id"),
    ],
    ids=str,
)
def test_a_malformed_field_is_named(body, param):
    with pytest.raises(ClientError) as caught:
        read(**body)
    assert caught.value.param == param
    assert param in caught.value.message
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({"role": "user", "content": {"type": "shell_call"}}, "input[0].content"),
        ({"role": "user", "content": [{"type": "shell_call"}]}, "input[0].content[0]"),
        ({"role": "user", "content": [{"type": "computer_call_output"}]}, "input[0].content[0]"),
        ({"role": "user", "content": ["x"]}, "input[0].content[0]"),
        ({"role": "user", "content": [{"text": "x"}]}, "input[0].content[0].type"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[0].content[0].text"),
        ({"role": "user", "content": [{"type": "input_image"}]}, "input[0].content[0].image_url"),
        ({"role": "user", "content": [{"type": "input_file"}]}, "input[0].content[0]"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "input[0].name"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[0].call_id"),
    ],
    ids=str,
)
def test_a_malformed_item_is_named_when_it_is_looked_at(value, param):
    request = read(input=[value])
    with pytest.raises(ClientError) as caught:
        list(request.conversation.messages)
    assert caught.value.param == param


def test_reasoning_text_is_kept_as_summary_without_content():
    value = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert item(value).parts == (Reasoning("hm", id="rs_1", origin="openai_responses"),)
    assert body(rebuilt(read(input=[value])))["input"] == [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    ]


TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "f", "description": "d", "strict": None, "parameters": native.SCHEMA, "async": True},
    {"type": "custom", "name": "apply_patch", "description": "d", "format": {"type": "grammar", "syntax": "lark"}},
    {
        "type": "namespace",
        "name": "agents",
        "description": "about agents",
        "tools": [{"type": "function", "name": "f", "strict": False, "parameters": native.SCHEMA}],
    },
    {"type": "web_search", "external_web_access": True},
    {"type": "mcp", "server_label": "s", "server_url": "https://a.b"},
    {"type": "local_shell"},
]


def test_tools_are_read_by_kind_and_written_back():
    request = read(tools=TOOLS)
    tools = list(request.conversation.tools)
    assert [(t.name, t.style, t.namespace) for t in tools] == [
        ("f", "function", None),
        ("apply_patch", "custom", None),
        ("f", "function", "agents"),
        ("web_search", "server", None),
        ("mcp", "server", None),
        ("local_shell", "server", None),
    ]
    assert tools[1].grammar == {"type": "grammar", "syntax": "lark"}
    assert tools[2].namespace_description == "about agents"
    assert body(request)["tools"] == TOOLS
    assert body(rebuilt(request))["tools"] == [{k: v for k, v in t.items() if v is not None} for t in TOOLS]


@pytest.mark.parametrize(
    "value",
    [
        {"id": "f", "description": "d", "inputSchema": {"jsonSchema": native.SCHEMA}},
        {"name": "f", "description": "d", "parameters": native.SCHEMA},
        {"name": "f", "description": "d", "input_schema": native.SCHEMA},
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": native.SCHEMA}},
    ],
)
def test_other_spellings_of_a_function_are_understood(value):
    assert list(read(tools=[value]).conversation.tools) == [Tool("f", "d", native.SCHEMA)]


@pytest.mark.parametrize("value", [{"id": " "}, {"type": "function"}, {"type": "function", "name": ""}, {}])
def test_a_tool_without_a_name_is_left_out(value):
    assert list(read(tools=[value]).conversation.tools) == []


def test_tools_of_a_developer_item_are_the_tools_and_stay_there():
    carrier = {"type": "additional_tools", "role": "developer", "tools": [TOOLS[0], TOOLS[1]]}
    request = read(input=[carrier, {"role": "user", "content": "hi"}])
    assert [t.name for t in request.conversation.tools] == ["f", "apply_patch"]
    for copy in (request, rebuilt(request)):
        assert body(copy)["input"][0] == carrier
        assert "tools" not in body(copy)


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ("none", ToolChoice("none")),
        ({"type": "function", "name": "f"}, ToolChoice("named", "f")),
        ({"type": "custom", "name": "apply_patch"}, ToolChoice("named", "apply_patch", style="custom")),
        ({"type": "web_search"}, ToolChoice("raw", raw={"type": "web_search"})),
    ],
    ids=str,
)
def test_a_choice_is_read_and_written_back(value, choice):
    request = read(tools=TOOLS, tool_choice=value)
    assert request.settings.tool_choice == choice
    assert body(rebuilt(request))["tool_choice"] == value


@pytest.mark.parametrize(
    "value",
    [
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
        },
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
    ],
)
def test_allowed_tools_are_read_in_both_spellings_and_kept(value):
    request = read(tools=TOOLS, tool_choice=value)
    choice = request.settings.tool_choice
    assert choice is not None
    assert (choice.mode, choice.names, choice.allowed_mode) == ("allowed", ("f",), "required")
    assert body(request)["tool_choice"] == value


def test_server_state_lands_in_the_settings():
    settings = read(
        store=True, background=True, previous_response_id="resp_1", conversation={"id": "conv_1"}, prompt_cache_key="k"
    ).settings
    assert (settings.store, settings.background, settings.previous_response_id) == (True, True, "resp_1")
    assert (settings.conversation_id, settings.prompt_cache_key, settings.stream_usage) == ("conv_1", "k", True)


def test_input_may_only_be_missing_where_the_server_knows_it():
    assert len(RESPONSES.read_request(b'{"model":"m","previous_response_id":"resp_1"}').conversation.messages) == 0
    with pytest.raises(ClientError, match="input is missing"):
        RESPONSES.read_request(b'{"model":"m"}')


# From other formats


def test_parallel_calls_and_results_become_pairs_in_the_order_of_the_results():
    result = written(
        Conversation(
            (
                Message("user", (Text("go"),)),
                Message("assistant", (Text("ok"), ToolCall("a", "f", "{}"), ToolCall("b", "p", "raw", style="custom"))),
                Message("tool", (ToolResult("b", (Text("2"),), style="custom"),)),
                Message("tool", (ToolResult("a", (Text("1"),)),)),
            ),
            tools=(Tool("f"), Tool("p", style="custom")),
            format="openai_chat",
        )
    )
    assert [(i["type"], i.get("call_id"), i.get("name")) for i in result["input"]] == [
        ("message", None, None),
        ("message", None, None),
        ("custom_tool_call", "b", "p"),
        ("custom_tool_call_output", "b", None),
        ("function_call", "a", "f"),
        ("function_call_output", "a", "f"),
    ]


def test_no_result_moves_across_what_the_user_said():
    result = written(
        Conversation(
            (
                Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))),
                Message("user", (ToolResult("a", (Text("1"),)), Text("wait"))),
                Message("user", (ToolResult("b", (Text("2"),)),)),
            ),
            format="anthropic_messages",
        )
    )
    assert [i.get("call_id", i.get("content")) for i in result["input"]] == ["a", "a", "b", "wait", "b"]


def test_what_lost_its_counterpart_becomes_text_unless_the_server_may_hold_it():
    conversation = Conversation(
        (
            Message("tool", (ToolResult("gone", (Text("42"),)),)),
            Message("assistant", (ToolCall("open", "f", '{"a":1}'),)),
            Message("user", (Text("hi"),)),
        ),
        format="openai_chat",
    )
    request = Request("openai_chat", conversation, Settings(model="m"))
    done = RESPONSES.write_request(request)
    items = msgspec.json.decode(done.body)["input"]
    assert [(i["type"], i["role"]) for i in items] == [
        ("message", "user"),
        ("message", "assistant"),
        ("message", "user"),
    ]
    assert "42" in items[0]["content"]
    assert '{"a":1}' in items[1]["content"]
    assert [(d.path, d.how) for d in done.drops] == [
        ("messages[0]", "downgraded"),
        ("messages[1].tool_calls[0]", "downgraded"),
    ]
    kept = written(conversation, previous_response_id="resp_1")["input"]
    assert [i["type"] for i in kept] == ["function_call_output", "function_call", "message"]


def test_thinking_of_another_provider_is_left_out_and_the_text_around_it_kept():
    parts = (
        Reasoning("secret", signature="sig", origin="anthropic_messages"),
        Text("visible"),
        Reasoning(redacted=True, encrypted="x", origin="anthropic_messages"),
    )
    conversation = Conversation((Message("assistant", parts),), format="anthropic_messages")
    done = RESPONSES.write_request(Request("anthropic_messages", conversation, Settings(model="m")))
    assert b"secret" not in done.body
    assert [i["content"] for i in msgspec.json.decode(done.body)["input"]] == ["visible"]
    assert [d.path for d in done.drops] == ["messages[0].content[0]", "messages[0].content[2]"]


def test_reasoning_of_a_chat_model_is_left_out_where_its_source_had_it():
    parts = (Reasoning("hm", origin="openai_chat", details=[{"type": "reasoning.text"}]), Text("x"), ToolCall("c", "f"))
    messages = (
        Message("assistant", parts),
        Message("tool", (ToolResult("c", (Text("ok", cache={"type": "ephemeral"}),), text_only=False),)),
    )
    done = RESPONSES.write_request(
        Request("openai_chat", Conversation(messages, format="openai_chat"), Settings(model="m"))
    )
    assert [d.path for d in done.drops] == [
        "messages[0].reasoning_content",
        "messages[0].reasoning_details",
        "messages[1].content[0].cache_control",
    ]


def test_an_unknown_block_is_given_as_its_json_never_raw():
    opaque = Opaque("anthropic_messages", "server_tool_use", {"type": "server_tool_use", "id": "s"})
    done = RESPONSES.write_request(
        Request(
            "anthropic_messages",
            Conversation((Message("assistant", (opaque,)),), format="anthropic_messages"),
            Settings(model="m"),
        )
    )
    (message,) = msgspec.json.decode(done.body)["input"]
    assert message["content"] == '{"type":"server_tool_use","id":"s"}'
    assert [(d.path, d.how) for d in done.drops] == [("messages[0].content[0]", "downgraded")]


def test_media_in_a_tool_result_stays_media():
    image = Image(Media("base64", "AAAA", "image/png"), cache={"type": "ephemeral"})
    document = Document(Media("text", "words", "text/plain"), name="notes")
    done = RESPONSES.write_request(
        Request(
            "anthropic_messages",
            Conversation(
                (
                    Message("assistant", (ToolCall("a", "f", "{}"),)),
                    Message("user", (ToolResult("a", (Text("see"), image, document), text_only=False, is_error=True),)),
                ),
                format="anthropic_messages",
            ),
            Settings(model="m"),
        )
    )
    output = msgspec.json.decode(done.body)["input"][1]["output"]
    assert output == [
        {"type": "input_text", "text": "<tool_use_error>see</tool_use_error>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "filename": "notes", "file_data": "data:text/plain;base64,d29yZHM="},
    ]
    assert sorted(d.path for d in done.drops) == [
        "messages[1].content[0].content[1].cache_control",
        "messages[1].content[0].is_error",
    ]


def test_an_empty_failure_says_that_it_is_one():
    conversation = Conversation(
        (
            Message("assistant", (ToolCall("a", "f", "{}"),)),
            Message("user", (ToolResult("a", (), is_error=True),)),
        ),
        format="anthropic_messages",
    )
    assert written(conversation)["input"][1]["output"] == "<tool_use_error></tool_use_error>"


def test_a_document_without_a_name_reads_back_without_one():
    document = Document(Media("base64", "AAAA", "application/pdf"))
    conversation = Conversation((Message("user", (document, Text("x"))),), format="anthropic_messages")
    result = written(conversation)
    assert result["input"][0]["content"][0]["filename"]
    again = RESPONSES.read_request(msgspec.json.encode(result)).conversation.messages[0]
    assert again.parts[0] == document


def test_a_file_id_of_another_provider_is_refused():
    image = Image(Media("file_id", "file_1", origin="anthropic_messages"))
    with pytest.raises(ClientError, match="file id") as caught:
        written(Conversation((Message("user", (image,)),), format="anthropic_messages"))
    assert caught.value.param == "messages[0].content[0]"


def test_a_choice_without_tools_is_left_out():
    result = written(
        Conversation((Message("user", (Text("x"),)),), format="openai_chat"), tool_choice=ToolChoice("auto")
    )
    assert "tool_choice" not in result
    assert "tools" not in result


def test_a_tool_of_another_providers_servers_is_reported_and_alone_refused():
    server = Tool("web_search", style="server", raw={"type": "web_search_20250305"}, format="anthropic_messages")
    hello = (Message("user", (Text("x"),)),)
    done = RESPONSES.write_request(
        Request(
            "anthropic_messages",
            Conversation(hello, tools=(server, Tool("f")), format="anthropic_messages"),
            Settings(model="m"),
        )
    )
    assert [t["name"] for t in msgspec.json.decode(done.body)["tools"]] == ["f"]
    assert [d.path for d in done.drops] == ["tools[0]"]
    with pytest.raises(ClientError) as caught:
        written(Conversation(hello, tools=(server,), format="anthropic_messages"))
    assert caught.value.code == "unsupported_capability"


def test_nothing_is_stored_that_was_not_asked_to_be():
    hello = Conversation((Message("user", (Text("x"),)),), format="openai_chat")
    assert written(hello)["store"] is False
    assert written(hello, store=True)["store"] is True


def test_small_limits_are_raised_to_what_the_api_takes():
    hello = Conversation((Message("user", (Text("x"),)),), format="anthropic_messages")
    assert written(hello, max_tokens=1)["max_output_tokens"] == 16


@given(strategies.conversations(media=True))
def test_any_conversation_can_be_written_and_read(conversation):
    request = RESPONSES.read_request(msgspec.json.encode(written(conversation)))
    for message in request.conversation.messages:
        assert not isinstance(message.parts[0], Refusal | Opaque)


def test_the_line_that_claude_code_changes_with_every_request_stays_out_of_the_instructions():
    system = (
        Text("x-anthropic-billing-header: v=1; h=abc"),
        Text("one"),
        Text("x-anthropic-billing-header: is a header"),
    )
    said = Conversation((Message("user", (Text("hi"),)),), system, format="anthropic_messages")
    out = RESPONSES.write_request(Request("anthropic_messages", said, Settings(model="m")))
    assert msgspec.json.decode(out.body)["instructions"] == "one"
    assert [drop.path for drop in out.drops] == ["system[0]", "system[2]"]
    own = read(instructions="x-anthropic-billing-header: v=1")
    assert body(rebuilt(own))["instructions"] == "x-anthropic-billing-header: v=1"
