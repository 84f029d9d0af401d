"""Requests of other formats as Messages requests: legal, saying the same, and honest about what is lost."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from tests.native import chat_bodies
from tests.strategies import conversations
from tests.wire.anthropic.legal import check_legal
from tests.wire.laws import instructions, said
from turnout.conversation import (
    Audio,
    Conversation,
    Document,
    Effort,
    Image,
    Media,
    Message,
    Opaque,
    OutputFormat,
    Part,
    Reasoning,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from turnout.errors import ClientError
from turnout.wire import CODECS
from turnout.wire.anthropic import MESSAGES
from turnout.wire.anthropic.thinking import clamped_budget
from turnout.wire.anthropic.turns import NO_RESULT
from turnout.wire.codec import Request
from turnout.wire.drops import Drop

CHAT = CODECS["openai_chat"]


def asked(*messages: Message, tools: tuple[Tool, ...] = (), system: tuple[Part, ...] = (), **fields: Any) -> Request:
    conversation = Conversation(messages, system, tools, format="openai_responses")
    return Request("openai_responses", conversation, Settings(model="m", **fields))


def translated(*messages: Message, **fields: Any) -> tuple[dict[str, Any], tuple[Drop, ...]]:
    """The legal Messages request of a conversation, and its drop report."""
    written = MESSAGES.write_request(asked(*(messages or (user("hi"),)), **fields))
    return check_legal(written.body), written.drops


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def said_by_model(*parts: Part) -> Message:
    return Message("assistant", parts)


def result(call_id: str, text: str = "out") -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),)),))


def shape(body: dict[str, Any]) -> list[Any]:
    """Who holds which blocks."""

    def one(block: dict[str, Any]) -> str:
        name = block.get("text") or block.get("id") or block.get("tool_use_id") or ""
        return f"{block['type']}:{name}" if name else str(block["type"])

    return [[m["role"], *map(one, m["content"])] for m in body["messages"]]


@given(chat_bodies())
@settings(deadline=None, max_examples=60)
def test_any_chat_request_becomes_a_legal_messages_request(body: dict[str, Any]) -> None:
    request = CHAT.read_request(msgspec.json.encode(body))
    written = MESSAGES.write_request(request, default_max_tokens=1000)
    check_legal(written.body)
    again = MESSAGES.read_request(written.body)
    for message in again.conversation.messages:
        assert message.parts


@given(conversations(media=True))
@settings(deadline=None, max_examples=60)
def test_what_was_said_called_and_answered_stays_in_order(conversation: Conversation) -> None:
    request = Request("openai_chat", conversation, Settings(model="m"))
    written = MESSAGES.write_request(request)
    check_legal(written.body)
    again = MESSAGES.read_request(written.body).conversation
    assert said(again) == said(conversation)
    assert instructions(again) == instructions(conversation)


def test_parallel_calls_and_their_results_become_one_turn_each() -> None:
    body, drops = translated(
        user("go"),
        said_by_model(ToolCall("a", "f", "{}")),
        said_by_model(ToolCall("b", "f", '{"x":1}')),
        result("b"),
        result("a"),
        user("and?"),
    )
    assert shape(body) == [
        ["user", "text:go"],
        ["assistant", "tool_use:a", "tool_use:b"],
        ["user", "tool_result:b", "tool_result:a", "text:and?"],
    ]
    assert drops == ()


def test_text_between_a_call_and_its_result_is_deferred() -> None:
    body, _ = translated(
        user("go"),
        said_by_model(ToolCall("a", "f")),
        said_by_model(ToolCall("b", "f")),
        result("a"),
        said_by_model(Text("meanwhile")),
        result("b"),
    )
    assert shape(body)[1:] == [
        ["assistant", "tool_use:a", "tool_use:b"],
        ["user", "tool_result:a", "tool_result:b"],
        ["assistant", "text:meanwhile"],
    ]


def test_user_text_before_a_result_stays_in_the_turn_behind_it() -> None:
    body, _ = translated(user("go"), said_by_model(ToolCall("a", "f")), user("hurry"), result("a"))
    assert shape(body)[1:] == [["assistant", "tool_use:a"], ["user", "tool_result:a", "text:hurry"]]


def test_an_orphan_result_becomes_readable_text() -> None:
    body, drops = translated(user("go"), result("gone", "42"))
    assert body["messages"][0]["content"][1] == {"type": "text", "text": "[result of tool call gone]\n42"}
    assert [d.how for d in drops] == ["downgraded"]
    assert drops[0].path.startswith("input[1]")


def test_a_call_without_result_gets_one_that_says_so() -> None:
    body, drops = translated(user("go"), said_by_model(ToolCall("a", "f")), user("next"))
    answer = body["messages"][2]["content"][0]
    assert (answer["content"], answer["is_error"]) == (NO_RESULT, True)
    assert [d.how for d in drops] == ["emulated"]


def test_a_result_never_crosses_an_assistant_turn_behind_user_text() -> None:
    body, _ = translated(
        user("go"), said_by_model(ToolCall("a", "f")), user("skip"), said_by_model(Text("ok")), result("a", "late")
    )
    assert shape(body)[2:] == [
        ["user", "tool_result:a", "text:skip"],
        ["assistant", "text:ok"],
        ["user", "text:[result of tool call a]\nlate"],
    ]


def test_repeated_and_illegal_call_ids_become_unique_and_legal() -> None:
    turn = (said_by_model(ToolCall("functions.f:0", "f")), result("functions.f:0"))
    body, _ = translated(user("go"), *turn, user("again"), *turn)
    calls = [b["id"] for m in body["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert len(set(calls)) == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"b":1,"a":2}', {"b": 1, "a": 2}),
        ("", {}),
        ("[1]", {"value": [1]}),
        ("7", {"value": 7}),
        ("{oops", {"raw": "{oops"}),
    ],
)
def test_arguments_become_an_object(arguments: str, expected: Any) -> None:
    body, _ = translated(user("go"), said_by_model(ToolCall("a", "f", arguments)), result("a"))
    assert body["messages"][1]["content"][0]["input"] == expected


def test_key_order_of_arguments_and_schemas_is_kept() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}}}
    request = asked(
        user("go"),
        said_by_model(ToolCall("a", "f", '{"z": 1, "a": 2}')),
        result("a"),
        tools=(Tool("f", parameters=schema),),
    )
    body = MESSAGES.write_request(request).body
    assert b'{"z": 1, "a": 2}' in body
    assert b'{"type":"object","properties":{"z":{},"a":{}}}' in body


def test_instructions_lead_and_later_ones_stay_in_place() -> None:
    body, drops = translated(
        Message("developer", (Text("rules"),)),
        user("hi"),
        Message("system", (Text("be brief"),)),
        said_by_model(Text("yo")),
        user("?"),
        system=(Text("base"),),
    )
    assert [b["text"] for b in body["system"]] == ["base", "rules"]
    assert shape(body)[0] == ["user", "text:hi", "text:<system>\nbe brief\n</system>"]
    assert [(d.path, d.how) for d in drops] == [("input[2].content[0]", "emulated")]


def test_instructions_alone_are_sent_as_the_user_turn() -> None:
    body, _ = translated(Message("system", (Text("say hi"),)))
    assert shape(body) == [["user", "text:say hi"]]
    assert "system" not in body


def test_a_conversation_that_begins_with_the_assistant_gets_a_user_line() -> None:
    body, drops = translated(said_by_model(Text("hello")), user("hi"))
    assert body["messages"][0]["role"] == "user"
    assert [d.how for d in drops] == ["emulated"]


def test_reasoning_is_replayed_only_to_its_issuer() -> None:
    own = Reasoning("mine", signature="sig", origin="anthropic_messages")
    body, drops = translated(
        user("go"),
        said_by_model(
            own, Reasoning("theirs", encrypted="x", origin="openai_responses"), Reasoning("plain"), Text("done")
        ),
        user("?"),
    )
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "mine", "signature": "sig"}
    assert shape(body)[1] == ["assistant", "thinking", "text:done"]
    assert [d.how for d in drops] == ["dropped", "dropped"]


def test_media_as_messages_spells_it() -> None:
    parts = (
        Image(Media("url", "data:image/png;charset=x;base64,AA==")),
        Image(Media("url", "https://x/i.png"), detail="high"),
        Document(Media("base64", "aGk=", "text/plain"), name="a.txt"),
        Document(Media("base64", "aGk=", "application/pdf")),
        Document(Media("base64", "aGk=", "application/zip"), name="a.zip"),
        Image(Media("file_id", "file-1", origin="openai_responses")),
        Audio(Media("base64", "aGk=", "audio/wav")),
    )
    body, drops = translated(Message("user", parts))
    assert body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://x/i.png"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}, "title": "a.txt"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        {"type": "text", "text": "[document a.zip]"},
        {"type": "text", "text": "[image]"},
        {"type": "text", "text": "[audio]"},
    ]
    assert [(d.path, d.how) for d in drops] == [
        ("input[0].content[1].detail", "dropped"),
        ("input[0].content[4]", "downgraded"),
        ("input[0].content[5]", "downgraded"),
        ("input[0].content[6]", "downgraded"),
    ]


def test_a_percent_encoded_data_uri_stays_an_url() -> None:
    body, _ = translated(Message("user", (Image(Media("url", "data:image/png;base64,AA%3D%3D")),)))
    assert body["messages"][0]["content"][0]["source"]["type"] == "url"


def test_foreign_items_become_text_and_actions_an_error() -> None:
    search = Opaque("openai_responses", "web_search_call", {"type": "web_search_call", "id": "ws"})
    body, drops = translated(user("go"), said_by_model(search), user("?"))
    assert body["messages"][1]["content"][0]["text"] == '{"type":"web_search_call","id":"ws"}'
    assert drops[0].how == "downgraded"
    shell = Opaque("openai_responses", "local_shell_call", {"type": "local_shell_call"})
    with pytest.raises(ClientError, match="local_shell_call") as caught:
        translated(user("go"), said_by_model(shell))
    assert caught.value.code == "unsupported_capability"
    assert (caught.value.param or "").startswith("input[1]")


def test_tools_and_what_becomes_of_those_messages_does_not_know() -> None:
    tools = (
        Tool("f", "does", {"properties": {}}, strict=False),
        Tool("patch", style="custom", grammar={"syntax": "lark", "definition": "start: X"}),
        Tool("run", namespace="mcp__x"),
        Tool("web", style="server", raw={"type": "web_search"}, format="openai_responses"),
        Tool(" "),
    )
    body, drops = translated(tools=tools, tool_choice=ToolChoice("named", "run", "mcp__x"), parallel=False)
    assert [t["name"] for t in body["tools"]] == ["f", "patch", "mcp__x__run"]
    assert body["tools"][0]["strict"] is False
    assert "start: X" in body["tools"][1]["description"]
    assert body["tools"][1]["input_schema"]["required"] == ["input"]
    assert body["tool_choice"] == {"type": "tool", "name": "mcp__x__run", "disable_parallel_tool_use": True}
    assert [(d.path, d.how) for d in drops] == [
        ("tools[1]", "emulated"),
        ("tools[3]", "dropped"),
        ("tools[4]", "dropped"),
    ]


def test_no_tool_left_means_no_choice() -> None:
    body, _ = translated(tools=(Tool(""),), tool_choice=ToolChoice("required"), parallel=False)
    assert "tools" not in body
    assert "tool_choice" not in body


def test_a_parallel_switch_alone_never_forces_a_call() -> None:
    body, _ = translated(tools=(Tool("f"),), parallel=False)
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    body, _ = translated(tools=(Tool("f"),), parallel=True)
    assert "tool_choice" not in body


def test_allowed_tools_narrow_the_list() -> None:
    tools = (Tool("f"), Tool("g"), Tool("h"))
    choice = ToolChoice("allowed", names=("g",), allowed_mode="required")
    body, _ = translated(tools=tools, tool_choice=choice)
    assert [t["name"] for t in body["tools"]] == ["g"]
    assert body["tool_choice"] == {"type": "any"}
    for names in ((), ("nope",)):
        with pytest.raises(ClientError, match="tool_choice"):
            translated(tools=tools, tool_choice=ToolChoice("allowed", names=names))


@pytest.mark.parametrize(
    ("effort", "thinking", "level"),
    [
        (Effort("high"), {"type": "adaptive"}, "high"),
        (Effort("minimal", summary="auto"), {"type": "adaptive", "display": "summarized"}, "low"),
        (Effort("none"), {"type": "disabled"}, None),
        (Effort(budget_tokens=10), {"type": "enabled", "budget_tokens": 1024}, None),
        (Effort(budget_tokens=10_000), {"type": "enabled", "budget_tokens": 3999}, None),
    ],
)
def test_effort_becomes_thinking(effort: Effort, thinking: dict[str, Any], level: str | None) -> None:
    body, _ = translated(effort=effort, max_tokens=4000, temperature=0.3)
    assert body["thinking"] == thinking
    assert body.get("output_config", {}).get("effort") == level
    assert ("temperature" in body) == (thinking["type"] == "disabled")


def test_no_thinking_beside_a_forced_call_or_without_room() -> None:
    body, drops = translated(effort=Effort("high"), tools=(Tool("f"),), tool_choice=ToolChoice("required"))
    assert "thinking" not in body
    assert drops
    body, drops = translated(effort=Effort(budget_tokens=500), max_tokens=800)
    assert "thinking" not in body
    assert drops


@pytest.mark.parametrize(("budget", "limit"), [(0, 1024), (5, 1025), (500, 64_000), (10**9, 4096), (2000, 3000)])
def test_a_clamped_budget_is_legal_or_none(budget: int, limit: int) -> None:
    clamped = clamped_budget(budget, limit)
    assert clamped is None or 1024 <= clamped < limit
    assert (clamped is None) == (limit <= 1024)


def test_structured_output_is_closed_and_freed_of_limits() -> None:
    schema = {
        "type": "object",
        "properties": {"maximum": {"type": "integer", "maximum": 5}, "s": {"type": "string", "minLength": 2}},
    }
    kept = msgspec.json.encode(schema)
    body, drops = translated(output=OutputFormat("json_schema", "out", schema=schema), effort=Effort("low"))
    assert body["output_config"] == {
        "effort": "low",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"maximum": {"type": "integer"}, "s": {"type": "string"}},
                "additionalProperties": False,
            },
        },
    }
    assert [(d.path, d.how) for d in drops] == [("text.format.schema", "downgraded"), ("text.format.name", "emulated")]
    assert msgspec.json.encode(schema) == kept


def test_free_json_mode_is_asked_for_in_words() -> None:
    body, drops = translated(output=OutputFormat("json_object"), system=(Text("base"),))
    assert len(body["system"]) == 2
    assert "JSON" in body["system"][1]["text"]
    assert drops[0].how == "emulated"


def test_settings_messages_does_not_know_are_reported_and_identity_stays() -> None:
    body, drops = translated(
        user="u",
        user_field="safety_identifier",
        metadata={"k": "v"},
        store=True,
        verbosity="low",
        temperature=1.7,
        stop=("END", "\n"),
        service_tier="flex",
        extra={"seed": 7},
    )
    assert body["temperature"] == 1
    assert body["stop_sequences"] == ["END"]
    assert "metadata" not in body
    assert {d.path for d in drops} == {
        "safety_identifier",
        "metadata",
        "store",
        "text.verbosity",
        "temperature",
        "stop",
        "service_tier",
        "seed",
    }


def test_server_state_is_refused_not_lost() -> None:
    with pytest.raises(ClientError) as caught:
        translated(previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"


def test_a_limit_is_always_sent() -> None:
    assert translated()[0]["max_tokens"] == 64_000
    request = asked(user("hi"))
    assert check_legal(MESSAGES.write_request(request, default_max_tokens=8000).body)["max_tokens"] == 8000
    assert translated(max_tokens=5)[0]["max_tokens"] == 5


def test_more_than_four_breakpoints_keep_the_last_four() -> None:
    marks = tuple(Text(f"t{i}", cache={"type": "ephemeral"}) for i in range(6))
    body, drops = translated(Message("user", marks))
    marked = ["cache_control" in b for b in body["messages"][0]["content"]]
    assert marked == [False, False, True, True, True, True]
    assert len(drops) == 2


def test_blank_text_is_left_out() -> None:
    body, _ = translated(Message("user", (Text(""), Text("x"), Text(" \n"))), said_by_model(Text("")), user("y"))
    assert shape(body) == [["user", "text:x", "text:y"]]


def test_a_request_of_another_vendors_tools_alone_is_refused_by_name() -> None:
    search = Tool("web_search", style="server", raw={"type": "web_search"}, format="openai_responses")
    with pytest.raises(ClientError) as caught:
        translated(user("hi"), tools=(search,))
    assert (caught.value.code, caught.value.param) == ("unsupported_capability", "tools[0]")
    body, drops = translated(user("hi"), tools=(search, Tool("f")))
    assert [tool["name"] for tool in body["tools"]] == ["f"]
    assert "tools[0]" in {drop.path for drop in drops}


def test_calls_of_one_id_are_numbered_on() -> None:
    calls = [
        Message("assistant", (ToolCall("a", "f"),)),
        Message("tool", (ToolResult("a", (Text("x"),)),)),
    ]
    other = [Message("assistant", (ToolCall("a_3", "f"),)), Message("tool", (ToolResult("a_3", (Text("y"),)),))]
    body, _ = translated(Message("user", (Text("Hi."),)), *calls, *other, *calls, *calls, *calls)
    uses = [b["id"] for m in body["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert uses == ["a", "a_3", "a_2", "a_4", "a_5"]


def test_assistant_text_waits_only_while_a_result_is_still_to_come() -> None:
    asked = Message("assistant", (ToolCall("a", "f"), ToolCall("b", "f"), ToolCall("c", "f")))
    say = Message("assistant", (Text("Meanwhile."),))
    answers = {i: Message("tool", (ToolResult(i, (Text(i),)),)) for i in "abc"}
    body, _ = translated(Message("user", (Text("Hi."),)), asked, answers["a"], say, answers["c"], say)
    roles = [m["role"] for m in body["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert [b["tool_use_id"] for b in body["messages"][2]["content"]] == ["a", "c", "b"]
    assert [b["text"] for b in body["messages"][3]["content"]] == ["Meanwhile.", "Meanwhile."]


@given(conversations(media=True))
@settings(deadline=None, max_examples=60)
def test_marks_are_few_stand_where_they_may_and_change_nothing_else(conversation: Conversation) -> None:
    request = Request("openai_chat", conversation, Settings(model="m"))
    plain = MESSAGES.write_request(request).body
    written = MESSAGES.write_request(request, cache_marks=True).body
    assert written == MESSAGES.write_request(request, cache_marks=True).body
    if b"cache_control" in plain:
        assert written == plain  # the client's own win
        return
    body = check_legal(written)
    marked = [block for block in blocks_of(body) if block.pop("cache_control", None)]
    assert len(marked) <= 3
    assert not any(block.get("type") in ("thinking", "redacted_thinking") for block in marked)
    assert body == msgspec.json.decode(plain)


def test_marks_stand_at_the_ends_of_instructions_and_of_the_last_two_user_turns() -> None:
    call = ToolCall("c1", "run", "{}")
    messages = (user("go"), said_by_model(Text("so"), call), result("c1"), said_by_model(Text("well")), user("on"))
    request = asked(*messages, system=(Text("Mind."),), tools=(Tool("run", parameters={"type": "object"}),))
    body = check_legal(MESSAGES.write_request(request, cache_marks=True).body)
    assert ["cache_control" in block for block in blocks_of(body)] == [
        False,
        True,
        False,
        False,
        False,
        True,
        False,
        True,
    ]


def test_a_question_asked_once_is_not_marked() -> None:
    once = asked(user("hi"), system=(Text("Mind."),))
    assert b"cache_control" not in MESSAGES.write_request(once, cache_marks=True).body
    keyed = asked(user("hi"), prompt_cache_key="session")
    assert b"cache_control" in MESSAGES.write_request(keyed, cache_marks=True).body


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that can hold a mark, in the order of the prompt."""
    places = (body.get("tools", ()), body.get("system", ()), *(turn["content"] for turn in body["messages"]))
    return [block for blocks in places for block in blocks]
