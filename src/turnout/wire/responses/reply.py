"""Whole replies: response object -> neutral reply."""

from typing import Any

import msgspec

from turnout.conversation import Extra, Opaque, Part, Refusal, Reply, Stop, Text, ToolCall
from turnout.errors import ClientError, UpstreamError
from turnout.wire.codec import Counted, Request
from turnout.wire.faults import upstream_error
from turnout.wire.names import Names
from turnout.wire.responses.content import FORMAT, read_content
from turnout.wire.responses.reading import kind_of, part_of
from turnout.wire.responses.usage import read_usage

_ECHOES = """
    id object created_at completed_at status model output output_text usage error incomplete_details instructions metadata
    parallel_tool_calls temperature tool_choice tools top_p background max_output_tokens max_tool_calls previous_response_id
    prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier text top_logprobs
    truncation user store conversation input frequency_penalty presence_penalty include stream
"""
ECHOES = frozenset(_ECHOES.split())
"""Fields of a response object that the neutral reply holds by name, or that only repeat the request."""

CALLS = frozenset({"function_call", "custom_tool_call"})
_REASONS: dict[str, Stop] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "pause_turn": "pause",
}
_PLAIN_REASONS = frozenset({"max_output_tokens", "content_filter", "pause_turn"})


def read_reply(body: bytes, asked: Request | None = None) -> Reply:
    """See `Codec.read_reply`."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError("malformed", f"the reply is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UpstreamError("malformed", "the reply is not a JSON object")
    check_failed(value)
    output = value.get("output")
    if not isinstance(output, list):
        raise UpstreamError("malformed", "the reply has no output")
    names = Names(asked.conversation.tools) if asked is not None else None
    parts: list[Part] = []
    for index, item in enumerate(output):
        parts += read_output(item, f"output[{index}]", names)
    called = any(isinstance(p, ToolCall) for p in parts)
    stop, detail = read_stop(value, called, any(isinstance(p, Refusal) for p in parts))
    created = value.get("created_at")
    return Reply(
        tuple(parts),
        stop,
        read_usage(value.get("usage")),
        id=text_of(value.get("id")),
        model=text_of(value.get("model")),
        stop_detail=detail,
        created=int(created) if isinstance(created, int | float) else None,
        format=FORMAT,
        frames=body,
        extra=extra_of(value),
    )


def count_reply(body: bytes) -> Counted:
    """See `Codec.count_reply`: output items are not looked into."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError("malformed", f"the reply is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UpstreamError("malformed", "the reply is not a JSON object")
    check_failed(value)
    if not isinstance(value.get("output"), list):
        raise UpstreamError("malformed", "the reply has no output")
    kinds, refused = kinds_of(value["output"])
    stop, _ = read_stop(value, not kinds.isdisjoint(CALLS), refused)
    return Counted(text_of(value.get("id")), read_usage(value.get("usage")), stop)


def kinds_of(output: Any) -> tuple[set[str], bool]:
    """The item types of an output, and whether a message in it is a refusal."""
    items = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
    refused = any(
        isinstance(part, dict) and part.get("type") == "refusal"
        for item in items
        if isinstance(item.get("content"), list)
        for part in item["content"]
    )
    return {text_of(i.get("type")) for i in items}, refused


def text_of(value: Any) -> str:
    """`value` where it is text, else ""."""
    return value if isinstance(value, str) else ""


def extra_of(response: dict[str, Any]) -> Extra:
    """What a response object says beyond its content and the request's echo."""
    return {k: v for k, v in response.items() if k not in ECHOES and v is not None}


def check_failed(response: dict[str, Any]) -> None:
    """Raise the failure that a response object reports under HTTP 200."""
    status = response.get("status")
    if status == "failed" or (response.get("error") and status in (None, "failed", "cancelled")):
        raise upstream_error(None, (), {"error": response.get("error") or {"message": "the response failed"}})
    if status == "cancelled":
        raise UpstreamError("unavailable", "the upstream cancelled the response")


def read_output(item: Any, path: str, names: Names | None) -> list[Part]:
    """The parts of one output item. Raises UpstreamError for one that is not what the format promises."""
    if not isinstance(item, dict):
        raise UpstreamError("malformed", f"{path}: expected an object")
    for field in ("type", "role"):
        if item.get(field) is not None and not isinstance(item[field], str):
            raise UpstreamError("malformed", f"{path}.{field}: expected a string")
    try:
        kind = kind_of(item.get("type"), item.get("role"), "id" in item, path)
        if kind != "message":
            part = part_of(kind, item, path)
            if isinstance(part, Opaque):  # what a server's tool did is no answer to show to a person
                part = msgspec.structs.replace(part, visible="")
            return [names.restore(part) if names is not None and isinstance(part, ToolCall) else part]
        return [with_phase(p, item.get("phase")) for p in read_content(item.get("content"), f"{path}.content")]
    except ClientError as error:
        raise UpstreamError("malformed", error.message) from None


def with_phase(part: Part, phase: Any) -> Part:
    """A text part marked with the phase of its message (commentary, final answer), where the message states one."""
    if phase is None or not isinstance(part, Text):
        return part
    return msgspec.structs.replace(part, extra={**part.extra, "phase": phase})


def read_stop(response: dict[str, Any], called: bool, refused: bool) -> tuple[Stop, str | None]:
    """Why a finished response ended, and the provider's own word where it says more than that. `called`, `refused`:
    whether its output holds a call of a client's tool, a refusal."""
    status = response.get("status")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        reason = reason if isinstance(reason, str) else None
        return _REASONS.get(reason or "", "length"), None if reason in _PLAIN_REASONS else reason
    if status in ("queued", "in_progress"):
        return "pause", status
    if called:
        return "tool_calls", None
    return ("refusal" if refused else "end"), None
