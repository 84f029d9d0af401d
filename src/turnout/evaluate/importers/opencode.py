"""opencode: exported sessions (`opencode export`), and the lines of `opencode run --format json`."""

from collections.abc import Iterator
from typing import Any

from turnout.conversation import Usage
from turnout.evaluate.importers.events import Ended, Event, Replied, Said, Who, assistant, call, result, user
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, json_text, moment, number, table, text

_LINES = frozenset({"step_start", "step_finish", "tool_use", "text", "reasoning", "error"})


def looks(value: dict[str, Any]) -> bool:
    """Whether an object is an exported session, or a line of a run."""
    if isinstance(value.get("info"), dict) and isinstance(value.get("messages"), list):
        return any("parts" in table(one) for one in value["messages"]) or not value["messages"]
    return text(value.get("type")) in _LINES and ("sessionID" in value or "sessionID" in table(value.get("part")))


class _Step:
    """One model call of a message: from one `step-start` to the next. `results` of its tools follow it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.usage: Usage | None = None
        self.cost: float | None = None

    def take(self, part: dict[str, Any]) -> None:
        """A part of the call."""
        match part.get("type"):
            case "text":
                self.texts.append(text(part.get("text")))
            case "tool":
                state = table(part.get("state"))
                id, name = text(part.get("callID")) or text(part.get("id")), text(part.get("tool")) or "?"
                self.calls.append(call(id, name, json_text(state.get("input") or {})))
                if state.get("status") in ("completed", "error"):
                    self.results.append(_result(id, name, state))
            case "step-finish":
                self.usage = _usage(table(part.get("tokens")))
                self.cost = _cost(part)

    @property
    def empty(self) -> bool:
        """Whether nothing was said or called."""
        return not self.calls and not any(self.texts)

    def events(self, who: Who, key: str, model: str, at: float | None, total_s: float = 0.0) -> Iterator[Event]:
        """The reply and its results."""
        message = assistant("\n".join(one for one in self.texts if one), self.calls)
        yield Replied(who, message, key, at, total_s, model, self.usage, self.cost)
        for one in self.results:
            yield Said(who, one)


def _result(id: str, name: str, state: dict[str, Any]) -> dict[str, Any]:
    failed = state.get("status") == "error"
    code = table(state.get("metadata")).get("exit")
    return result(
        id,
        text(state.get("error")) if failed else text(state.get("output")),
        name=name,
        is_error=True if failed else None,
        returncode=code if isinstance(code, int) and not isinstance(code, bool) else None,
    )


def _usage(tokens: dict[str, Any]) -> Usage | None:
    plain, output = count(tokens.get("input")), count(tokens.get("output"))
    if plain is None or output is None:
        return None
    cache, reasoning = table(tokens.get("cache")), count(tokens.get("reasoning"))
    read, written = count(cache.get("read")), count(cache.get("write"))
    return Usage(plain, output + (reasoning or 0), read, written, reasoning_tokens=reasoning)


def _cost(row: dict[str, Any]) -> float | None:
    """The cost as recorded. opencode writes 0 where it knows no price, so 0 is no price."""
    return number(row.get("cost")) or None


class _Run:
    """The lines of a run: what each session is saying."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._steps: dict[str, tuple[_Step, float | None]] = {}
        self._n = 0

    def take(self, record: Record) -> Iterator[Event]:
        """The events that this record completes."""
        row, part = record.value, table(record.value.get("part"))
        if isinstance(row.get("messages"), list):
            yield from _export(self._source, record)
            return
        kind, session = text(row.get("type")), text(row.get("sessionID")) or text(part.get("sessionID"))
        if kind not in _LINES or not session:
            self._source.skip(record.line, "a line of no known kind", f"type {kind!r}")
            return
        step, began = self._steps.setdefault(session, (_Step(), moment(row.get("timestamp"))))
        step.take(part)
        if kind == "step_finish":
            self._n += 1
            ended = moment(row.get("timestamp"))
            took = max(ended - began, 0.0) if ended is not None and began is not None else 0.0
            key = text(part.get("messageID")) or f"{record.digest}:{self._n}"
            yield from step.events(_lane(session), key, "", began, took)
            del self._steps[session]

    def rest(self) -> Iterator[Event]:
        """What no line finished."""
        for session, (step, began) in self._steps.items():
            if not step.empty:
                yield from step.events(_lane(session), "last", "", began)


def _lane(session: str) -> Who:
    return Who(session, program="opencode", format="openai_chat")


def read(source: Source) -> Iterator[Event]:
    """The events of an export or of a run."""
    run = _Run(source)
    yield from source.each(looks, run.take)
    yield from run.rest()


def _export(source: Source, record: Record) -> Iterator[Event]:
    info = table(record.value.get("info"))
    session, parent = text(info.get("id")) or record.digest, text(info.get("parentID"))
    who = Who(
        parent or session,
        session if parent else "",
        "opencode",
        "subagent" if parent else "main",
        parent,
        "openai_chat",
    )
    for index, one in enumerate(record.value["messages"]):
        head, parts = table(table(one).get("info")), [table(part) for part in items(table(one).get("parts"))]
        if head.get("role") == "user":
            said = [text(p.get("text")) for p in parts if p.get("type") == "text" and p.get("synthetic") is not True]
            yield Said(who, user("\n".join(line for line in said if line)))
        elif head.get("role") == "assistant":
            yield from _assistant(who, head, parts, record, index)
        else:
            source.tally.records += 1
            source.skip(record.line, "a message of no known kind", f"messages[{index}]")
    yield Ended(who.session)


def _assistant(
    who: Who, head: dict[str, Any], parts: list[dict[str, Any]], record: Record, index: int
) -> Iterator[Event]:
    steps: list[_Step] = []
    for part in parts:
        if part.get("type") == "step-start" or not steps:
            steps.append(_Step())
        steps[-1].take(part)
    steps = [step for step in steps if not step.empty or step.usage is not None]
    if len(steps) == 1 and steps[0].usage is None:
        steps[0].usage = _usage(table(head.get("tokens")))
        steps[0].cost = _cost(head)
    time = table(head.get("time"))
    began, ended = moment(time.get("created")), moment(time.get("completed"))
    took = (ended - began) / max(len(steps), 1) if began is not None and ended is not None else 0.0
    provider, model = text(head.get("providerID")), text(head.get("modelID"))
    for n, step in enumerate(steps):
        at = began + n * took if began is not None else None
        key = f"{text(head.get('id')) or f'{record.digest}:{index}'}:{n}"
        yield from step.events(
            who, key, f"{provider}/{model}" if provider and "/" not in model else model, at, max(took, 0.0)
        )
