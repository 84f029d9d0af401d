"""Conversations of other formats as Chat requests: merged, split, paired, and every loss reported."""

from typing import Any

import pytest

from tests.wire.chat.exchange import written
from turnout.conversation import (
    Conversation,
    Document,
    Effort,
    Format,
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
from turnout.wire.chat import CHAT
from turnout.wire.codec import Request

A: Format = "anthropic_messages"
R: Format = "openai_responses"
TOOL = Tool("f", parameters={"type": "object"})


def user(*parts: Part) -> Message:
    return Message("user", parts)


def said(*parts: Part) -> Message:
    return Message("assistant", parts)


def result(call_id: str, *parts: Part, **fields: Any) -> ToolResult:
    return ToolResult(call_id, parts, **fields)


def item(part: Part) -> Message:
    return Message("tool" if isinstance(part, ToolResult) else "assistant", (part,))


def asked(source: Format, *messages: Message, settings: Settings | None = None, **fields: Any) -> Request:
    conversation = Conversation(messages, format=source, **fields)
    return Request(source, conversation, settings or Settings("m"))


def messages(source: Format, *given: Message, **options: Any) -> list[Any]:
    found: list[Any] = written(asked(source, *given), **options)["messages"]
    return found


def shapes(found: list[Any]) -> list[Any]:
    """Messages as (role, text or call ids)."""
    return [
        (m["role"], [c["id"] for c in m["tool_calls"]] if "tool_calls" in m else m.get("tool_call_id") or m["content"])
        for m in found
    ]


def drops(request: Request) -> list[tuple[str, str]]:
    return [(d.path, d.how) for d in CHAT.write_request(request).drops]


def test_system_blocks_are_joined_and_the_changing_line_left_out() -> None:
    system = (Text("x-anthropic-billing-header: v=1; h=abc"), Text("one", cache={"type": "ephemeral"}), Text("two"))
    request = asked(A, user(Text("hi")), system=system, system_flat=False)
    assert written(request)["messages"][0] == {"role": "system", "content": "one\n\ntwo"}
    assert drops(request) == [("system[0]", "dropped"), ("system[1].cache_control", "dropped")]


def test_a_turn_of_messages_with_calls_results_and_text() -> None:
    found = messages(
        A,
        user(Text("go")),
        said(Text("looking"), ToolCall("t1", "f", '{"a":1}'), ToolCall("t2", "g")),
        user(result("t1", Text("one")), result("t2", Text("two")), Text("and now")),
    )
    assert shapes(found) == [
        ("user", "go"),
        ("assistant", ["t1", "t2"]),
        ("tool", "t1"),
        ("tool", "t2"),
        ("user", "and now"),
    ]
    assert found[1]["content"] == "looking"
    assert found[1]["tool_calls"][1]["function"] == {"name": "g", "arguments": "{}"}


def test_items_of_responses_merge_into_one_turn() -> None:
    found = messages(
        R,
        user(Text("go")),
        said(Text("looking")),
        item(ToolCall("c1", "f", "{}")),
        item(ToolCall("c2", "f", "{}")),
        item(result("c1", Text("1"))),
        item(result("c2", Text("2"))),
        said(Text("done")),
    )
    assert shapes(found) == [
        ("user", "go"),
        ("assistant", ["c1", "c2"]),
        ("tool", "c1"),
        ("tool", "c2"),
        ("assistant", "done"),
    ]


def test_what_stands_between_a_call_and_its_result_comes_after_it() -> None:
    found = messages(
        R,
        item(ToolCall("c1", "f")),
        said(Text("wait")),
        Message("developer", (Text("rule"),)),
        item(ToolCall("c2", "f")),
        item(result("c1", Text("1"))),
        item(result("c2", Text("2"))),
        item(ToolCall("c3", "f")),
        item(result("c3", Text("3"))),
    )
    assert shapes(found) == [
        ("assistant", ["c1", "c2"]),
        ("tool", "c1"),
        ("tool", "c2"),
        ("assistant", "wait"),
        ("developer", "rule"),
        ("assistant", ["c3"]),
        ("tool", "c3"),
    ]


def test_no_result_moves_across_a_user_s_word() -> None:
    request = asked(R, item(ToolCall("c1", "f")), user(Text("stop")), item(result("c1", Text("late"))))
    found = written(request)["messages"]
    assert shapes(found)[:3] == [("assistant", ["c1"]), ("tool", "c1"), ("user", "stop")]
    assert found[1]["content"] != "late"
    assert found[3]["role"] == "user"
    assert "late" in found[3]["content"]
    assert drops(request) == [("input", "emulated"), ("input[2]", "downgraded")]


def test_a_call_at_the_end_gets_a_result() -> None:
    assert shapes(messages(A, user(Text("go")), said(ToolCall("t1", "f"))))[-1] == ("tool", "t1")


def test_every_call_has_exactly_one_result_directly_after_it() -> None:
    found = messages(
        R,
        item(result("lost", Text("x"))),
        item(ToolCall("c1", "f")),
        item(result("c1", Text("1"))),
        item(result("c1", Text("again"))),
        item(ToolCall("c2", "f")),
    )
    waiting: set[str] = set()
    for message in found:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
        waiting |= {c["id"] for c in message.get("tool_calls", ())}
    assert not waiting


def test_media_in_results_follow_in_a_user_message() -> None:
    image = Image(Media("base64", "AAAA", "image/png"))
    request = asked(
        A,
        said(ToolCall("t1", "f"), ToolCall("t2", "f")),
        user(result("t1", Text("seen"), image, text_only=False), result("t2", Text("two")), Text("so?")),
    )
    found = written(request)["messages"]
    assert shapes(found)[:3] == [("assistant", ["t1", "t2"]), ("tool", "t1"), ("tool", "t2")]
    assert found[3]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "so?"},
    ]
    assert drops(request) == [("messages[1].content[0].content[1]", "downgraded")]


def test_media_of_parallel_outputs_wait_for_the_last_output() -> None:
    image = Image(Media("url", "https://example.org/a.png"))
    found = messages(
        R,
        item(ToolCall("c1", "f")),
        item(ToolCall("c2", "f")),
        item(result("c1", image, text_only=False)),
        item(result("c2", Text("2"))),
    )
    assert [m["role"] for m in found] == ["assistant", "tool", "tool", "user"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "<tool_use_error></tool_use_error>"),
        ("no file", "<tool_use_error>no file</tool_use_error>"),
        ("Error: no file", "<tool_use_error>Error: no file</tool_use_error>"),
        ("<tool_use_error>no file</tool_use_error>", "<tool_use_error>no file</tool_use_error>"),
    ],
)
def test_a_failed_tool_says_so(text: str, expected: str) -> None:
    request = asked(A, said(ToolCall("t", "f")), user(result("t", Text(text), is_error=True)))
    assert written(request)["messages"][1]["content"] == expected
    assert drops(request) == [("messages[1].content[0].is_error", "emulated")]


def test_thinking_never_leaks_and_is_reported() -> None:
    request = asked(A, said(Reasoning("secret", signature="s"), Text("hi"), Reasoning("more"), Text("there")))
    assert written(request)["messages"] == [{"role": "assistant", "content": "hi\n\nthere"}]
    assert drops(request) == [("messages[0].content[0]", "dropped"), ("messages[0].content[2]", "dropped")]


def test_reasoning_items_attach_to_the_turn_that_follows() -> None:
    request = asked(
        R,
        item(Reasoning("because", summary=("because",), encrypted="zzz")),
        Message("developer", (Text("rule"),)),
        item(ToolCall("c", "f")),
        item(result("c", Text("1"))),
    )
    found = written(request)["messages"]
    assert found[1]["reasoning"] == "because"
    assert drops(request) == [("input[0].encrypted_content", "dropped")]


def test_a_server_that_insists_gets_reasoning_content_in_tool_turns() -> None:
    given = (
        item(Reasoning("because")),
        item(ToolCall("c", "f")),
        item(result("c", Text("1"))),
        item(ToolCall("d", "f")),
    )
    found = messages(R, *given, reasoning_content=True)
    assert found[0]["reasoning_content"] == "because"
    assert found[2]["reasoning_content"].isspace()
    unsigned = messages(A, said(Reasoning("ours", signature=""), ToolCall("c", "f")), reasoning_content=True)
    assert unsigned[0]["reasoning_content"] == "ours"


def test_custom_tools_are_functions_with_one_argument() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    tool = Tool("apply_patch", "Edit files.", style="custom", grammar=grammar)
    request = asked(R, item(ToolCall("c", "apply_patch", "*** Begin", style="custom")), tools=(tool,))
    out = written(request)
    function = out["tools"][0]["function"]
    assert list(function["parameters"]["properties"]) == ["input"]
    assert "start: WORD" in function["description"]
    assert out["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"input":"*** Begin"}'
    assert {how for _, how in drops(request)} == {"emulated"}


def test_names_and_ids_that_came_from_afar() -> None:
    long = "n" * 80
    tool = Tool(long, namespace="mcp")
    request = asked(R, item(ToolCall("tid_" + b"functions.x:0".hex(), long, namespace="mcp")), tools=(tool,))
    out = written(request)
    name = out["tools"][0]["function"]["name"]
    assert len(name) <= 64
    call = out["messages"][0]["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("functions.x:0", name)


def test_server_tools_go_where_others_stay_and_are_refused_where_none_is_left() -> None:
    search = Tool("web_search", style="server", raw={"type": "web_search"}, format=R)
    request = asked(R, user(Text("hi")), tools=(search, TOOL))
    assert [t["function"]["name"] for t in written(request)["tools"]] == ["f"]
    assert drops(request) == [("tools[0]", "dropped")]
    with pytest.raises(ClientError) as caught:
        written(asked(R, user(Text("hi")), tools=(search,)))
    assert caught.value.code == "unsupported_capability"
    with pytest.raises(ClientError):
        written(
            asked(
                R,
                user(Text("hi")),
                tools=(search, TOOL),
                settings=Settings("m", tool_choice=ToolChoice("named", "web_search")),
            )
        )


def test_a_choice_without_tools_goes() -> None:
    choice = ToolChoice("auto")
    out = written(asked(A, user(Text("hi")), settings=Settings("m", tool_choice=choice, parallel=False)))
    assert "tool_choice" not in out
    assert "parallel_tool_calls" not in out
    kept = written(
        asked(A, user(Text("hi")), tools=(Tool(""), TOOL), settings=Settings("m", tool_choice=ToolChoice("none")))
    )
    assert kept["tool_choice"] == "none"
    assert len(kept["tools"]) == 1


def test_allowed_tools_narrow_the_list() -> None:
    choice = ToolChoice("allowed", names=("g",), allowed_mode="required")
    out = written(asked(R, user(Text("hi")), tools=(TOOL, Tool("g")), settings=Settings("m", tool_choice=choice)))
    assert [t["function"]["name"] for t in out["tools"]] == ["g"]
    assert out["tool_choice"] == "required"
    with pytest.raises(ClientError):
        written(
            asked(
                R,
                user(Text("hi")),
                tools=(TOOL,),
                settings=Settings("m", tool_choice=ToolChoice("allowed", names=("x",))),
            )
        )


@pytest.mark.parametrize(
    "part",
    [
        Image(Media("file_id", "file-1", origin=R)),
        Document(Media("url", "https://example.org/a.pdf")),
        Document(Media("file_id", "file_1", origin=A)),
        Opaque(R, "apply_patch_call", {"type": "apply_patch_call"}),
        Opaque(R, "item_reference", {"type": "item_reference", "id": "x"}),
    ],
)
def test_what_must_not_be_lost_is_refused_with_its_path(part: Part) -> None:
    with pytest.raises(ClientError) as caught:
        written(asked(R, user(Text("x"), part)))
    assert caught.value.param == "input[0].content[1]"


def test_documents_become_files() -> None:
    given = (
        Document(Media("base64", "AAAA", "application/pdf"), "a.pdf", context="c", cache={"type": "ephemeral"}),
        Document(Media("text", "hi", "text/plain")),
    )
    request = asked(A, user(*given))
    assert written(request)["messages"][0]["content"] == [
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk="}},
    ]
    assert drops(request) == [
        ("messages[0].content[0].cache_control", "dropped"),
        ("messages[0].content[0].context", "dropped"),
    ]


def test_blocks_nobody_knows_are_told_as_text() -> None:
    request = asked(A, user(Opaque(A, "novel", {"type": "novel", "x": 1})))
    assert written(request)["messages"][0]["content"] == '{"type":"novel","x":1}'
    assert drops(request) == [("messages[0].content[0]", "downgraded")]


def test_settings_of_messages() -> None:
    settings = Settings(
        "m",
        stream=True,
        stream_usage=True,
        max_tokens=9,
        top_k=4,
        stop=("x",),
        effort=Effort("max", mode="adaptive"),
        output=OutputFormat("json_schema", schema={"type": "object"}),
        user="hash",
        user_field="metadata.user_id",
        metadata={"a": "b"},
        extra={"container": "c"},
    )
    request = asked(A, user(Text("hi")), settings=settings)
    out = written(request)
    assert out["max_tokens"] == 9
    assert out["stream_options"] == {"include_usage": True}
    assert out["stop"] == ["x"]
    assert out["reasoning_effort"] == "high"
    assert out["response_format"]["json_schema"]["name"]
    assert out["metadata"] == {"a": "b"}
    assert "hash" not in str(out)
    assert sorted(drops(request)) == [
        ("container", "dropped"),
        ("metadata.user_id", "dropped"),
        ("output_config.effort", "downgraded"),
        ("thinking.type", "dropped"),
        ("top_k", "dropped"),
    ]


def test_the_limit_is_spelled_as_the_model_wants_it() -> None:
    for model, field in (
        ("gpt-5.1", "max_completion_tokens"),
        ("o3", "max_completion_tokens"),
        ("gpt-4o", "max_tokens"),
    ):
        out = written(asked(A, user(Text("hi")), settings=Settings(model, max_tokens=3)))
        assert out[field] == 3


def test_state_kept_by_a_responses_server_is_refused() -> None:
    for settings in (
        Settings("m", previous_response_id="r"),
        Settings("m", conversation_id="c"),
        Settings("m", background=True),
    ):
        with pytest.raises(ClientError) as caught:
            written(asked(R, user(Text("hi")), settings=settings))
        assert caught.value.param in ("previous_response_id", "conversation", "background")


def test_the_developer_role_for_servers_that_do_not_know_it() -> None:
    found = messages(R, Message("developer", (Text("rule"),)), user(Text("hi")), developer_role="system")
    assert found[0]["role"] == "system"


def test_items_that_are_no_content_leave_no_message():
    carrier = Message("developer", (Opaque(R, "additional_tools", {"type": "additional_tools", "tools": []}),))
    trigger = user(Opaque(R, "compaction_trigger", {"type": "compaction_trigger"}))
    assert messages(R, carrier, user(Text("hi")), trigger) == [{"role": "user", "content": "hi"}]


def test_many_pieces_of_text_become_one() -> None:
    pieces = tuple(Text(f"{i} ") for i in range(50))
    found = messages(A, user(Text("Hi.")), said(*pieces, Reasoning("no"), Text("end")))
    assert found[1] == {"role": "assistant", "content": "".join(p.text for p in pieces) + "\n\nend"}
