"""Whether a reply is what the request asks for, as far as that can be told without understanding it; and when two say the
same."""

import re
from hashlib import blake2b
from typing import Any

import msgspec

from turnout.conversation import Conversation, Opaque, Refusal, Reply, Settings, Text, Tool, ToolCall
from turnout.routing.collaboration.schema import misfit

_DECODE = msgspec.json.Decoder().decode
_FENCE = re.compile(r"\A```[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?```\Z", re.DOTALL)
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d,]*(?:\.\d+)?%?\Z")


def unfit(reply: Reply, conversation: Conversation, settings: Settings) -> str:
    """Why a reply cannot go out: empty, calls that name no tool or do not fit its schema, text that is not the structured output
    that was asked for. "" when nothing is wrong that can be seen from outside."""
    if not any(isinstance(part, Text | ToolCall | Refusal | Opaque) for part in reply.parts):
        return "the response is empty"
    calls = reply.calls
    if not calls and not reply.text.strip() and not any(isinstance(part, Refusal | Opaque) for part in reply.parts):
        return "the response is empty"
    choice = settings.tool_choice
    mode = choice.mode if choice is not None else "auto"
    if mode == "allowed" and choice is not None:
        mode = choice.allowed_mode
    if not calls:
        if mode in ("required", "named"):
            return "the response calls no tool, though it must"
        return _unstructured(reply, settings)
    if mode == "none":
        return "the response calls a tool, though it may not"
    if choice is not None and mode == "named" and any(call.name != choice.name for call in calls):
        return f"the response calls another tool than `{choice.name}`"
    tools = {(tool.namespace, tool.name): tool for tool in conversation.tools}
    for call in calls:
        if found := _wrong_call(call, tools):
            return found
    return ""


def _wrong_call(call: ToolCall, tools: dict[tuple[str | None, str], Tool]) -> str:
    tool = tools.get((call.namespace, call.name))
    if tool is None:
        return f"the response calls `{call.name[:80]}`, which is not offered"
    if call.style == "custom" or tool.style != "function":
        return ""
    try:
        given = _DECODE(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return f"the arguments of `{call.name}` are not JSON"
    if not isinstance(given, dict):
        return f"the arguments of `{call.name}` are not a JSON object"
    found = misfit(given, tool.parameters or {})
    return f"the arguments of `{call.name}` do not fit its schema: {found}" if found else ""


def _unstructured(reply: Reply, settings: Settings) -> str:
    output = settings.output
    if output is None or output.kind == "text" or any(isinstance(part, Refusal) for part in reply.parts):
        return ""
    try:
        value = _DECODE(reply.text)
    except (msgspec.DecodeError, RecursionError):
        return "the response is not JSON, which was asked for"
    if output.kind == "json_object":
        return "" if isinstance(value, dict) else "the response is not a JSON object, which was asked for"
    found = misfit(value, output.schema or {})
    return f"the response does not fit the schema that was asked for: {found}" if found else ""


def key_of(reply: Reply) -> str:
    """A digest of what a reply says: equal for the same text and the same calls, ids left aside."""
    return _digest([_said(reply), *((call.namespace, call.name, call.arguments) for call in reply.calls)])


def alike(reply: Reply) -> str:
    """A digest that is equal for replies that say the same in another spelling: calls and JSON by value, numbers however they
    are grouped, one block of code however it is spaced, other texts without regard to case, white space and a last full stop."""
    if reply.calls:
        return _digest([(call.namespace, call.name, _value(call.arguments)) for call in reply.calls])
    text = _said(reply).strip()
    if (found := _value(text)) is not text:
        return _digest(found)
    if fenced := _FENCE.match(text):
        return _digest(" ".join(fenced[1].split()))
    plain = " ".join(text.split()).casefold().rstrip(". ")
    if _NUMBER.match(plain):
        plain = plain.replace(",", "").lstrip("+")
        plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return _digest(plain)


def _said(reply: Reply) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, Text | Refusal))


def _value(text: str) -> Any:
    """A JSON object or array by value; any other text as it is."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return _DECODE(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _digest(value: Any) -> str:
    return blake2b(msgspec.json.encode(value, order="sorted"), digest_size=6).hexdigest()
