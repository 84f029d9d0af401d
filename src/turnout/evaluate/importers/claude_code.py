"""Claude Code: project logs (`~/.claude/projects/**/*.jsonl`) and the lines of `claude -p --output-format stream-json`.

A model's message is several lines there, one a block, with one message id; results of its tools may stand between them.
"""

from collections.abc import Iterator
from typing import Any

from turnout.evaluate.importers.blocks import of_anthropic
from turnout.evaluate.importers.events import Event, Replied, Said, Told, Who
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, moment, name_of, number, table, text
from turnout.ledger.outcome import Outcome
from turnout.wire.anthropic.usage import merged, read_usage

_ASIDE = frozenset(
    {
        "summary",
        "system",
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "custom-title",
        "ai-title",
        "last-prompt",
    }
    | {"tag", "agent-name", "pr-link", "mode", "permission-mode", "stream_event", "control_request", "control_response"}
    | {
        "attachment",
        "rate_limit_event",
        "tool_progress",
        "saved_hook_context",
        "agent-setting",
        "started",
        "keep_alive",
    }
)
"""Kinds of lines that are no message."""


def looks(value: dict[str, Any]) -> bool:
    """Whether an object is a line of such a log."""
    kind = text(value.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(value.get("message"), dict) and ("sessionId" in value or "session_id" in value)
    return kind in (*_ASIDE, "result") and any(
        key in value for key in ("sessionId", "session_id", "leafUuid", "messageId", "snapshot")
    )


class _Pending:
    """A model's message whose lines are not all read. `aside`: results that came between them."""

    def __init__(self, who: Who, id: str, began: float | None) -> None:
        self.who, self.id, self.began = who, id, began
        self.blocks: list[Any] = []
        self.usage: dict[str, Any] | None = None
        self.model = ""
        self.last: float | None = None
        self.aside: list[Said] = []

    def events(self, place: int) -> Iterator[Event]:
        """The reply, then the results."""
        (message,) = of_anthropic("assistant", self.blocks)
        began = self.began if self.began is not None else self.last
        took = self.last - began if self.last is not None and began is not None else 0.0
        key = self.id or f"line {place}"
        # A resumed session begins with a copy of the one before; ids of API messages are unique over all of them.
        unique = f"anthropic {self.id}" if self.id.startswith("msg_") else ""
        usage = read_usage(self.usage)
        yield Replied(self.who, message, key, began, max(took, 0.0), self.model, usage, unique=unique)
        yield from self.aside


class _Reading:
    """The lanes of one log: what is pending, and when each was last heard of."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pending: dict[Who, _Pending] = {}
        self._seen: dict[Who, float | None] = {}
        self._models: dict[str, str] = {}

    def take(self, record: Record) -> Iterator[Event]:
        """The events that this line completes."""
        row = record.value
        kind = text(row.get("type"))
        if kind in ("user", "assistant") and isinstance(row.get("message"), dict):
            who = self._who(row)
            yield from self._reply(record, who) if kind == "assistant" else self._other(record, who)
        elif kind == "result":
            yield from self.rest(record.line)
            yield from self._result(record)
        elif kind in _ASIDE or (kind and "message" not in row):
            if kind == "system" and row.get("subtype") == "init":
                self._models[text(row.get("session_id"))] = text(row.get("model"))
            self._source.ignore(kind)
        else:
            self._source.skip(record.line, "a line of no known kind", f"type {kind!r}")

    def rest(self, line: int) -> Iterator[Event]:
        """What is still pending."""
        for pending in list(self._pending.values()):
            yield from pending.events(line)
        self._pending.clear()

    def _who(self, row: dict[str, Any]) -> Who:
        session = text(row.get("sessionId")) or text(row.get("session_id"))
        agent = text(row.get("agentId")) or text(row.get("parent_tool_use_id"))
        if row.get("isSidechain") is True and not agent:
            agent = "sidechain"
        kind = "subagent" if agent else "main"
        return Who(session or "unnamed", agent, "claude-code", kind, format="anthropic_messages")  # type: ignore[arg-type]

    def _reply(self, record: Record, who: Who) -> Iterator[Event]:
        row, message = record.value, record.value["message"]
        if row.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            self._source.ignore("message of the harness, no model call")
            return
        id, at = text(message.get("id")), moment(row.get("timestamp"))
        pending = self._pending.get(who)
        if pending is None or not id or pending.id != id:
            if pending is not None:
                yield from pending.events(record.line)
            pending = self._pending[who] = _Pending(who, id, self._seen.get(who))
        content = message.get("content")
        pending.blocks += [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        usage = message.get("usage")
        if isinstance(usage, dict):
            pending.usage = merged(pending.usage, usage)
        model = text(message.get("model"))
        pending.model = model or pending.model or self._models.get(who.session, "")
        pending.last = at if at is not None else pending.last
        self._seen[who] = at if at is not None else self._seen.get(who)

    def _other(self, record: Record, who: Who) -> Iterator[Event]:
        row, message = record.value, record.value["message"]
        made = [Said(who, one) for one in of_anthropic("user", message.get("content"))]
        extra = table(row.get("toolUseResult"))
        for said in made:
            if said.message["role"] == "tool" and count(extra.get("exitCode")) is not None:
                said.message["returncode"] = count(extra.get("exitCode"))
        pending = self._pending.get(who)
        at = moment(row.get("timestamp"))
        self._seen[who] = at if at is not None else self._seen.get(who)
        calls = {text(table(block).get("id")) for block in pending.blocks} if pending is not None else set()
        if pending is not None and all(one.message.get("tool_call_id") in calls for one in made):
            pending.aside += made
            return
        if pending is not None:
            yield from pending.events(record.line)
            del self._pending[who]
        yield from made

    def _result(self, record: Record) -> Iterator[Event]:
        """The last line of a run: what it cost. Whether the task was solved it does not know."""
        row = record.value
        session = text(row.get("session_id"))
        if not session:
            self._source.skip(record.line, "names no session")
            return
        seconds = number(row.get("duration_ms"))
        yield Told(
            name_of("claude-code", session, record.digest),
            Outcome(
                session=session,
                metrics={"seconds": seconds / 1000} if seconds is not None else {},
                note=text(row.get("subtype")),
                model=self._models.get(session, ""),
                harness="claude-code",
                cost_usd=number(row.get("total_cost_usd")),
                cost_source="recorded by the harness" if number(row.get("total_cost_usd")) is not None else "",
                steps=count(row.get("num_turns")),
            ),
        )


def read(source: Source) -> Iterator[Event]:
    """The events of a log."""
    reading = _Reading(source)
    yield from source.each(looks, reading.take)
    yield from reading.rest(source.tally.records)
