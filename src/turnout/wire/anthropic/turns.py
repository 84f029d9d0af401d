"""Units of another format -> turns of Messages: strict alternation, and every call answered at the start of the next turn.

Messages wants the results of a turn's calls first in the user turn right after it. Other formats are looser: results come
one by one, an assistant text may stand between a call and its result, a history cut at the front holds results without a
call. This file re-orders what may be re-ordered and makes the rest readable; it never moves a result across user text.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from turnout.conversation import Format, Message, Part, Reasoning, Text, ToolCall, ToolResult
from turnout.wire.anthropic.write_content import Block, BlockWriter
from turnout.wire.names import legal_id
from turnout.wire.paths import part_path, root
from turnout.wire.told import without_call

NO_RESULT = "No result was recorded for this call."
_STANDS = "an id that Messages takes stands for it"
_STARTS_WITH_ASSISTANT = "(The conversation begins with the assistant.)"


class Turn(Struct):
    """One message as it will be written."""

    role: Literal["user", "assistant"]
    blocks: list[Block]


class _Unit(NamedTuple):
    """One part on its way: whose it is, where it was, and how many user texts stand before it."""

    role: str
    part: Part
    path: str
    phase: int


def turns_of(messages: Sequence[Message], source: Format | None, first: int, writer: BlockWriter) -> list[Turn]:
    """The turns that `messages` (without their leading instructions; `first` is the index of the first) amount to."""
    folding = _Folding(writer, _units(messages, source, first), source)
    turns = folding.turns()
    if turns and turns[0].role == "assistant":
        writer.drops.emulate(root(source, first), "Messages wants a user turn first: a line was put before it")
        turns.insert(0, Turn("user", [{"type": "text", "text": _STARTS_WITH_ASSISTANT}]))
    return turns


def _units(messages: Sequence[Message], source: Format | None, first: int) -> list[_Unit]:
    units: list[_Unit] = []
    phase = 0
    for i, message in enumerate(messages):
        for j, part in enumerate(message.parts):
            role = message.role
            if isinstance(part, ToolResult):
                role = "tool"
            elif role == "user":
                phase += 1
            units.append(_Unit(role, part, part_path(source, message, first + i, j), phase))
    return units


class _Folding:
    """Walks the units once; `pending` holds the calls of the last assistant turn that wait for a result."""

    def __init__(self, writer: BlockWriter, units: list[_Unit], source: Format | None) -> None:
        self._writer = writer
        self._source = source
        self._units = units
        self._turns: list[Turn] = []
        self._pending: dict[str, tuple[str, str]] = {}  # source id -> written id and path, in order
        self._used: set[str] = set()
        self._taken: dict[str, int] = {}  # by id, the number of its last variant
        self._deferred: list[_Unit] = []
        self._deferred_calls: set[str] = set()
        self._results: list[Block] = []
        self._after: list[Block] = []  # what the user says while calls wait: behind their results
        self._awaited = 0  # calls among `pending` with a result still to come in phase `counted`
        self._counted = -1
        self._coming: dict[tuple[str, int], int] = {}
        for unit in units:
            if isinstance(unit.part, ToolResult):
                key = (unit.part.call_id, unit.phase)
                self._coming[key] = self._coming.get(key, 0) + 1

    def turns(self) -> list[Turn]:
        for unit in self._units:
            if isinstance(unit.part, ToolResult):
                self._result(unit, unit.part)
            elif unit.role == "assistant":
                self._assistant(unit)
            else:
                self._user(unit)
        self._settle()
        self._flush_deferred()
        self._settle()
        return [turn for turn in self._turns if turn.blocks]

    def _assistant(self, unit: _Unit) -> None:
        if self._results and not self._after and self._awaits_more(unit.phase):
            self._deferred.append(unit)
            if isinstance(unit.part, ToolCall):
                self._deferred_calls.add(unit.part.id)
            return
        if self._results or self._after or (self._turns and self._turns[-1].role == "user"):
            self._settle()
            self._flush_deferred()
        self._put_assistant(unit)

    def _awaits_more(self, phase: int) -> bool:
        """Whether a result of a waiting call comes before the next user text."""
        if self._counted != phase:
            self._awaited = sum([self._coming.get((call_id, phase), 0) > 0 for call_id in self._pending])
            self._counted = phase
        return self._awaited > 0

    def _put_assistant(self, unit: _Unit) -> None:
        part = unit.part
        if isinstance(part, ToolCall):
            written = self._fresh_id(part.id)
            if written != part.id:
                field = "call_id" if self._source == "openai_responses" else "id"
                self._writer.drops.emulate(f"{unit.path}.{field}", _STANDS)
            block: Block | None = self._writer.block(part, unit.path, written)
            if self._counted != unit.phase:
                self._counted = -1
            elif part.id not in self._pending and self._coming.get((part.id, unit.phase), 0) > 0:
                self._awaited += 1
            self._pending[part.id] = written, unit.path
        else:
            block = self._writer.block(part, unit.path)
        if block is not None:
            turn = self._turn("assistant")
            if isinstance(part, Reasoning) and any(b["type"] == "tool_use" for b in turn.blocks):
                # Thinking after a call belongs to a later step of the model: Messages accepts it at a turn's start only.
                self._writer.drops.drop(unit.path, "Messages takes thinking only before the calls of a turn")
                return
            turn.blocks.append(block)

    def _result(self, unit: _Unit, part: ToolResult) -> None:
        self._coming[part.call_id, unit.phase] -= 1
        if part.call_id in self._deferred_calls:
            self._settle()
            self._flush_deferred()
        call = self._pending.pop(part.call_id, None)
        if call is None:
            self._orphan(unit, part)
            return
        if self._counted == unit.phase:
            self._awaited -= 1
        if call[0] != part.call_id:
            field = "tool_call_id" if self._source == "openai_chat" else "call_id"
            self._writer.drops.emulate(f"{unit.path}.{field}", _STANDS)
        block = self._writer.block(part, unit.path, call[0])
        assert block is not None
        self._results.append(block)
        if not self._pending:
            self._settle()
            self._flush_deferred()

    def _orphan(self, unit: _Unit, part: ToolResult) -> None:
        self._writer.drops.downgrade(unit.path, "no call before it has this id: written as readable text")
        text = Text(f"{without_call(part.call_id)}\n{part.text}")
        rest = tuple(p for p in part.parts if not isinstance(p, Text))
        blocks = self._writer.blocks((text, *rest), unit.path)
        if self._pending:
            self._after.extend(blocks)
        else:
            self._turn("user").blocks.extend(blocks)

    def _user(self, unit: _Unit) -> None:
        part, writer = unit.part, self._writer
        if unit.role in ("system", "developer") and isinstance(part, Text):
            writer.drops.emulate(unit.path, f"a {unit.role} message between turns goes as tagged user text, in place")
            part = Text(f"<system>\n{part.text}\n</system>", cache=part.cache)
        block = writer.block(part, unit.path)
        if block is not None:
            if self._pending:
                self._after.append(block)
            else:
                self._turn("user").blocks.append(block)

    def _settle(self) -> None:
        """End the wait for results: what came goes into the user turn, what did not is said to be missing."""
        for call_id, (written, path) in self._pending.items():
            self._writer.drops.emulate(path, f"call {call_id} has no result: one that says so was put in")
            missing = {"type": "tool_result", "tool_use_id": written, "content": NO_RESULT, "is_error": True}
            self._results.append(missing)
        self._pending.clear()
        self._counted = -1
        if self._results or self._after:
            self._turn("user").blocks += self._results + self._after
            self._results, self._after = [], []

    def _flush_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        self._deferred_calls.clear()
        for unit in deferred:
            self._put_assistant(unit)

    def _turn(self, role: Literal["user", "assistant"]) -> Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(Turn(role, []))
        return self._turns[-1]

    def _fresh_id(self, call_id: str) -> str:
        """A legal id that no earlier call of the conversation has."""
        written = stem = legal_id(call_id)
        if written in self._used:
            count = self._taken.get(stem, 1)
            while written in self._used:
                count += 1
                written = f"{stem[:58]}_{count}"
            self._taken[stem] = count
        self._used.add(written)
        return written
