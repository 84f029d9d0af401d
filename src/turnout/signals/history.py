"""The results of one agent's task, read once: a turn that only adds to what was seen costs what it adds."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnout.conversation import Message, Opaque, Part, ToolResult
from turnout.signals.calls.items import result_of
from turnout.signals.calls.tools import UNKNOWN, Action, read_call
from turnout.signals.course import Course
from turnout.signals.observation import OBSERVED_AT_MOST, Observation
from turnout.signals.results.context import Context
from turnout.signals.results.verdict import judge
from turnout.signals.task.fold import Task
from turnout.signals.task.retries import Retries
from turnout.signals.vocabulary import Vocabulary

LOOKED_BACK = 32
"""Messages a turn may add and still be recognised as the continuation of one seen before."""


class Facts(Struct, frozen=True):
    """What a message contributes. `said`: a person spoke in it; `shown`: in media only, which may be a tool's; `complaint`: that
    it is still wrong, `looks`: to ask for no change; `named`: failures it names. `lost`: it only says that calls have no result.
    `results`: part index, call id and tool name of each result it carries."""

    said: bool = False
    compacted: bool = False
    calls: tuple[tuple[str, Action], ...] = ()
    results: tuple[tuple[int, str, str], ...] = ()
    block: Action | None = None
    complaint: bool = False
    looks: bool = False
    shown: bool = False
    named: frozenset[str] = frozenset()
    lost: bool = False


class Unit(Struct, frozen=True, gc=False):
    """A message since the last real user turn that holds calls or results. `digest`: of its bytes, None when not known."""

    at: int
    digest: Any
    facts: Facts


class History:
    """The units folded so far. `tip`: a digest of them all; the history stands for exactly that sequence."""

    __slots__ = ("_actions", "_answer", "_block", "_context", "_kept", "_retries", "_task", "tip")

    def __init__(self, named: frozenset[str] = frozenset()) -> None:
        self.tip: int | None = None
        self._actions: dict[str, Action] = {}
        self._block: Action | None = None
        self._context = Context(named)
        self._kept: list[Observation] = []
        self._retries = Retries()
        self._task = Task()
        self._answer: tuple[tuple[Observation, ...], Course] | None = None

    def add(self, unit: Unit, messages: Sequence[Message], vocabulary: Vocabulary, agent: str) -> None:
        """Take in the next unit: its results are judged, each by its call."""
        facts = unit.facts
        self._actions.update(facts.calls)
        if facts.block is not None:
            self._block = facts.block
        for part, call_id, name in facts.results:
            action = self._actions.get(call_id) if call_id else self._block
            if action is None:
                action = _named(name, vocabulary)
            downloads = self._context.downloads(action)
            o = _judged(action, unit, part, messages, vocabulary, agent, downloads)
            o = self._retries.add(self._context.add(action, o))
            self._task.add(o)
            self._kept.append(o)
            self._answer = None
        if len(self._kept) > 2 * OBSERVED_AT_MOST:
            del self._kept[:-OBSERVED_AT_MOST]

    def answer(self) -> tuple[tuple[Observation, ...], Course]:
        """The newest observations, oldest first, and how the task went."""
        if self._answer is None:
            self._answer = tuple(self._kept[-OBSERVED_AT_MOST:]), self._task.course()
        return self._answer


NO_HISTORY = History()
"""That of a task without any result yet."""


def history_of(
    units: Sequence[Unit],
    messages: Sequence[Message],
    vocabulary: Vocabulary,
    agent: str,
    named: frozenset[str] = frozenset(),
) -> History:
    """The history of `units`: a known one that they continue, else a new one. `named`: failures that the user named."""
    if not units:
        return NO_HISTORY
    if units[0].digest is None:
        return _continued(History(named), units, messages, vocabulary, agent)
    tips, tip = [], hash((agent, named))
    for unit in units:
        tip = hash((tip, unit.at, unit.digest[0]))
        tips.append(tip)
    for back in range(min(LOOKED_BACK, len(tips))):
        known: History | None = vocabulary.histories.get(tips[-1 - back])
        # A history that went on since stands for its new tip only.
        if known is not None and known.tip == tips[-1 - back]:
            if back == 0:
                return known
            break
    else:
        known, back = History(named), len(units)
    # Nothing may take it for what it was while it grows, nor after an exception on the way.
    known.tip = None
    history = _continued(known, units[len(units) - back :], messages, vocabulary, agent)
    history.tip = tip
    vocabulary.histories.put(tip, history)
    return history


def _continued(
    history: History, units: Sequence[Unit], messages: Sequence[Message], vocabulary: Vocabulary, agent: str
) -> History:
    for unit in units:
        history.add(unit, messages, vocabulary, agent)
    return history


def _judged(
    action: Action,
    unit: Unit,
    part: int,
    messages: Sequence[Message],
    vocabulary: Vocabulary,
    agent: str,
    downloads: bool,
) -> Observation:
    call = action.call or action.tool
    key = (unit.at, part, unit.digest, call, agent, downloads) if unit.digest is not None else None
    seen = vocabulary.judged.get(key) if key is not None else None
    if seen is None:
        if downloads and action.shell is not None:
            action = replace(action, shell=replace(action.shell, fetches=True))
        seen = judge(action, _result(messages[unit.at].parts[part]), unit.at, part, vocabulary, agent)
        if key is not None:
            vocabulary.judged.put(key, seen)
    return seen


def _result(part: Part) -> ToolResult:
    if isinstance(part, ToolResult):
        return part
    found = result_of(part) if isinstance(part, Opaque) else None
    return found or ToolResult("", (part,))


def _named(name: str, vocabulary: Vocabulary) -> Action:
    """The action behind a result whose call is not there: known by the tool's name only."""
    if not name or name == "?":
        return UNKNOWN
    return replace(read_call(name, "", None, vocabulary), call="")
