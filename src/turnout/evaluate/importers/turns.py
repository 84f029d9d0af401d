"""Events become turns of the ledger: each reply of a model with the signals of what came before it, and its cost.

A lane's messages before its last real user turn are forgotten but for their number, and so are those beyond `HELD_AT_MOST` of
one task, so that memory is bounded by a task and not by a file.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from turnout.conversation import Conversation, Lazy, Message, Role, Stop
from turnout.errors import ClientError
from turnout.evaluate.importers.events import Ended, Event, Replied, Said, Told, Who
from turnout.evaluate.importers.scrub import scrub, scrubbed
from turnout.evaluate.importers.values import name_of
from turnout.evaluate.recordings import read_conversation
from turnout.ledger.importing import ImportedOutcome
from turnout.ledger.rows import Capture
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing import Prices, cost
from turnout.signals import BUILT_IN, Signals, ToolKind, Vocabulary, observe, real_user_text
from turnout.signals.calls.tools import read_call

HELD_AT_MOST = 4_000
"""Messages of one task that signals look back on."""
LANES_AT_MOST = 256
"""Lanes followed at once within one file; the one silent for longest is forgotten."""

_BLANK: dict[str, tuple[bytes, Message]] = {
    role: (b"{}", Message(role)) for role in ("system", "developer", "user", "assistant", "tool")
}


class _Lane:
    """The messages of one lane so far. `body`: all of them, where bodies are kept."""

    __slots__ = ("at", "begun", "body", "messages", "raw", "roles")

    def __init__(self) -> None:
        self.roles: list[Role] = []
        self.raw: list[bytes] = []
        self.messages: list[Message] = []
        self.begun = 0
        self.at = 0.0
        self.body: list[bytes] = []

    def add(self, message: dict[str, Any], keep: bool) -> None:
        """Take in a message. Raises ClientError or ValueError for what is none."""
        raw = msgspec.json.encode(message)
        read = read_conversation(b'{"messages":[' + raw + b"]}").conversation.messages[0]
        if read.role == "user" and real_user_text(read) is not None:
            self._forget(self._boundary())
        self.roles.append(read.role)
        self.raw.append(raw)
        self.messages.append(read)
        if keep:
            self.body.append(raw)
        if len(self.raw) - self.begun > HELD_AT_MOST:
            self._forget(self.begun + HELD_AT_MOST // 2, "system")

    def _boundary(self) -> int:
        """Where the user's texts begin that the next one continues."""
        at = len(self.roles)
        while at > self.begun and self.roles[at - 1] == "user":
            at -= 1
        return at

    def _forget(self, upto: int, role: Role | None = None) -> None:
        """Drop what the messages before `upto` hold. `role`: what they are from now on, where they must not count."""
        for at in range(self.begun, upto):
            self.roles[at] = role or self.roles[at]
            self.raw[at], self.messages[at] = _BLANK[self.roles[at]]
        self.begun = max(upto, self.begun)

    def signals(self, vocabulary: Vocabulary, agent: str) -> Signals:
        """What is seen when the next reply is asked for."""
        messages = self.messages
        lazy = Lazy(self.raw, lambda _, index: messages[index])
        return observe(Conversation(lazy, roles=self.roles, format="openai_chat"), vocabulary, agent)


class Assembler:
    """Makes items for the ledger. `dated`: the moment for what says none, Unix seconds. `on_bad`: told of messages that cannot
    be read. `skip`: so many items are there already; they are counted, not made."""

    def __init__(
        self,
        source: str,
        dated: float,
        prices: Prices,
        *,
        capture: Capture = "signals",
        scrubbing: bool = False,
        vocabulary: Vocabulary = BUILT_IN,
        skip: int = 0,
        on_bad: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._dated = dated
        self._prices = prices
        self._capture: Capture = capture
        self._scrubbing = scrubbing
        self._vocabulary = vocabulary
        self._skip = skip
        self._on_bad = on_bad
        self._lanes: OrderedDict[tuple[str, str], _Lane] = OrderedDict()
        self.sessions = self.turns = self.outcomes = 0
        self._known: set[str] = set()

    def items(self, events: Iterator[Event]) -> Iterator[TurnRecord | ImportedOutcome | None]:
        """One item for each turn and each outcome, in order; None for those that are to be skipped."""
        for event in events:
            if isinstance(event, Said):
                self._take(event.who, event.message)
            elif isinstance(event, Replied):
                self.turns += 1
                lane = self._lane(event.who)
                yield None if self._skipping() else self._turn(event, lane)
                self._take(event.who, event.message)
            elif isinstance(event, Told):
                self.outcomes += 1
                yield None if self._skipping() else self._outcome(event)
            else:
                self._end(event)

    def _skipping(self) -> bool:
        self._skip -= 1
        return self._skip >= 0

    def _lane(self, who: Who) -> _Lane:
        key = (who.session, who.agent)
        lane = self._lanes.get(key)
        if lane is None:
            if who.session not in self._known:
                self.sessions += 1
                self._known.add(who.session)
            lane = self._lanes[key] = _Lane()
            if len(self._lanes) > LANES_AT_MOST:
                self._lanes.popitem(last=False)
        else:
            self._lanes.move_to_end(key)
        return lane

    def _end(self, ended: Ended) -> None:
        for key in [key for key in self._lanes if key[0] == ended.session]:
            del self._lanes[key]
        self._known.discard(ended.session)

    def _take(self, who: Who, message: dict[str, Any]) -> None:
        try:
            self._lane(who).add(scrubbed(message) if self._scrubbing else message, self._capture == "full")
        except (ClientError, ValueError, TypeError) as error:
            self._on_bad(str(error))

    def _turn(self, event: Replied, lane: _Lane) -> TurnRecord:
        who, model = event.who, event.model
        # Turns of a lane are read back by their time: it never goes backwards.
        lane.at = at = max(event.at if event.at is not None else lane.at or self._dated, lane.at)
        charged, note = event.cost_usd, "as recorded" if event.cost_usd is not None else ""
        if charged is None:
            found = cost(event.usage, self._prices.rates(model, at=at) if model else None)
            charged, note = found.usd, found.note
        session, agent = (scrub(who.session), scrub(who.agent)) if self._scrubbing else (who.session, who.agent)
        stop: Stop = "tool_calls" if event.message.get("tool_calls") else "end"
        full = self._capture == "full"
        return TurnRecord(
            id=f"imp-{name_of(event.unique) if event.unique else name_of(session, agent, event.key)}",
            at=at,
            route=f"imported:{self._source}",
            session=session,
            agent=agent,
            rung="header",
            agent_program=who.program,
            agent_kind=who.kind,
            agent_parent=who.parent,
            format=who.format,
            asked_for=model,
            target=model,
            model=model,
            signals=lane.signals(self._vocabulary, who.agent) if self._capture != "none" else None,
            calls=(
                Call(
                    target=model,
                    model=model,
                    served=True,
                    error=event.error,
                    usage=event.usage,
                    cost_usd=charged,
                    cost_note=note,
                    ended_s=event.total_s,
                ),
            ),
            usage=event.usage,
            cost_usd=charged,
            cost_note=note,
            ended="error" if event.error else "ok",
            error=event.error,
            stop=stop,
            acts=tuple(_kind(one, self._vocabulary) for one in event.message.get("tool_calls") or ()),
            total_s=event.total_s,
            request=_body(model, lane.body) if full else None,
            response=msgspec.json.encode(scrubbed(event.message) if self._scrubbing else event.message)
            if full
            else None,
        )

    def _outcome(self, told: Told) -> ImportedOutcome:
        outcome = scrubbed(told.outcome) if self._scrubbing else told.outcome
        at = told.at if told.at is not None else self._dated
        return ImportedOutcome(told.key, at, self._source, replace(outcome))


def _kind(made: dict[str, Any], vocabulary: Vocabulary) -> ToolKind:
    function = made["function"]
    return read_call(function["name"], function["arguments"], None, vocabulary).kind


def _body(model: str, messages: list[bytes]) -> bytes:
    return b'{"model":' + msgspec.json.encode(model) + b',"messages":[' + b",".join(messages) + b"]}"
