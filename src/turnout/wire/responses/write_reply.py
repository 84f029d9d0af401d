"""Neutral reply -> response object, complete as the schema asks."""

import hashlib
import os
import time
from typing import Any

import msgspec

from turnout.conversation import (
    Citation,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Stop,
    Text,
    ToolCall,
)
from turnout.wire.codec import Request, Written
from turnout.wire.drops import Drops
from turnout.wire.items import TIERS
from turnout.wire.responses.content import FORMAT, write_annotation
from turnout.wire.responses.tools import Tools, write_choice, write_tools
from turnout.wire.responses.usage import write_usage
from turnout.wire.responses.writing import US, call_item, reasoning_item

_LONGEST_ID = 64


class Ids:
    """Ids of a response and its items: unique across responses, stable within one, at most 64 characters.

    `source`: the upstream's own id of the reply, kept where it is one of Responses. Other ids are not built upon: some
    servers give every reply the same.
    """

    __slots__ = ("_stem", "response")

    def __init__(self, source: str) -> None:
        if source.startswith("resp_") and len(source) <= _LONGEST_ID:
            self.response = source
            self._stem = hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        else:
            self._stem = os.urandom(16).hex()
            self.response = f"resp_{self._stem}"

    def item(self, prefix: str, number: int, given: str | None = None) -> str:
        """The id of output item `number`: the given one where it fits, else `prefix_...`."""
        if given is not None and 0 < len(given) <= _LONGEST_ID:
            return given
        return f"{prefix}_{self._stem}{number:04x}"


def call_prefix(call: ToolCall) -> str:
    """What the id of a call's item begins with."""
    return "ctc" if call.style == "custom" else "fc"


def content_part(part: Text | Refusal) -> dict[str, Any]:
    """A content part of an output message."""
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    length = len(part.text)
    return {
        "type": "output_text",
        "annotations": [write_annotation(c, length) for c in part.annotations if speakable(c)],
        "logprobs": part.extra.get("logprobs") or [],
        "text": part.text,
    }


def speakable(citation: Citation) -> bool:
    """Whether a citation has a form in Responses."""
    if citation.url:
        return True
    kind = citation.extra.get("type")
    return kind in ("file_citation", "container_file_citation", "file_path") or "index" in citation.extra


def message_item(item_id: str, content: list[dict[str, Any]], phase: Any, status: str = "completed") -> dict[str, Any]:
    """An output message."""
    item: dict[str, Any] = {"id": item_id, "type": "message", "status": status, "content": content, "role": "assistant"}
    if phase is not None:
        item["phase"] = phase
    return item


def phase_of(part: Part) -> Any:
    """The phase of the message that a text part belongs to."""
    return part.extra.get("phase") if isinstance(part, Text) else None


def output_items(parts: tuple[Part, ...], ids: Ids, drops: Drops) -> list[dict[str, Any]]:
    """The `output` array. Adjacent text and refusal parts make one message."""
    items: list[dict[str, Any]] = []
    message: dict[str, Any] | None = None
    for index, part in enumerate(parts):
        if isinstance(part, Text | Refusal):
            phase = phase_of(part)
            if message is None or message.get("phase") != phase:
                message = message_item(ids.item("msg", len(items)), [], phase)
                items.append(message)
            message["content"].append(content_part(part))
            continue
        message = None
        item = other_item(part, ids, len(items))
        if item is not None:
            items.append(item)
        else:
            what = part.type if isinstance(part, Opaque) else type(part).__name__
            drops.drop(f"content[{index}]", f"{US} has no {what} in replies")
    return items


def other_item(part: Part, ids: Ids, number: int) -> dict[str, Any] | None:
    """The output item of a part that is no content of a message; None for what a reply of Responses cannot hold."""
    if isinstance(part, ToolCall):
        return call_item(own_call(part), ids.item(call_prefix(part), number, part.item_id), {"status": "completed"})
    if isinstance(part, Reasoning):
        given = part.id if part.origin == FORMAT else None
        return reasoning_item(part, ids.item("rs", number, given), {})
    if isinstance(part, Opaque) and part.format == FORMAT and isinstance(part.value, dict):
        return part.value if "type" in part.value else {"type": part.type, **part.value}
    return None


def own_call(call: ToolCall) -> ToolCall:
    """`call` without fields of another format: only calls read from Responses have an item's id."""
    return msgspec.structs.replace(call, extra={}) if call.extra and call.item_id is None else call


_INCOMPLETE: dict[Stop, str] = {"length": "max_output_tokens", "pause": "pause_turn"}


def ending(stop: Stop, detail: str | None, refused: bool) -> tuple[str, dict[str, Any] | None]:
    """Status and incomplete_details. `refused`: a refusal item says it already, so the response counts as complete."""
    if stop in _INCOMPLETE:
        return "incomplete", {"reason": detail or _INCOMPLETE[stop]}
    if stop == "refusal" and not refused:
        return "incomplete", {"reason": "content_filter"}
    return "completed", None


def echo(asked: Request, drops: Drops | None = None) -> dict[str, Any]:
    """What a response object repeats of the request, in the schema's order, and the schema's defaults for the rest."""
    settings, conversation = asked.settings, asked.conversation
    unused = drops if drops is not None else Drops()
    choice = write_choice(settings.tool_choice, conversation, unused) if settings.tool_choice is not None else "auto"
    extra = settings.extra
    output = settings.output
    text: dict[str, Any] = {"format": {"type": output.kind if output is not None else "text"}}
    if output is not None and output.kind == "json_schema":
        text["format"].update(
            name=output.name or "answer",
            description=output.description,
            strict=bool(output.strict),
            schema=output.schema or {},
        )
    text["verbosity"] = settings.verbosity or "medium"
    effort = settings.effort
    return {
        "background": bool(settings.background),
        "max_output_tokens": settings.max_tokens,
        "max_tool_calls": extra.get("max_tool_calls"),
        "metadata": settings.metadata or {},
        "parallel_tool_calls": settings.parallel is not False,
        "previous_response_id": settings.previous_response_id,
        "conversation": {"id": settings.conversation_id} if settings.conversation_id is not None else None,
        "prompt_cache_key": settings.prompt_cache_key,
        "prompt_cache_retention": extra.get("prompt_cache_retention"),
        "reasoning": {
            "effort": effort.level if effort is not None else None,
            "summary": effort.summary if effort is not None else None,
        },
        "safety_identifier": settings.user if settings.user_field == "safety_identifier" else None,
        "service_tier": settings.service_tier or "auto",
        "store": settings.store is not False,
        "temperature": settings.temperature if settings.temperature is not None else 1.0,
        "text": text,
        "tool_choice": choice if choice is not None else "auto",
        "top_logprobs": extra.get("top_logprobs") or 0,
        "top_p": settings.top_p if settings.top_p is not None else 1.0,
        "truncation": extra.get("truncation") or "disabled",
        "user": settings.user if settings.user_field == "user" else None,
    }


def echo_tools(asked: Request) -> Any:
    """The request's tools, as they came where they are still at hand."""
    tools = asked.conversation.tools
    if isinstance(tools, Tools):
        raw = tools.raw
        if raw is None:
            return []
        # An event of a stream is one line.
        return msgspec.Raw(msgspec.json.format(raw, indent=-1)) if b"\n" in bytes(raw) else raw
    return write_tools(tools, asked.conversation.format == FORMAT, Drops())


def echo_instructions(asked: Request) -> str | None:
    """The request's instructions."""
    texts = [p.text for p in asked.conversation.system if isinstance(p, Text)]
    return "\n\n".join(texts) if texts else None


def _known(part: Part, index: int, drops: Drops) -> Part:
    """The part of a reply of another format without what only that format knows of it."""
    if isinstance(part, Opaque) or not part.extra:
        return part
    drops.extras(f"content[{index}]", part.extra, US)
    return msgspec.structs.replace(part, extra={})


def write_reply(reply: Reply, asked: Request, model: str) -> Written:
    """See `Codec.write_reply`."""
    drops = Drops()
    native = reply.format == FORMAT
    ids = Ids(reply.id)
    parts = (
        reply.parts
        if reply.format in (FORMAT, None)
        else tuple(_known(part, i, drops) for i, part in enumerate(reply.parts))
    )
    output = output_items(parts, ids, drops)
    refused = any(isinstance(p, Refusal) for p in reply.parts)
    status, incomplete = ending(reply.stop, reply.stop_detail if native else None, refused)
    if reply.stop == "pause":
        drops.downgrade("stop_reason", f"{US} cannot say that a server tool paused the turn")
    if reply.stop_sequence is not None:
        drops.drop("stop_sequence", f"{US} does not say which stop sequence ended a reply")
    extra = dict(reply.extra)
    served = {"service_tier": extra.pop("service_tier")} if not native and extra.get("service_tier") in TIERS else {}
    if not native:
        drops.extras("", extra, US)
    created = reply.created if reply.created is not None else int(time.time())
    value = {
        "id": ids.response,
        "object": "response",
        "created_at": created,
        "status": status,
        "completed_at": created if status == "completed" else None,
        "error": None,
        "incomplete_details": incomplete,
        "instructions": echo_instructions(asked),
        "model": model or reply.model,
        "output": output,
        **echo(asked),
        **served,
        "tools": echo_tools(asked),
        "usage": write_usage(reply.usage, native),
    }
    if native:
        value.update(reply.extra)
    return Written(msgspec.json.encode(value), tuple(drops.found))
