"""Conversation files: JSON lines with `messages` in OpenAI chat form, and what recorders know beside it.

A tool message may carry `is_error` (true or false) and `returncode`; a line may carry `headers`, `tools` and `model`.
"""

import codecs
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Lazy, Message, Settings, ToolResult
from turnout.errors import ClientError, ConfigError
from turnout.wire import CODECS

_KNOWN = ("is_error", "returncode")


class Recorded(Struct, frozen=True):
    """One line of a conversation file. `line`: from 0. `headers`: lower-case names, as the client sent them."""

    line: int
    conversation: Conversation
    settings: Settings
    headers: dict[str, str]


def conversations(path: Path) -> Iterator[Recorded]:
    """The conversations of a file (JSONL or JSONL.gz; `-` is stdin). Raises ConfigError with file and line."""
    with _opened(path) as file:
        for line, text in enumerate(file):
            if not line:
                text = text.removeprefix(codecs.BOM_UTF8)
            if not text.strip():
                continue
            try:
                recorded = read_conversation(text, line)
                tuple(recorded.conversation.messages)  # decoding is lazy; what is malformed is to be said with its line
            except (ClientError, msgspec.DecodeError, ValueError) as error:
                raise ConfigError(_said(error), file=str(path), line=line + 1) from None
            yield recorded


def read_conversation(text: bytes, line: int = 0) -> Recorded:
    """One conversation. Raises ClientError, msgspec.DecodeError or ValueError for what is none."""
    row = msgspec.json.decode(text)
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        raise ValueError("expected an object with a list `messages`")
    known: dict[int, dict[str, Any]] = {}
    messages = []
    for index, message in enumerate(row["messages"]):
        if isinstance(message, dict) and message.get("role") == "tool":
            known[index] = {key: message[key] for key in _KNOWN if message.get(key) is not None}
            message = {key: value for key, value in message.items() if key not in _KNOWN}
        messages.append(message)
    body = {"model": row.get("model") or "", "messages": messages}
    if isinstance(row.get("tools"), list):
        body["tools"] = row["tools"]
    request = CODECS["openai_chat"].read_request(msgspec.json.encode(body))
    conversation = request.conversation
    said = conversation.messages

    def with_known(_: Any, index: int) -> Message:
        return _informed(said[index], known[index]) if known.get(index) else said[index]

    conversation = msgspec.structs.replace(conversation, messages=Lazy(range(len(said)), with_known))
    headers = row.get("headers")
    pairs = headers.items() if isinstance(headers, dict) else ()
    return Recorded(line, conversation, request.settings, {str(k).lower(): str(v) for k, v in pairs})


def _informed(message: Message, known: dict[str, Any]) -> Message:
    """A tool message whose result carries the failure flag and the return code that its recorder kept."""
    parts = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            flag = known.get("is_error")
            extra = {**part.extra, "returncode": known["returncode"]} if "returncode" in known else part.extra
            is_error = flag if isinstance(flag, bool) else part.is_error
            part = msgspec.structs.replace(part, is_error=is_error, extra=extra)
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts))


def _opened(path: Path) -> IO[bytes]:
    if str(path) == "-":
        return Path("/dev/stdin").open("rb")
    with path.open("rb") as probe:
        zipped = probe.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if zipped else path.open("rb")


def _said(error: Exception) -> str:
    param = getattr(error, "param", None)
    return f"{param}: {error}" if param and param not in str(error) else str(error)
