"""The official clients as judges: a body or stream is right when they take it with every type checked."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import anthropic
import openai

from turnout.conversation import Format

httpx: Any = import_module("httpx2" if find_spec("httpx2") else "httpx")
"""The HTTP library that the clients are built on: its successor where that is installed."""

_answer: dict[str, tuple[str, bytes]] = {}


def _respond(_: Any) -> Any:
    kind, body = _answer["next"]
    return httpx.Response(200, headers={"content-type": kind}, content=body)


@cache
def _openai() -> openai.OpenAI:
    return openai.OpenAI(
        api_key="unused",
        base_url="http://upstream.test/v1",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(_respond)),
        _strict_response_validation=True,
    )


@cache
def _anthropic() -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="unused",
        base_url="http://upstream.test",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(_respond)),
        _strict_response_validation=True,
    )


_ASK: Any = [{"role": "user", "content": "hi"}]


def _ask(format: Format, **more: Any) -> Any:
    if format == "openai_chat":
        return _openai().chat.completions.create(model="m", messages=_ASK, **more)
    if format == "openai_responses":
        return _openai().responses.create(model="m", input="hi", **more)
    return _anthropic().messages.create(model="m", max_tokens=10, messages=_ASK, **more)


def take(format: Format, body: bytes) -> Any:
    """The official client's object for a buffered reply. Raises where a type does not fit."""
    _answer["next"] = ("application/json", body)
    return _ask(format)


def take_stream(format: Format, stream: bytes) -> Any:
    """The official client's final object for a stream: every event checked, then folded by the client's own helper."""
    _answer["next"] = ("text/event-stream; charset=utf-8", stream)
    events = list(_ask(format, stream=True))
    if format == "openai_chat":
        if any(c.finish_reason == "content_filter" for e in events for c in e.choices):
            return _filtered(events)  # the helper raises where a filter ended the answer
        with _openai().chat.completions.stream(model="m", messages=_ASK) as events:
            return events.get_final_completion()
    if format == "openai_responses":
        if events[-1].type == "response.incomplete":
            return events[-1].response  # the helper waits for response.completed
        with _openai().responses.stream(model="m", input="hi") as events:
            return events.get_final_response()
    with _anthropic().messages.stream(model="m", max_tokens=10, messages=_ASK) as events:
        return events.get_final_message()


def _filtered(chunks: list[Any]) -> Any:
    said = "".join(c.delta.content or "" for e in chunks for c in e.choices)
    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=said, tool_calls=None))])


def understood(format: Format, taken: Any) -> tuple[str, list[tuple[str, str]]]:
    """The text and the calls (id and name) that the client sees."""
    if format == "openai_chat":
        message = taken.choices[0].message
        calls = [(c.id, c.function.name if c.type == "function" else c.custom.name) for c in message.tool_calls or []]
        return message.content or "", calls
    if format == "openai_responses":
        calls = [(i.call_id, i.name) for i in taken.output if i.type in ("function_call", "custom_tool_call")]
        return taken.output_text, calls
    text = "".join(b.text for b in taken.content if b.type == "text")
    return text, [(b.id, b.name) for b in taken.content if b.type == "tool_use"]
