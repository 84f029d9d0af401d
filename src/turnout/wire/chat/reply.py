"""A buffered Chat reply, both ways."""

import time
import uuid
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import (
    Citation,
    Extra,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Stop,
    Text,
    ToolCall,
)
from turnout.errors import ClientError, UpstreamError
from turnout.wire.chat.content import FORMAT, read_content, write_part
from turnout.wire.chat.fields import rest
from turnout.wire.chat.messages import (
    REPLY_FIELDS,
    arguments_text,
    details_text,
    read_call,
    read_reasoning,
    write_reasoning,
)
from turnout.wire.chat.turns import NAME
from turnout.wire.chat.usage import BROKEN, read_stop, read_usage, write_stop, write_usage
from turnout.wire.codec import Counted, Request, Written
from turnout.wire.drops import Drops
from turnout.wire.faults import upstream_error
from turnout.wire.items import TIERS, UNTRANSLATABLE
from turnout.wire.names import Names, custom_arguments, qualified

_PLAIN_STOPS: dict[str | None, Stop] = {"stop": "end", "length": "length", "tool_calls": "tool_calls"}
_TOP = frozenset(("id", "object", "created", "model", "choices", "usage"))
_CHOICE = frozenset(("index", "message", "finish_reason", "stop_reason", "delta"))
_MESSAGE = REPLY_FIELDS | {"annotations"}
_CITED = frozenset(("url", "title", "start_index", "end_index"))


def malformed(message: str) -> UpstreamError:
    """The upstream's answer is not a Chat reply."""
    return UpstreamError("malformed", f"the upstream's answer is not a Chat completion: {message}")


def read_reply(body: bytes, asked: Request | None = None) -> Reply:
    """A whole Chat completion."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise malformed(f"not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise malformed("not a JSON object")
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        if is_error(value):
            raise upstream_error(None, (), value)
        raise malformed("it has no choices")
    return _read(value, choices, asked, body)


class _CountedChoice(Struct):
    finish_reason: str | None = None
    message: msgspec.Raw = msgspec.Raw(b"")


class _CountedReply(Struct):
    id: str = ""
    choices: list[_CountedChoice] = []
    usage: dict[str, Any] | None = None
    error: Any = None


_COUNTED = msgspec.json.Decoder(_CountedReply)


def count_reply(body: bytes, asked: Request | None = None) -> Counted:
    """Id, usage and stop of a whole Chat completion; what is not plain is read in full."""
    try:
        quick = _COUNTED.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        quick = _CountedReply()
    if len(quick.choices) == 1 and quick.error is None and bytes(quick.choices[0].message).startswith(b"{"):
        reason = quick.choices[0].finish_reason
        if reason in _PLAIN_STOPS:
            return Counted(quick.id, read_usage(quick.usage), _PLAIN_STOPS[reason])
    reply = read_reply(body, asked)
    return Counted(reply.id, reply.usage, reply.stop)


def is_error(value: dict[str, Any]) -> bool:
    """Whether an object without choices is an error that came under a 200."""
    if value.get("error") or value.get("object") == "error" or value.get("type") == "error":
        return True
    return any(isinstance(value.get(k), str) and value[k] for k in ("detail", "message"))


def _read(value: dict[str, Any], choices: list[Any], asked: Request | None, body: bytes) -> Reply:
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise malformed("the first choice has no message")
    reason = choice.get("finish_reason")
    if value.get("error") or choice.get("error") or _text(reason) in BROKEN:
        raise upstream_error(None, (), _error_of(value, choice, reason))
    extra = rest(value, _TOP)
    extra.update(rest(choice, _CHOICE))
    more = rest(message, _MESSAGE)
    if len(choices) > 1:
        extra["choices"] = choices[1:]
    try:
        parts = _parts(message, more, asked, str(value.get("id") or ""))
    except ClientError as error:
        raise malformed(error.message) from None
    if more:
        extra["message"] = more
    if not isinstance(reason, str) or not reason:
        reason = "stop"  # the body is whole, so the answer is: some gateways leave the reason empty
    stop, detail = read_stop(reason, any(isinstance(p, ToolCall) for p in parts))
    word = choice.get("stop_reason")
    if stop == "end" and isinstance(word, str) and word:
        stop, sequence = stopped_by(word, asked)
    else:
        sequence = None
    created = value.get("created")
    return Reply(
        parts=parts,
        stop=stop,
        usage=read_usage(value.get("usage")),
        id=_text(value.get("id")),
        model=_text(value.get("model")),
        stop_sequence=sequence,
        stop_detail=detail,
        created=int(created) if isinstance(created, int | float) else None,
        format=FORMAT,
        frames=body,
        extra=extra,
    )


def stopped_by(word: str, asked: Request | None) -> tuple[Stop, str | None]:
    """vLLM names the stop word (or a special token, which is no stop word of the client's)."""
    if asked is None or word in asked.settings.stop:
        return "stop_sequence", word
    return "end", None


def _error_of(value: dict[str, Any], choice: dict[str, Any], reason: Any) -> Any:
    error = value.get("error") or choice.get("error")
    return (
        {"error": error}
        if error
        else {"error": {"message": f"the upstream broke off ({reason})", "code": "server_error"}}
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parts(message: dict[str, Any], more: Extra, asked: Request | None, reply_id: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    thought = read_reasoning(message, more)
    if thought is not None:
        if not thought.text and thought.details is not None:
            thought = msgspec.structs.replace(thought, text=details_text(thought.details))
        if thought.text or thought.details:
            parts.append(thought)
    content = read_content(message.get("content"), "message.content")
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise malformed("message.tool_calls is not a list")
    refusal = message.get("refusal")
    annotations = message.get("annotations")
    if annotations and content and isinstance(content[0], Text):
        first = msgspec.structs.replace(content[0], annotations=read_annotations(annotations))
        content = (first, *content[1:])
    elif annotations:
        more["annotations"] = annotations
    # Servers put "" beside calls, reasoning or a refusal where others put null.
    if not (content == (Text(""),) and (calls or parts or refusal or message.get("function_call"))):
        parts.extend(content)
    if isinstance(refusal, str) and refusal:
        parts.append(Refusal(refusal))
    restore = restorer(asked)
    for i, call in enumerate(calls):
        parts.append(restore(identified(read_call(call, f"message.tool_calls[{i}]"), reply_id, i)))
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("name"), str) and legacy["name"]:
        call = ToolCall("", legacy["name"], arguments_text(legacy.get("arguments")))
        parts.append(restore(identified(call, reply_id, len(calls))))
    return tuple(parts)


def identified(call: ToolCall, reply_id: str, index: int) -> ToolCall:
    """The call with an id: some servers give none, and results could not be matched."""
    if call.id:
        return call
    return msgspec.structs.replace(call, id=call_id(reply_id, index))


def call_id(reply_id: str, index: int) -> str:
    """An id for call `index` of a reply, unique over replies."""
    stem = uuid.uuid5(uuid.NAMESPACE_OID, reply_id) if reply_id else uuid.uuid4()
    return f"call_{stem.hex[:24]}{index}"


def restorer(asked: Request | None) -> Any:
    """Gives calls back under the client's own names, where the client speaks another format."""
    if asked is None or asked.format == FORMAT:
        return _same
    return Names(asked.conversation.tools).restore


def _same(call: ToolCall) -> ToolCall:
    return call


def read_annotations(value: Any) -> tuple[Citation, ...]:
    """Annotations of a message; those that are no URL citations are kept whole in `extra`."""
    found = []
    for annotation in value if isinstance(value, list) else ():
        if not isinstance(annotation, dict):
            continue
        cited = annotation.get("url_citation")
        if annotation.get("type") != "url_citation" or not isinstance(cited, dict):
            found.append(Citation("", extra=annotation))
            continue
        start, end = cited.get("start_index"), cited.get("end_index")
        found.append(
            Citation(
                _text(cited.get("url")),
                cited.get("title") if isinstance(cited.get("title"), str) else None,
                start if isinstance(start, int) else None,
                end if isinstance(end, int) else None,
                rest(cited, _CITED),
            )
        )
    return tuple(found)


def write_annotations(citations: tuple[Citation, ...], shift: int, own: bool) -> list[dict[str, Any]]:
    """Citations as annotations; `shift`: characters of the message before their text part."""
    written: list[dict[str, Any]] = []
    for citation in citations:
        if not citation.url:
            if own:
                written.append(citation.extra)
            continue
        cited: dict[str, Any] = {"url": citation.url}
        if citation.title is not None:
            cited["title"] = citation.title
        if citation.start is not None:
            cited["start_index"] = citation.start + shift
        if citation.end is not None:
            cited["end_index"] = citation.end + shift
        if own:
            cited.update(citation.extra)
        written.append({"type": "url_citation", "url_citation": cited})
    return written


def write_reply(reply: Reply, asked: Request, model: str) -> Written:
    """A reply as a Chat completion. Raises ClientError for output that only a Responses client could act on."""
    drops = Drops()
    own = reply.format in (FORMAT, None)
    extra = dict(reply.extra)
    message = _message(reply, asked, own, extra, drops)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason(reply.stop, asked)}
    if reply.stop == "pause":
        drops.downgrade("stop_reason", f"{NAME} cannot say that a server tool paused the turn")
    if reply.stop_sequence is not None:
        choice["stop_reason"] = reply.stop_sequence
    value: dict[str, Any] = {
        "id": reply.id or f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": reply.created if reply.created is not None else int(time.time()),
        "model": model,
        "choices": [choice],
    }
    if reply.usage is not None:
        value["usage"] = write_usage(reply.usage, own)
        if not own:
            drops.extras("usage", reply.usage.extra, NAME)
    if own:
        for key in ("logprobs", "content_filter_results", "native_finish_reason"):
            if key in extra:
                choice[key] = extra.pop(key)
        value["choices"] += extra.pop("choices", ())
        value.update(extra)
    else:
        if extra.get("service_tier") in TIERS:  # of Responses, where it means the same
            value["service_tier"] = extra.pop("service_tier")
        drops.extras("", extra, NAME)
        choice["logprobs"] = None
    return Written(msgspec.json.encode(value), tuple(drops.found))


def finish_reason(stop: Stop, asked: Request) -> str:
    """The finish reason; a client of the legacy function interface gets its own word for a call."""
    if stop == "tool_calls" and legacy_client(asked):
        return "function_call"
    return write_stop(stop)


def legacy_client(asked: Request) -> bool:
    """Whether the client offered `functions` rather than `tools`."""
    tools = asked.conversation.tools
    # Only `functions` are read into a tuple, whose last entry then is one; `tools` alone stay lazy.
    return asked.format == FORMAT and isinstance(tools, tuple) and bool(tools) and tools[-1].raw is not None


def _message(reply: Reply, asked: Request, own: bool, extra: Extra, drops: Drops) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    text: list[str] = []
    annotations: list[dict[str, Any]] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    length = 0
    for index, part in enumerate(reply.parts):
        match part:
            case Text():
                annotations += write_annotations(part.annotations, length, own)
                text.append(part.text)
                length += len(part.text)
                if part.extra and not own:
                    drops.extras(f"content[{index}]", part.extra, NAME)
            case Reasoning():
                _reasoning(part, index, own, thoughts, message, drops)
            case Refusal():
                message["refusal"] = (message["refusal"] or "") + part.text
            case ToolCall():
                calls.append(write_reply_call(emulated(part, asked), own))
            case _:
                _foreign(part, index, own, text, drops)
    if text:
        message["content"] = "".join(text)
    if thoughts:
        message.setdefault("reasoning_content", "\n\n".join(thoughts))
    if annotations:
        message["annotations"] = annotations
    if calls and legacy_client(asked):
        message["function_call"] = calls[0].get("function")
    elif calls:
        message["tool_calls"] = calls
    more = extra.pop("message", None) if own else None
    if isinstance(more, dict):
        message.update(more)
    return message


def _reasoning(
    part: Reasoning, index: int, own: bool, thoughts: list[str], message: dict[str, Any], drops: Drops
) -> None:
    if own and part.origin == FORMAT:
        if "part" not in part.extra:
            write_reasoning(part, message)
            return
    elif part.signature or part.encrypted:
        drops.drop(
            f"content[{index}]" + (".signature" if part.signature else ".encrypted"), f"{NAME} has no place for it"
        )
    text = part.text or "\n\n".join(part.summary)
    if text:
        thoughts.append(text)


def emulated(call: ToolCall, asked: Request) -> ToolCall:
    """The call as the client can take it: a custom one only where it offered custom tools, else a function with `input`."""
    if call.style != "custom" or any(tool.style == "custom" for tool in asked.conversation.tools):
        return call
    return msgspec.structs.replace(call, style="function", arguments=custom_arguments(call.arguments))


def write_reply_call(call: ToolCall, own: bool) -> dict[str, Any]:
    """One entry of `tool_calls` of a reply."""
    name = qualified(call.name, call.namespace)
    if call.style == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    value: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": call.arguments or "{}"},
    }
    return {**value, **call.extra} if own and call.extra else value


def _foreign(part: Part, index: int, own: bool, text: list[str], drops: Drops) -> None:
    if isinstance(part, Opaque) and part.format != FORMAT:
        if part.type in UNTRANSLATABLE:
            raise unshowable(part.type)
        drops.drop(f"content[{index}]", f"{NAME} has no place for {part.type}")
        return
    if own:
        block = write_part(part)
        text.append(block if isinstance(block, str) else msgspec.json.encode(block).decode())
        drops.downgrade(f"content[{index}]", "told as text")
        return
    drops.drop(f"content[{index}]", f"{NAME} has no place for {type(part).__name__.lower()} output")


def unshowable(kind: str) -> ClientError:
    """The error for output that a Chat client could neither show nor act on."""
    return ClientError(
        f"the model answered with a {kind}, which {NAME} cannot carry", status=502, code="unsupported_capability"
    )
