"""Conversation files: JSON lines with `messages` in OpenAI chat form, and what recorders know beside it.

A tool message may carry `is_error` (true or false) and `returncode`; a line may carry `headers`, `tools` and `model`.
"""

import codecs
import gzip
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Lazy, Message, Settings, ToolResult
from turnout.errors import ClientError, ConfigError
from turnout.signals import BUILT_IN, OBSERVED_AT_MOST, Observation, Vocabulary, observe, real_user_text
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
    with opened(path) as file:
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


def read_conversation(text: bytes, line: int = 0, withhold: Collection[str] = ()) -> Recorded:
    """One conversation, without what `withhold` names of `is_error` and `returncode`.

    Raises ClientError, msgspec.DecodeError or ValueError for what is none.
    """
    row = msgspec.json.decode(text)
    if not isinstance(row, dict) or not isinstance(row.get("messages"), list):
        raise ValueError("expected an object with a list `messages`")
    known: dict[int, dict[str, Any]] = {}
    messages = []
    for index, message in enumerate(row["messages"]):
        if isinstance(message, dict) and message.get("role") == "tool":
            known[index] = {key: message[key] for key in _KNOWN if message.get(key) is not None and key not in withhold}
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


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, gzipped or not, as they stand."""
    with opened(path) as lines:
        for line in lines:
            if line.strip():
                yield msgspec.json.decode(line, type=dict[str, Any])


def observations(conversation: Conversation, vocabulary: Vocabulary = BUILT_IN) -> Iterator[Observation]:
    """Every tool result of a conversation, in order, as it is seen when it is new.

    Signals reach back to the last real user turn and hold a bounded number, so the conversation is looked at before each user
    turn and whenever that number is full.
    """
    messages = tuple(conversation.messages)
    told = (-1, -1)
    fresh = 0
    for i in range(len(messages) + 1):
        results = sum(isinstance(part, ToolResult) for part in messages[i].parts) if i < len(messages) else 0
        ends = i == len(messages) or real_user_text(messages[i]) is not None
        if fresh and (ends or fresh + max(results, 1) > OBSERVED_AT_MOST):
            past = msgspec.structs.replace(conversation, messages=messages[:i], roles=tuple(conversation.roles[:i]))
            for seen in observe(past, vocabulary).observations:
                if (seen.message, seen.part) > told:
                    told = (seen.message, seen.part)
                    yield seen
            fresh = 0
        # A text may be a result too (agents without a tool role); counting it as one errs on the side of looking sooner.
        fresh += max(results, 1 if i < len(messages) and messages[i].role == "user" else 0)


class Collections:
    """The conversations of files in `folder` that labels point into, by file name and line.

    A file is called by its name with or without `.jsonl` and `.gz`; it is looked for in the folder and in its `traces`.
    `withhold`: what recorders know beside a result that is left out (`is_error`, `returncode`). Only wanted lines are kept.
    """

    def __init__(self, folder: Path, withhold: Collection[str] = ()) -> None:
        self._folder = folder
        self._withhold = withhold
        self._wanted: dict[str, set[int]] = {}
        self._lines: dict[str, dict[int, bytes]] = {}
        self._read: dict[tuple[str, int], Conversation] = {}

    def want(self, places: Iterable[tuple[str, int]]) -> None:
        """Say which conversations will be asked for, so that each file is read once."""
        for file, row in places:
            self._wanted.setdefault(file, set()).add(row)

    def has(self, file: str) -> bool:
        """Whether there is a collection of that name."""
        return self._path(file) is not None

    def conversation(self, file: str, row: int) -> Conversation:
        """The conversation at line `row` (from 0) of a collection. Raises ValueError when there is none."""
        read = self._read.get((file, row))
        if read is None:
            read = self._read[file, row] = self._conversation(file, row)
        return read

    def read(self, messages: list[Any], line: int = 0) -> Conversation:
        """A conversation that lies in no file, with the same withheld."""
        return read_conversation(msgspec.json.encode({"messages": messages}), line, self._withhold).conversation

    def _conversation(self, file: str, row: int) -> Conversation:
        if file not in self._lines:
            path = self._path(file)
            if path is None:
                raise ValueError(f"no {file}, {file}.jsonl or {file}.jsonl.gz in {self._folder}; say where it lies")
            wanted = self._wanted.get(file, set()) | {row}
            with opened(path) as lines:
                self._lines[file] = {i: line for i, line in enumerate(lines) if i in wanted}
        line = self._lines[file].get(row)
        if line is None:
            raise ValueError(f"{file} has no line {row} (they count from 0)")
        return read_conversation(line, row, self._withhold).conversation

    def _path(self, file: str) -> Path | None:
        for folder in (self._folder, self._folder / "traces"):
            for ending in ("", ".jsonl", ".jsonl.gz"):
                path = folder / f"{file}{ending}"
                if path.is_file():
                    return path
        return None


def opened(path: Path) -> IO[bytes]:
    """A file of JSON lines to read, gzipped or not; `-` is stdin."""
    if str(path) == "-":
        return Path("/dev/stdin").open("rb")
    with path.open("rb") as probe:
        zipped = probe.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if zipped else path.open("rb")


def _said(error: Exception) -> str:
    param = getattr(error, "param", None)
    return f"{param}: {error}" if param and param not in str(error) else str(error)
