"""The one entry: a conversation in, its signals out. The same history seen again costs a digest of its bytes."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from turnout.conversation import Conversation, Lazy, Message, Opaque, Text, ToolCall, ToolResult
from turnout.signals.calls.items import call_of, result_of
from turnout.signals.calls.tools import read_call
from turnout.signals.course import Course
from turnout.signals.history import Facts, Unit, history_of
from turnout.signals.memo import Memo
from turnout.signals.observation import DEEP, Signals
from turnout.signals.people.asked import asks_to_look, only_looks
from turnout.signals.people.envelopes import (
    COMPACTION_ITEMS,
    is_compaction,
    is_stand_in,
    real_user_text,
    tool_of_text_result,
    without_envelopes,
)
from turnout.signals.people.feedback import complains
from turnout.signals.results.context import failures_named
from turnout.signals.vocabulary import BUILT_IN, Vocabulary

_NOTHING = Facts()
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
    units: list[Unit] = []
    compacted_at = since_compaction = None
    said: Facts | None = None
    boundary = -1
    steps = _Steps()
    for i in range(len(roles) - 1, -1, -1):
        role = roles[i]
        if role == "system" or role == "developer":
            steps.before(role)
            continue
        digest, facts = _known(i, conversation, raw, text_of, vocabulary)
        if facts.compacted and compacted_at is None:
            compacted_at, since_compaction = i, steps.counted()
        # Formats whose results hold text only carry the media of results in the user message that follows.
        if facts.said and not (facts.shown and i and roles[i - 1] == "tool"):
            boundary, said = i, facts
            break
        if not facts.lost:
            steps.before(role)
            steps.results += len(facts.results)
        if facts is not _NOTHING:
            units.append(Unit(i, digest, facts))
    depth = steps.counted()
    # Formats differ in whether texts of the user that follow one another are one message.
    for i in range(boundary - 1, -1, -1):
        if roles[i] == "user":
            _, facts = _known(i, conversation, raw, text_of, vocabulary)
            if said is not None and (facts.said or facts.compacted):
                said = replace(said, complaint=said.complaint or facts.complaint, named=said.named | facts.named)
                if facts.compacted and compacted_at is None:
                    compacted_at, since_compaction = i, depth
        elif roles[i] != "system" and roles[i] != "developer":
            break
    units.reverse()
    named = said.named if said is not None else frozenset()
    observations, course = history_of(units, messages, vocabulary, agent, named).answer()
    return Signals(
        observations=observations,
        depth=depth,
        user_turn=boundary >= 0 and not steps.any,
        compacted=compacted_at is not None,
        results=course.results + _results_before(roles, raw, text_of, messages, boundary),
        course=course if observations else None,
        said_at=boundary if said is not None else None,
        # Nothing can be wrong still before anything was done.
        complaint=said is not None and said.complaint and "assistant" in roles[:boundary],
        compacted_at=compacted_at,
        since_compaction=since_compaction,
        reads_only=_reads_only(conversation, said, depth, course),
    )


def _reads_only(conversation: Conversation, said: Facts | None, depth: int, course: Course) -> bool:
    """Whether nothing is to be changed: the user asks to look, or no tool could. The tools are looked at only when it matters."""
    if course.attempted:
        return False
    return (said is not None and said.looks) or (depth >= DEEP and course.troubled and only_looks(conversation))


def _known(
    i: int, conversation: Conversation, raw: Sequence[Any], text_of: "_TextOf | None", vocabulary: Vocabulary
) -> tuple[Any, Facts]:
    """The digest of message `i`, None where there are no bytes, and its facts; decoded only when not met before."""
    if text_of is None:
        return None, _facts(conversation.messages[i], vocabulary)
    read: Memo[Facts] = vocabulary.read
    # The interpreter's keyed hash of the message's bytes, with their length: a digest that costs a pass over them.
    data = bytes(text_of(raw[i]))
    digest = (hash(data), len(data), conversation.roles[i], conversation.format)
    facts = read.get(digest)
    if facts is None:
        facts = _facts(conversation.messages[i], vocabulary)
        read.put(digest, facts)
    return digest, facts


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


class _Steps:
    """Counts the steps of the assistant, from the newest message back: a run of its messages is one for each result that
    follows it, at least one. What it only began to say, with nothing behind it, is none."""

    __slots__ = ("_depth", "_followed", "_running", "any", "results")

    def __init__(self) -> None:
        self._depth = 0
        self._followed = self._running = self.any = False
        self.results = 0

    def before(self, role: str) -> None:
        """A message of `role` stands before those seen so far."""
        if role == "assistant":
            self._running = self.any = True
            return
        if self._running:
            self._depth, self._running, self.results = self.counted(), False, 0
        self._followed = True

    def counted(self) -> int:
        """Steps so far."""
        return self._depth + (max(self.results, 1) if self._running and self._followed else 0)


def _facts(message: Message, vocabulary: Vocabulary) -> Facts:
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
        and not is_stand_in(result)
    )
    if message.role == "assistant":
        if calls or results:
            return Facts(calls=calls, results=results)
        blocks = _BLOCK.findall(message.text) if parts else ()
        if blocks:
            return Facts(block=read_call("bash", blocks[-1], None, vocabulary))
        return Facts(compacted=True) if _compaction_item(message) else _NOTHING
    if message.role == "tool" or (not results and parts and all(isinstance(p, ToolResult) for p in parts)):
        return Facts(results=results, lost=not results)
    compacted = any(isinstance(p, Text) and is_compaction(p.text) for p in parts) or _compaction_item(message)
    text = real_user_text(message)
    said = text is not None
    if not said:
        results += tuple(
            (at, "", tool)
            for at, p in enumerate(parts)
            if isinstance(p, Text) and (tool := tool_of_text_result(p.text[:160].lstrip().lower())) is not None
        )
    if text:
        texts = [one for p in parts if isinstance(p, Text) and (one := without_envelopes(p.text))]
        return Facts(
            True,
            compacted,
            calls,
            results,
            complaint=any(complains(one) for one in texts),
            looks=asks_to_look(texts[-1]),
            named=frozenset().union(*map(failures_named, texts)),
        )
    return Facts(said, compacted, calls, results, shown=said) if said or compacted or results or calls else _NOTHING


def _compaction_item(message: Message) -> bool:
    return any(isinstance(p, Opaque) and p.type in COMPACTION_ITEMS for p in message.parts)


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
