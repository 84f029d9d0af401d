"""The one entry: a conversation in, its signals out. The same history seen again costs a digest of its bytes."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Lazy, Message, Opaque, Part, Text, ToolCall, ToolResult
from turnout.signals.harness import COMPACTION_ITEMS, is_compaction, real_user_text, tool_of_text_result
from turnout.signals.items import call_of, result_of
from turnout.signals.memo import Memo
from turnout.signals.observation import OBSERVED_AT_MOST, Observation, Signals
from turnout.signals.retries import with_retries
from turnout.signals.tools import UNKNOWN, Action, read_call
from turnout.signals.verdict import judge
from turnout.signals.vocabulary import BUILT_IN, Vocabulary


class _Facts(Struct, frozen=True):
    """What a message contributes. `results`: part index, call id and tool name of each result it carries."""

    said: bool = False
    compacted: bool = False
    calls: tuple[tuple[str, Action], ...] = ()
    results: tuple[tuple[int, str, str], ...] = ()
    block: Action | None = None


_NOTHING = _Facts()
_RESULT_KEY = re.compile(rb'"tool_use_id"\s*:')
"""A key that only results have: inside texts its quotes are escaped."""
_BLOCK = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)\n(.*?)\n?```", re.DOTALL)


def observe(conversation: Conversation, vocabulary: Vocabulary = BUILT_IN, agent: str = "") -> Signals:
    """The signals of `conversation` as it stands: what its tool results since the last real user turn show.

    `vocabulary`: an operator's tools and patterns beside the built-in ones. `agent`: whose conversation it is. Pure. Decodes
    only messages it has not met before, and only those since the last real user turn.
    """
    roles, messages = conversation.roles, conversation.messages
    raw, text_of = _source_of(messages)
    dialect = conversation.format
    read: Memo[_Facts] = vocabulary.read
    units: list[tuple[int, Any, _Facts]] = []
    compacted = False
    boundary = -1
    for i in range(len(roles) - 1, -1, -1):
        role = roles[i]
        if role == "system" or role == "developer":
            continue
        # The interpreter's keyed hash of the message's bytes, with their length: a digest that costs a pass over them.
        digest = None
        facts = None
        if text_of is not None:
            data = bytes(text_of(raw[i]))
            digest = (hash(data), len(data), role, dialect)
            facts = read.get(digest)
        if facts is None:
            facts = _facts(messages[i], vocabulary)
            if digest is not None:
                read.put(digest, facts)
        compacted = compacted or facts.compacted
        if facts.said:
            boundary = i
            break
        if facts is not _NOTHING:
            units.append((i, digest, facts))
    units.reverse()
    depth = _runs(roles, boundary + 1)
    return Signals(
        observations=with_retries(_observed(messages, units, vocabulary, agent)),
        depth=depth,
        assistant_turns=depth if boundary < 0 else depth + _runs(roles, 0, boundary),
        user_turn=depth == 0 and boundary >= 0,
        compacted=compacted,
        results=sum(len(f.results) for _, _, f in units) + _results_before(roles, raw, text_of, messages, boundary),
    )


_TextOf: TypeAlias = Callable[[Any], Any]


def _source_of(messages: Sequence[Message]) -> tuple[Sequence[Any], _TextOf | None]:
    """The raw messages and what gives the JSON text of one; None for that where messages did not come as JSON."""
    if not isinstance(messages, Lazy) or not len(messages):
        return (), None
    if messages.text_of is None and isinstance(messages.raw[0], msgspec.Raw | bytes):
        return messages.raw, _itself
    return messages.raw, messages.text_of


def _itself(raw: Any) -> Any:
    return raw


def _runs(roles: Sequence[str], begin: int, end: int | None = None) -> int:
    """Assistant turns among `roles`: units of the assistant that follow one another are one."""
    count, before = 0, ""
    for role in roles[begin:end]:
        if role == "assistant" and before != "assistant":
            count += 1
        before = role
    return count


def _facts(message: Message, vocabulary: Vocabulary) -> _Facts:
    parts = message.parts
    calls = tuple(
        (call.id, read_call(call.name, call.arguments, call.namespace, vocabulary))
        for part in parts
        if (call := part if isinstance(part, ToolCall) else call_of(part) if isinstance(part, Opaque) else None)
    )
    results = tuple(
        (at, result.call_id, result.name or "")
        for at, part in enumerate(parts)
        if (result := part if isinstance(part, ToolResult) else result_of(part) if isinstance(part, Opaque) else None)
    )
    if message.role == "assistant":
        if calls or results:
            return _Facts(calls=calls, results=results)
        blocks = _BLOCK.findall(message.text) if parts else ()
        if blocks:
            return _Facts(block=read_call("bash", blocks[-1], None, vocabulary))
        return _Facts(compacted=True) if _compaction_item(message) else _NOTHING
    if message.role == "tool":
        return _Facts(results=results)
    compacted = any(isinstance(p, Text) and is_compaction(p.text) for p in parts) or _compaction_item(message)
    said = real_user_text(message) is not None
    if not said and not results:
        results = tuple(
            (at, "", tool)
            for at, p in enumerate(parts)
            if isinstance(p, Text) and (tool := tool_of_text_result(p.text[:160].lstrip().lower())) is not None
        )
    return _Facts(said, compacted, calls, results) if said or compacted or results or calls else _NOTHING


def _compaction_item(message: Message) -> bool:
    return any(isinstance(p, Opaque) and p.type in COMPACTION_ITEMS for p in message.parts)


def _observed(
    messages: Sequence[Message], units: Sequence[tuple[int, Any, _Facts]], vocabulary: Vocabulary, agent: str
) -> tuple[Observation, ...]:
    """The newest results among `units`, each paired with its call."""
    actions: dict[str, Action] = {}
    block: Action | None = None
    pairs: list[tuple[int, Any, int, Action]] = []
    for i, digest, facts in units:
        for call_id, action in facts.calls:
            actions[call_id] = action
        if facts.block is not None:
            block = facts.block
        for at, call_id, name in facts.results:
            known = actions.get(call_id) if call_id else block
            if known is None:
                known = _named(name, vocabulary)
            pairs.append((i, digest, at, known))
    judged = vocabulary.judged
    observations = []
    for i, digest, at, action in pairs[-OBSERVED_AT_MOST:]:
        key = (i, at, digest, action.call or action.tool, agent) if digest is not None else None
        seen = judged.get(key) if key is not None else None
        if seen is None:
            seen = judge(action, _result(messages[i].parts[at]), i, at, vocabulary, agent)
            if key is not None:
                judged.put(key, seen)
        observations.append(seen)
    return tuple(observations)


def _result(part: Part) -> ToolResult:
    if isinstance(part, ToolResult):
        return part
    found = result_of(part) if isinstance(part, Opaque) else None
    return found or ToolResult("", (part,))


def _named(name: str, vocabulary: Vocabulary) -> Action:
    """The action behind a result whose call is not there: known by the tool's name only."""
    if not name or name == "?":
        return UNKNOWN
    return msgspec.structs.replace(read_call(name, "", None, vocabulary), call="")


def _results_before(
    roles: Sequence[str], raw: Sequence[Any], text_of: _TextOf | None, messages: Sequence[Message], boundary: int
) -> int:
    """Tool results up to `boundary`, counted without decoding where there are bytes to count in."""
    count = 0
    for i in range(boundary + 1):
        role = roles[i]
        if role == "tool":
            count += 1
        elif role == "user":
            if text_of is not None:
                text = bytes(text_of(raw[i]))
                if b"tool_use_id" in text:
                    count += len(_RESULT_KEY.findall(text))
            else:
                count += sum(isinstance(p, ToolResult) for p in messages[i].parts)
    return count
