"""Label files: what people say of recorded tool results, next to what Turnout observes there.

A label file is JSON Lines. A row names the result it speaks of in one of three ways: `file`, `row`, `message_index` point into
a collection of conversations; `messages` is a conversation of its own, whose last result is meant (or the one at
`message_index`); `tool`, `args`, `result` (with `is_error`, `returncode` where known) are one call and its result. It labels
what it likes of `error_class`, `tool_kind` and `tests_passed`. A row with `repeated` or `spinning` labels a window of calls:
`message_indices` in place of `message_index`, or `calls`, a list of `tool`, `args`, `result`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, ToolCall, ToolResult
from turnout.errors import ClientError, ConfigError
from turnout.evaluate.recordings import Collections, observations
from turnout.signals import BUILT_IN, ErrorClass, Observation, ToolKind, Vocabulary, observe, real_user_text

Row: TypeAlias = dict[str, Any]


class Call(Struct, frozen=True):
    """One call and its result. `args`: an object, or JSON text of one. `returncode`, `is_error`: None when not known."""

    tool: str
    result: str
    args: str | Row = ""
    is_error: bool | None = None
    returncode: int | None = None


class ResultLabel(Struct, frozen=True):
    """What a person says of one tool result; None = not labelled. `tests_passed`: at least one test ran and all were green."""

    error_class: ErrorClass | None = None
    tool_kind: ToolKind | None = None
    tests_passed: bool | None = None
    note: str = ""


class WindowLabel(Struct, frozen=True):
    """What a person says of a window of calls; None = not labelled."""

    repeated: bool | None = None
    spinning: bool | None = None
    note: str = ""


class LabelledResult(Struct, frozen=True):
    """A label, the observation of the result it speaks of, made within its conversation, and the call's arguments.

    `place`: where the result is, for people. `row`: the row as it stands in the label file. `conversation`: the whole of it,
    beyond the result too.
    """

    place: str
    row: Row
    label: ResultLabel
    seen: Observation
    call: str
    conversation: Conversation


class LabelledWindow(Struct, frozen=True):
    """A label, and the observations of exactly the calls it speaks of, oldest first; `before`: earlier ones of the same task."""

    place: str
    row: Row
    label: WindowLabel
    seen: tuple[Observation, ...]
    conversation: Conversation
    before: tuple[Observation, ...] = ()


class Labelled(Struct, frozen=True):
    """A label file with what is observed where its labels point."""

    results: tuple[LabelledResult, ...] = ()
    windows: tuple[LabelledWindow, ...] = ()


def labelled(
    file: Path, folder: Path | None = None, withhold: Sequence[str] = (), vocabulary: Vocabulary = BUILT_IN
) -> Labelled:
    """The labels of `file` with what is observed at their places. `folder`: where the collections lie (None: beside the file).

    `withhold`: names of what recorders know beside a result (`returncode`, `is_error`) that is not to be looked at.
    `vocabulary`: an operator's tools and patterns beside the built-in ones.
    Raises ConfigError with file and line for a row that is no label or points nowhere.
    """
    rows = list(label_rows(file))
    collections = Collections(folder or file.parent, withhold)
    collections.want((row["file"], row["row"]) for _, row in rows if _refers(row))
    results, windows = [], []
    for line, row in rows:
        try:
            if _is_window(row):
                windows.append(_window(row, line, collections, vocabulary))
            else:
                results.append(_result(row, line, collections, vocabulary))
        except (msgspec.ValidationError, msgspec.DecodeError, ClientError, ValueError) as error:
            raise ConfigError(f"{error}{_choices(str(error))}", file=str(file), line=line) from None
    return Labelled(tuple(results), tuple(windows))


def label_rows(file: Path) -> Iterator[tuple[int, Row]]:
    """The rows of a label file with their line numbers, from 1. Raises ConfigError for what is no JSON object."""
    for line, text in enumerate(file.read_bytes().splitlines(), 1):
        if text.strip():
            try:
                yield line, msgspec.json.decode(text, type=Row)
            except msgspec.MsgspecError as error:
                raise ConfigError(str(error), file=str(file), line=line) from None


def _choices(error: str) -> str:
    """What may stand in the field that holds another value, as `error` says."""
    for field, choices in (("error_class", ErrorClass), ("tool_kind", ToolKind)):
        if error.startswith("Invalid enum value") and error.endswith(f"`$.{field}`"):
            return f"; one of: {', '.join(get_args(choices))}"
    return ""


def _is_window(row: Row) -> bool:
    return "message_indices" in row or "repeated" in row or "spinning" in row


def _refers(row: Row) -> bool:
    return isinstance(row.get("file"), str) and isinstance(row.get("row"), int) and "messages" not in row


class _Place(Struct, frozen=True):
    """The conversation a row speaks of and what to call it. `own`: the row carries it; its indices are of that very one."""

    conversation: Conversation
    name: str
    own: bool


def _result(row: Row, line: int, collections: Collections, vocabulary: Vocabulary) -> LabelledResult:
    label = msgspec.convert(row, ResultLabel)
    if label == ResultLabel(note=label.note):
        raise ValueError("labels nothing; give `error_class`, `tool_kind` or `tests_passed`")
    place = _place(row, line, collections)
    at = row.get("message_index") if "messages" in row or not place.own else None
    if at is None:
        if not place.own:
            raise ValueError("`message_index` is missing: which message of that conversation is meant")
        at = len(place.conversation.roles) - 1
    return observed_at(place.conversation, place.name, at, row, label, vocabulary)


def observed_at(
    conversation: Conversation,
    name: str,
    at: int,
    row: Row,
    label: ResultLabel,
    vocabulary: Vocabulary = BUILT_IN,
) -> LabelledResult:
    """What is observed of the result in message `at` of the conversation called `name`. Raises ValueError when it holds none."""
    seen = [o for o in observe(_upto(conversation, at), vocabulary).observations if o.message == at]
    if not seen:
        raise ValueError(f"{name} holds no tool result in message {at}; `message_index` counts `messages` from 0")
    return LabelledResult(f"{name}:{at}", row, label, seen[-1], _call_of(conversation, seen[-1]), conversation)


def _window(row: Row, line: int, collections: Collections, vocabulary: Vocabulary) -> LabelledWindow:
    label = msgspec.convert(row, WindowLabel)
    place = _place(row, line, collections)
    found = row.get("message_indices") if "messages" in row or not place.own else None
    if found is None:
        if not place.own:
            raise ValueError("`message_indices` is missing: which messages of that conversation are meant")
        found = [i for i, role in enumerate(place.conversation.roles) if role == "tool"]
    indices = msgspec.convert(found, list[int])
    if not indices:
        raise ValueError("the window holds no call")
    # A user turn may stand inside the window: observed as a whole, what came before it would be out of sight.
    told = tuple(observations(_upto(place.conversation, indices[-1]), vocabulary))
    seen = tuple(o for o in told if o.message in indices)
    begun = _task_of(place.conversation, indices[0])
    before = tuple(o for o in told if begun < o.message < indices[0])
    missing = sorted(set(indices) - {o.message for o in seen})
    if missing:
        raise ValueError(f"{place.name} holds no tool result in message {missing[0]}; `message_indices` count from 0")
    return LabelledWindow(f"{place.name}:{indices[0]}-{indices[-1]}", row, label, seen, place.conversation, before)


def _place(row: Row, line: int, collections: Collections) -> _Place:
    if isinstance(row.get("messages"), list):
        return _Place(collections.read(row["messages"], line), f"line {line}", True)
    if _refers(row) and ("result" not in row or collections.has(row["file"])):
        return _Place(collections.conversation(row["file"], row["row"]), f"{row['file']}:{row['row']}", False)
    own = row.get("calls", [row] if "result" in row else None)
    if own is None:
        raise ValueError(
            "names no result; give `file`, `row` and `message_index`, or `messages`, or `tool`, `args`, `result`"
        )
    messages = [m for i, call in enumerate(msgspec.convert(own, list[Call])) for m in _messages(call, i)]
    return _Place(collections.read(messages, line), f"line {line}", True)


def _messages(call: Call, number: int) -> list[Row]:
    arguments = call.args if isinstance(call.args, str) else msgspec.json.encode(call.args).decode()
    function = {"name": call.tool, "arguments": arguments or "{}"}
    asked = {"id": f"c{number}", "type": "function", "function": function}
    known = {"is_error": call.is_error, "returncode": call.returncode}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": f"c{number}", "name": call.tool, "content": call.result}
        | {key: value for key, value in known.items() if value is not None},
    ]


def _call_of(conversation: Conversation, seen: Observation) -> str:
    """The arguments of the call that a result answers, as the model wrote them."""
    result = conversation.messages[seen.message].parts[seen.part]
    if not isinstance(result, ToolResult):
        return ""
    for i in range(seen.message - 1, -1, -1):
        for part in conversation.messages[i].parts:
            if isinstance(part, ToolCall) and part.id == result.call_id:
                return part.arguments
    return ""


def _task_of(conversation: Conversation, at: int) -> int:
    """The message of the last real user turn before message `at`, -1 when there is none."""
    return next((i for i in range(at - 1, -1, -1) if real_user_text(conversation.messages[i]) is not None), -1)


def _upto(conversation: Conversation, message: int) -> Conversation:
    """The conversation as it stood when `message` was its newest."""
    end = message + 1
    messages = tuple(conversation.messages[i] for i in range(min(end, len(conversation.roles))))
    return msgspec.structs.replace(conversation, messages=messages, roles=tuple(conversation.roles[:end]))
