"""Replies of Responses, buffered: what they mean, and how the replies of others are told in them."""

from typing import Any

import msgspec
import pytest

from turnout.conversation import (
    Citation,
    Opaque,
    Reasoning,
    Refusal,
    Reply,
    Text,
    ToolCall,
    Usage,
)
from turnout.errors import ClientError, UpstreamError
from turnout.wire.codec import Request
from turnout.wire.responses import RESPONSES


def asked(**body: Any) -> Request:
    return RESPONSES.read_request(msgspec.json.encode({"model": "m", "input": "hi", **body}))


def response(output: list[Any], **more: Any) -> bytes:
    return msgspec.json.encode(
        {"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "m"}
        | {"output": output, **more}
    )


def read(output: list[Any], **more: Any) -> Reply:
    return RESPONSES.read_reply(response(output, **more))


def written(reply: Reply, request: Request | None = None) -> Any:
    return msgspec.json.decode(RESPONSES.write_reply(reply, request or asked(), "served").body)


def message(*content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(content), **more}


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}


@pytest.mark.parametrize(
    ("output", "more", "stop", "detail"),
    [
        ([message(said("x"))], {}, "end", None),
        ([message(said("x")), CALL], {}, "tool_calls", None),
        ([CALL], {}, "tool_calls", None),
        ([message({"type": "refusal", "refusal": "no"})], {}, "refusal", None),
        (
            [message(said("x"))],
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            None,
        ),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refusal", None),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "other"}}, "length", "other"),
        ([], {"status": "queued"}, "pause", "queued"),
    ],
)
def test_why_a_reply_ended(output, more, stop, detail):
    reply = read(output, **more)
    assert (reply.stop, reply.stop_detail) == (stop, detail)


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "it broke"}}, "unavailable", "it broke"),
        (
            {"status": "failed", "error": {"code": "context_length_exceeded", "message": "too long"}},
            "overflow",
            "too long",
        ),
        ({"status": "cancelled"}, "unavailable", "cancelled"),
        ({"output": None}, "malformed", "output"),
        ({"output": [1]}, "malformed", "output"),
        ({"output": [{"type": "function_call"}]}, "malformed", "name"),
    ],
)
def test_a_failure_under_200_is_an_upstream_error(more, kind, words):
    with pytest.raises(UpstreamError, match=words) as caught:
        read(**{"output": [], **more})
    assert caught.value.kind == kind


def test_usage_is_taken_apart_and_put_together():
    stated = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 10},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 109,
    }
    reply = read([], usage=stated)
    assert reply.usage == Usage(20, 9, 70, 10, None, 4)
    assert written(reply)["usage"] == stated
    assert read([]).usage is None
    assert written(Reply((), usage=Usage(3, 4)))["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    }
    assert written(Reply(()))["usage"] is None


def test_a_reply_repeats_what_was_asked():
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}]
    request = asked(
        tools=tools,
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        temperature=0.5,
        metadata={"a": "b"},
        instructions="be brief",
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        store=False,
        previous_response_id="resp_0",
    )
    value = written(Reply((Text("x"),)), request)
    assert value["tools"] == tools
    assert value["tool_choice"] == {"type": "function", "name": "f"}
    assert (value["parallel_tool_calls"], value["temperature"], value["metadata"]) == (False, 0.5, {"a": "b"})
    assert (value["instructions"], value["store"], value["previous_response_id"]) == ("be brief", False, "resp_0")
    assert value["reasoning"] == {"effort": "low", "summary": "auto"}
    assert value["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert value["model"] == "served"


def test_ids_are_unique_short_and_told_by_their_kind():
    parts = (Reasoning("r"), Text("t"), ToolCall("c" * 90, "f", "{}"), ToolCall("d", "p", "raw", style="custom"))
    values = [written(Reply(parts, "tool_calls", id="chatcmpl-always-the-same")) for _ in range(2)]
    ids = [i["id"] for v in values for i in v["output"]] + [v["id"] for v in values]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 64
    assert [i["id"].partition("_")[0] for i in values[0]["output"]] == ["rs", "msg", "fc", "ctc"]
    assert written(Reply((), id="resp_kept"))["id"] == "resp_kept"


def test_text_refusals_and_phases_make_messages():
    commentary = {"phase": "commentary"}
    parts = (Text("a", extra=commentary), Text("b", extra=commentary), Text("c"), Refusal("no"), ToolCall("c", "f"))
    output = written(Reply(parts, "tool_calls"))["output"]
    assert [(i["type"], i.get("phase"), len(i.get("content", []))) for i in output] == [
        ("message", "commentary", 2),
        ("message", None, 2),
        ("function_call", None, 0),
    ]
    assert output[2]["arguments"] == "{}"
    assert [type(p) for p in RESPONSES.read_reply(response(output)).parts] == [Text, Text, Text, Refusal, ToolCall]


@pytest.mark.parametrize(
    "reasoning",
    [
        Reasoning("thought", signature="sig", origin="anthropic_messages"),
        Reasoning("", signature="sig", origin="anthropic_messages"),
        Reasoning("", encrypted="data", redacted=True, origin="anthropic_messages"),
        Reasoning("t", details=[{"type": "reasoning.text", "text": "t", "signature": None}], origin="openai_chat"),
    ],
)
def test_reasoning_of_others_comes_back_whole_whatever_the_client_does_to_the_summary(reasoning):
    (item,) = written(Reply((reasoning,)))["output"]
    assert item["summary"] == ([{"type": "summary_text", "text": reasoning.text}] if reasoning.text else [])
    edited = {**item, "summary": [{"type": "summary_text", "text": "edited"}]}
    for value in (item, edited, {k: v for k, v in item.items() if k != "id"}):
        (back,) = asked(input=[value]).conversation.messages
        assert back.parts == (reasoning,)


def test_sealed_reasoning_never_reaches_a_responses_server():
    signed = Reasoning("thought", signature="sig", origin="anthropic_messages")
    output = written(Reply((signed, Text("x"))))["output"]
    encrypted = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "theirs"}
    request = asked(input=[{"role": "user", "content": "q"}, *output, encrypted])
    for body in (RESPONSES.patch(request.body, ()), RESPONSES.write_request(request).body):
        assert b"turnout" not in body
        assert [i.get("role", i.get("encrypted_content")) for i in msgspec.json.decode(body)["input"]] == [
            "user",
            "assistant",
            "theirs",
        ]


def test_a_payload_that_only_looks_sealed_stays_what_it_is():
    value = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "turnout-reasoning-1.!!"}
    (message,) = asked(input=[value]).conversation.messages
    assert message.parts == (Reasoning(id="rs_1", encrypted="turnout-reasoning-1.!!", origin="openai_responses"),)


def test_citations_keep_their_places_and_others_their_form():
    file = {"type": "file_citation", "file_id": "f", "filename": "n", "index": 1}
    url = {"type": "url_citation", "url": "https://a.b", "title": "t", "start_index": 1, "end_index": 2}
    reply = read([message({**said("see"), "annotations": [url, file]})])
    assert reply.parts == (Text("see", (Citation("https://a.b", "t", 1, 2), Citation("", extra=file))),)
    assert written(reply)["output"][0]["content"][0]["annotations"] == [url, file]
    foreign = Text("héé", (Citation("https://a.b"), Citation("", extra={"type": "char_location"})))
    assert written(Reply((foreign,)))["output"][0]["content"][0]["annotations"] == [
        {"type": "url_citation", "url": "https://a.b", "title": "", "start_index": 0, "end_index": 3}
    ]


def test_what_a_reply_cannot_hold_is_reported():
    opaque = Opaque("anthropic_messages", "server_tool_use", {"type": "server_tool_use"})
    reply = Reply((opaque, Text("x")), stop_sequence="END", format="anthropic_messages", extra={"container": {}})
    done = RESPONSES.write_reply(reply, asked(), "m")
    assert [d.path for d in done.drops] == ["content[0]", "stop_sequence", "container"]
    assert [i["type"] for i in msgspec.json.decode(done.body)["output"]] == ["message"]


def test_native_items_and_extras_of_a_reply_stay_exact():
    shell = {"type": "shell_call", "id": "sh", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed"}
    reply = read([shell, message(said("x"))], service_tier="flex", moderation={"a": 1})
    value = written(reply)
    assert value["output"][0] == shell
    assert (value["service_tier"], value["moderation"]) == ("flex", {"a": 1})


def test_fields_of_another_formats_call_stay_out():
    call = ToolCall("c", "f", "{}", extra={"caller": {"type": "code_execution_20250825"}})
    assert "caller" not in written(Reply((call,), "tool_calls"))["output"][0]


def test_names_and_namespaces_are_the_clients_own():
    request = asked(
        tools=[
            {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close"}]},
            {"type": "custom", "name": "apply_patch"},
        ]
    )
    body = response(
        [{**CALL, "name": "agents__close"}, {**CALL, "name": "apply_patch", "arguments": '{"input":"raw"}'}]
    )
    close, patch = RESPONSES.read_reply(body, request).calls
    assert (close.name, close.namespace) == ("close", "agents")
    assert (patch.name, patch.style, patch.arguments) == ("apply_patch", "custom", "raw")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ClientError("no such route", status=404, code="model_not_found", param="model"), 404, "model_not_found"),
        (UpstreamError("overflow", "too long", status=400), 400, "context_length_exceeded"),
        (UpstreamError("rate_limit", "slow down", status=429), 429, "rate_limit_exceeded"),
        (UpstreamError("unavailable", "down", status=503), 503, "upstream_unavailable"),
        (UpstreamError("unavailable", "reset"), 502, "upstream_unavailable"),
        (UpstreamError("request", "bad", status=422, code="bad_field"), 422, "bad_field"),
        (UpstreamError("timeout", "slow"), 504, "timeout"),
    ],
)
def test_errors_have_the_envelope_of_the_api(error, status, code):
    reply = RESPONSES.write_error(error)
    stated = msgspec.json.decode(reply.body)["error"]
    assert reply.status == status
    assert stated["code"] == code
    assert stated["message"] == str(error)
    assert set(stated) == {"message", "type", "param", "code"}
