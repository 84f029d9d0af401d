"""Hypothesis strategies for request bodies as the clients of each format write them: legal, and rich in fields."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.strategies import argument_texts, json_objects, names, words
from turnout.conversation import Format

Body = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}, "required": ["z"]}
"""Its keys are out of alphabetical order on purpose."""

PNG = "iVBORw0KGgo="


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Body]:
    """An object with all `required` members and any of the `optional` ones (values are strategies)."""
    return st.fixed_dictionaries(required, optional=optional)


def just(value: Any) -> st.SearchStrategy[Any]:
    return st.just(value)


flags = st.booleans()
cache = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
sampling = {"temperature": st.sampled_from([0, 0.5, 1.0]), "top_p": st.sampled_from([0.1, 1])}
openai_settings = {
    "metadata": just({"run": "7"}),
    "user": names,
    "safety_identifier": names,
    "service_tier": just("auto"),
    "store": flags,
    "prompt_cache_key": names,
    "prompt_cache_retention": just("24h"),
    "parallel_tool_calls": flags,
    "top_logprobs": just(2),
}


def one_user(body: Body) -> Body:
    """`body` without the second of two spellings of the end user's id."""
    return {k: v for k, v in body.items() if not (k == "safety_identifier" and "user" in body)}


# OpenAI Chat Completions

chat_text = some({"type": just("text"), "text": words}, {})
chat_parts = st.one_of(
    chat_text,
    some(
        {
            "type": just("image_url"),
            "image_url": some({"url": just(f"data:image/png;base64,{PNG}")}, {"detail": just("low")}),
        },
        {},
    ),
    just({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
    just({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
    just({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}),
    just({"type": "file", "file": {"file_id": "file-1"}}),
)
chat_functions = some(
    {
        "type": just("function"),
        "function": some(
            {"name": names}, {"description": words, "parameters": just(SCHEMA), "strict": st.one_of(flags, st.none())}
        ),
    },
    {},
)
chat_customs = some(
    {
        "type": just("custom"),
        "custom": some(
            {"name": names},
            {
                "description": words,
                "format": just({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}),
            },
        ),
    },
    {},
)


def chat_name(tool: Body) -> str:
    name: str = tool[tool["type"]]["name"]
    return name


@st.composite
def chat_turns(draw: st.DrawFn, tools: list[Body]) -> list[Body]:
    messages: list[Body] = draw(
        st.lists(
            some(
                {
                    "role": st.sampled_from(["system", "developer"]),
                    "content": st.one_of(words, st.lists(chat_text, min_size=1, max_size=2)),
                },
                {},
            ),
            max_size=2,
        )
    )
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        content = st.one_of(words, st.lists(chat_parts, min_size=1, max_size=3))
        messages.append(draw(some({"role": just("user"), "content": content}, {"name": names})))
        if tools and draw(flags):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                tool = draw(st.sampled_from(tools))
                call: Body = {"id": f"call_{number}", "type": tool["type"]}
                if tool["type"] == "function":
                    call["function"] = {"name": chat_name(tool), "arguments": draw(argument_texts)}
                else:
                    call["custom"] = {"name": chat_name(tool), "input": draw(words)}
                calls.append(call)
            spoken = st.one_of(st.none(), words, st.lists(chat_text, min_size=1, max_size=2))
            messages.append(
                draw(
                    some(
                        {"role": just("assistant"), "content": spoken, "tool_calls": just(calls)},
                        {"reasoning_content": words},
                    )
                )
            )
            results = st.one_of(words, st.lists(chat_text, min_size=1, max_size=2))
            messages += [
                draw(some({"role": just("tool"), "tool_call_id": just(c["id"]), "content": results}, {})) for c in calls
            ]
        else:
            messages.append(
                draw(some({"role": just("assistant"), "content": words}, {"refusal": st.none(), "name": names}))
            )
    return messages


@st.composite
def chat_bodies(draw: st.DrawFn) -> Body:
    """A request of Chat Completions."""
    tools = draw(st.lists(st.one_of(chat_functions, chat_functions, chat_customs), max_size=3, unique_by=chat_name))
    body = draw(
        some(
            {"model": names, "messages": chat_turns(tools)},
            {
                **sampling,
                **openai_settings,
                draw(st.sampled_from(["max_tokens", "max_completion_tokens"])): st.integers(1, 4096),
                "stop": st.one_of(words, st.lists(words, min_size=1, max_size=2)),
                "n": just(1),
                "seed": just(7),
                "logit_bias": just({"50256": -100}),
                "frequency_penalty": just(0.25),
                "presence_penalty": just(0),
                "logprobs": flags,
                "reasoning_effort": st.sampled_from(["low", "high", "none"]),
                "verbosity": just("low"),
                "response_format": st.sampled_from(
                    [
                        {"type": "text"},
                        {"type": "json_object"},
                        {"type": "json_schema", "json_schema": {"name": "out", "strict": True, "schema": SCHEMA}},
                        {"type": "json_schema", "json_schema": {"name": "out", "description": "d", "schema": SCHEMA}},
                    ]
                ),
                "modalities": just(["text"]),
                "prediction": just({"type": "content", "content": "x"}),
                "web_search_options": just({}),
                "vendor_field": json_objects,
            },
        )
    )
    if draw(flags):
        body["stream"] = draw(flags)
        if body["stream"] and draw(flags):
            body["stream_options"] = {"include_usage": draw(flags)}
    if tools:
        body["tools"] = tools
        named = [{"type": t["type"], t["type"]: {"name": chat_name(t)}} for t in tools]
        choice = draw(st.sampled_from([None, "auto", "none", "required", *named]))
        if choice is not None:
            body["tool_choice"] = choice
    return one_user(body)


# Anthropic Messages

a_text = some({"type": just("text"), "text": words}, {"cache_control": cache})
a_image = some(
    {
        "type": just("image"),
        "source": st.sampled_from(
            [
                {"type": "base64", "media_type": "image/png", "data": PNG},
                {"type": "url", "url": "https://example.com/a.png"},
                {"type": "file", "file_id": "file_1"},
            ]
        ),
    },
    {"cache_control": cache},
)
a_document = some(
    {
        "type": just("document"),
        "source": st.sampled_from(
            [
                {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
                {"type": "text", "media_type": "text/plain", "data": "words"},
                {"type": "url", "url": "https://example.com/a.pdf"},
            ]
        ),
    },
    {"title": names, "context": words, "citations": just({"enabled": True}), "cache_control": cache},
)
a_functions = some(
    {"name": names, "input_schema": just(SCHEMA)},
    {
        "description": words,
        "cache_control": cache,
        "strict": flags,
        "type": just("custom"),
        "eager_input_streaming": flags,
    },
)
a_thinking = st.one_of(
    some({"type": just("thinking"), "thinking": st.one_of(words, just("")), "signature": names}, {}),
    some({"type": just("redacted_thinking"), "data": names}, {}),
)


@st.composite
def messages_turns(draw: st.DrawFn, tools: list[Body]) -> list[Body]:
    messages: list[Body] = []
    number = 0
    results: list[Body] = []
    for _ in range(draw(st.integers(1, 3))):
        content: Any = draw(
            st.lists(st.one_of(a_text, a_text, a_image, a_document), min_size=0 if results else 1, max_size=3)
        )
        if not results and draw(flags):
            content = draw(words)
        messages.append({"role": "user", "content": [*results, *content] if results else content})
        results = []
        blocks = draw(st.lists(a_thinking, max_size=1)) + draw(st.lists(a_text, max_size=1))
        for _ in range(draw(st.integers(0, 3)) if tools else 0):
            number += 1
            name = draw(st.sampled_from(tools))["name"]
            use = {"type": just("tool_use"), "id": just(f"toolu_{number}"), "name": just(name), "input": json_objects}
            blocks.append(draw(some(use, {"cache_control": cache})))
            inner = st.one_of(words, st.lists(st.one_of(a_text, a_image), min_size=1, max_size=2))
            result = {"type": just("tool_result"), "tool_use_id": just(f"toolu_{number}")}
            results.append(draw(some(result, {"content": inner, "is_error": flags, "cache_control": cache})))
        messages.append({"role": "assistant", "content": blocks or draw(words)})
    if results:
        messages.append({"role": "user", "content": results})
    return messages


@st.composite
def messages_bodies(draw: st.DrawFn) -> Body:
    """A request of Messages."""
    tools = draw(st.lists(a_functions, max_size=3, unique_by=lambda t: t["name"]))
    body = draw(
        some(
            {"model": names, "max_tokens": st.integers(1, 64_000), "messages": messages_turns(tools)},
            {
                **sampling,
                "system": st.one_of(words, st.lists(a_text, min_size=1, max_size=2)),
                "stop_sequences": st.lists(words, max_size=2),
                "stream": flags,
                "top_k": just(5),
                "metadata": just({"user_id": "u-1"}),
                "service_tier": just("auto"),
                "thinking": st.sampled_from(
                    [
                        {"type": "enabled", "budget_tokens": 2048},
                        {"type": "disabled"},
                        {"type": "adaptive"},
                        {"type": "adaptive", "display": "summarized"},
                    ]
                ),
                "output_config": st.sampled_from(
                    [
                        {"effort": "high"},
                        {"format": {"type": "json_schema", "schema": SCHEMA}},
                        {"effort": "low", "x": 1},
                    ]
                ),
                "container": just("c_1"),
                "mcp_servers": just([{"type": "url", "url": "https://example.com/mcp", "name": "m"}]),
                "context_management": just({"edits": [{"type": "clear_tool_uses_20250919"}]}),
                "vendor_field": json_objects,
            },
        )
    )
    if draw(flags):
        tools = [*tools, {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]
    if tools:
        body["tools"] = tools
        choices = [{"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "tool", "name": tools[0]["name"]}]
        choice = draw(st.sampled_from([None, *choices]))
        if choice is not None:
            body["tool_choice"] = dict(choice)
            if choice["type"] != "none" and draw(flags):
                body["tool_choice"]["disable_parallel_tool_use"] = draw(flags)
    return body


# OpenAI Responses

r_parts = st.one_of(
    some({"type": just("input_text"), "text": words}, {}),
    some({"type": just("input_image"), "image_url": just(f"data:image/png;base64,{PNG}")}, {"detail": just("auto")}),
    just({"type": "input_image", "file_id": "file-1", "detail": "low"}),
    just({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}),
    just({"type": "input_file", "file_url": "https://example.com/a.pdf"}),
)
r_functions = some(
    {"type": just("function"), "name": names},
    {"description": words, "parameters": just(SCHEMA), "strict": st.one_of(flags, st.none())},
)
r_customs = some(
    {"type": just("custom"), "name": names},
    {"description": words, "format": just({"type": "grammar", "syntax": "lark", "definition": "start: X"})},
)


@st.composite
def responses_items(draw: st.DrawFn, tools: list[Body]) -> list[Body]:
    items: list[Body] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        content = st.one_of(words, st.lists(r_parts, min_size=1, max_size=3))
        role = st.sampled_from(["user", "user", "developer", "system"])
        said = draw(some({"role": role, "content": content}, {"type": just("message")}))
        if said["role"] != "user":
            said["content"] = draw(words)
        items.append(said)
        if draw(flags):
            summary = draw(st.lists(some({"type": just("summary_text"), "text": words}, {}), max_size=2))
            number += 1
            items.append(
                draw(
                    some(
                        {"type": just("reasoning"), "id": just(f"rs_{number}"), "summary": just(summary)},
                        {"encrypted_content": names},
                    )
                )
            )
        for _ in range(draw(st.integers(0, 2)) if tools else 0):
            number += 1
            tool = draw(st.sampled_from(tools))
            custom = tool["type"] == "custom"
            call = {"call_id": just(f"call_{number}"), "name": just(tool["name"])}
            call |= (
                {"type": just("custom_tool_call"), "input": words}
                if custom
                else {"type": just("function_call"), "arguments": argument_texts}
            )
            items.append(draw(some(call, {"id": just(f"fc_{number}"), "status": just("completed")})))
            kind = "custom_tool_call_output" if custom else "function_call_output"
            output = st.one_of(
                words, st.lists(some({"type": just("input_text"), "text": words}, {}), min_size=1, max_size=2)
            )
            items.append(draw(some({"type": just(kind), "call_id": just(f"call_{number}"), "output": output}, {})))
        answer = st.lists(
            some({"type": just("output_text"), "text": words, "annotations": just([])}, {}), min_size=1, max_size=2
        )
        items.append(
            draw(
                some(
                    {"type": just("message"), "role": just("assistant"), "content": answer},
                    {"id": just(f"msg_{number}"), "status": just("completed")},
                )
            )
        )
    return items


@st.composite
def responses_bodies(draw: st.DrawFn) -> Body:
    """A request of Responses."""
    tools = draw(st.lists(st.one_of(r_functions, r_functions, r_customs), max_size=3, unique_by=lambda t: t["name"]))
    body = draw(
        some(
            {"model": names, "input": st.one_of(words, responses_items(tools))},
            {
                **sampling,
                **openai_settings,
                "instructions": words,
                "max_output_tokens": st.integers(16, 4096),
                "stream": flags,
                "reasoning": st.sampled_from(
                    [{"effort": "high"}, {"effort": "low", "summary": "auto"}, {"summary": None}]
                ),
                "text": st.sampled_from(
                    [
                        {"verbosity": "low"},
                        {"format": {"type": "text"}},
                        {"format": {"type": "json_object"}},
                        {
                            "format": {"type": "json_schema", "name": "out", "strict": True, "schema": SCHEMA},
                            "verbosity": "high",
                        },
                    ]
                ),
                "include": just(["reasoning.encrypted_content"]),
                "truncation": just("disabled"),
                "background": just(False),
                "max_tool_calls": just(3),
                "client_metadata": just({"x": "y"}),
                "vendor_field": json_objects,
            },
        )
    )
    if isinstance(body["input"], str):
        tools = []
    if draw(flags):
        tools = [*tools, {"type": "web_search", "search_context_size": "low"}]
    if tools:
        body["tools"] = tools
        named = [{"type": t["type"], "name": t["name"]} for t in tools if "name" in t]
        choice = draw(st.sampled_from([None, "auto", "none", "required", *named]))
        if choice is not None:
            body["tool_choice"] = choice
    return one_user(body)


def bodies(format: Format) -> st.SearchStrategy[Body]:
    """A request body of `format`, decoded."""
    return {"openai_chat": chat_bodies, "anthropic_messages": messages_bodies, "openai_responses": responses_bodies}[
        format
    ]()


def encoded(body: Body) -> bytes:
    """The bytes of a body."""
    return msgspec.json.encode(body)


def plain(body: Body) -> Body:
    """`body` without members that say what their absence says too."""
    kept = {k: v for k, v in body.items() if v is not None and not (k == "stream" and v is False)}
    if not kept.get("instructions", True):
        del kept["instructions"]
    if kept.get("stream_options") == {"include_usage": False}:
        del kept["stream_options"]
    if isinstance(kept.get("stop"), str):
        kept["stop"] = [kept["stop"]]
    if "max_tokens" in kept and "tools" in kept:  # Messages: the type of an ordinary tool may be left out
        kept["tools"] = [
            {k: v for k, v in tool.items() if (k, v) != ("type", "custom") or "input_schema" not in tool}
            for tool in kept["tools"]
        ]
    return kept
