"""Whole conversations, one a record: OpenAI chat form, Anthropic messages, and collections that say who ran what and how it went.

A row may carry `task_id` or `query_id`, `trial`, `model`, `harness`, `success`, `cost_usd`, `steps`, `tokens_in`, `tokens_out`,
`session_id`, `subagent`, and a message `usage`, `model`, `cost_usd`, `timestamp`.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from turnout.conversation import Usage
from turnout.evaluate.importers.blocks import chat_message, of_anthropic
from turnout.evaluate.importers.events import Ended, Event, Replied, Said, Told, Who
from turnout.evaluate.importers.outcome_tables import outcome_of, task_of
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, moment, number, table, text
from turnout.wire.anthropic.usage import read_usage as anthropic_usage
from turnout.wire.chat.usage import read_usage as chat_usage

PER_CALL = "per_call_usage[in,cached,out,cost]"
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def looks_chat(value: dict[str, Any]) -> bool:
    """Whether an object is a conversation in chat form."""
    messages = value.get("messages")
    return isinstance(messages, list) and any(isinstance(m, dict) and "role" in m for m in messages)


def looks_anthropic(value: dict[str, Any]) -> bool:
    """Whether an object is a conversation of the Messages API."""
    if not looks_chat(value):
        return False
    if isinstance(value.get("system"), str | list):
        return True
    messages = (m for m in value["messages"] if isinstance(m, dict))
    return any(text(table(block).get("type")) in _BLOCKS for m in messages for block in items(m.get("content")))


def read_chat(source: Source) -> Iterator[Event]:
    """The events of conversations in chat form."""
    yield from source.each(looks_chat, lambda record: conversation(source, record, "openai_chat"))


def read_anthropic(source: Source) -> Iterator[Event]:
    """The events of conversations of the Messages API."""
    yield from source.each(looks_anthropic, lambda record: conversation(source, record, "anthropic_messages"))


def conversation(source: Source, record: Record, form: str) -> Iterator[Event]:
    """The events of one record."""
    row = record.value
    if not isinstance(row.get("messages"), list):
        source.skip(record.line, "no list of messages", ", ".join(list(row)[:8]))
        return
    who = _who(row, record, form)
    yield from messages(source, record, who, row["messages"], form)
    outcome = outcome_of(row)
    if outcome is not None:
        yield Told(f"{who.session}/{who.agent}/{record.digest}", replace(outcome, session=who.session))
    yield Ended(who.session)


def messages(source: Source, record: Record, who: Who, found: list[Any], form: str) -> Iterator[Event]:
    """The events of a list of messages of one lane. What is no message is skipped, and counted as its record's damage."""
    row = record.value
    at = moment(row.get("timestamp")) or moment(row.get("created_at")) or moment(row.get("created"))
    model = text(row.get("model"))
    calls = [_of_call(one) for one in items(row.get(PER_CALL))]
    replies = sum(table(m).get("role") in ("assistant", "ai") for m in found)
    if len(calls) != replies:
        calls = []
    n = 0
    for index, one in enumerate(found):
        made = _made(one, form)
        if made is None:
            source.tally.records += 1
            source.skip(record.line, "a message of no known kind", f"messages[{index}]")
            continue
        at = moment(table(one).get("timestamp")) or at
        for message in made:
            if message["role"] != "assistant":
                yield Said(who, message)
                continue
            usage, cost = calls[n] if calls else _own(one)
            n += 1
            yield Replied(
                who,
                message,
                f"{record.digest}:{n}",
                at,
                model=text(table(one).get("model")) or model,
                usage=usage,
                cost_usd=cost,
            )


def _made(one: Any, form: str) -> list[dict[str, Any]] | None:
    if form == "anthropic_messages":
        role = text(table(one).get("role"))
        return of_anthropic(role, table(one).get("content")) if role in ("user", "assistant", "system") else None
    made = chat_message(one)
    return None if made is None else [made]


def _own(one: Any) -> tuple[Usage | None, float | None]:
    """What a message says of its own call."""
    row = table(one)
    usage = row.get("usage")
    if isinstance(usage, dict):
        found = chat_usage(usage) or (anthropic_usage(usage) if "input_tokens" in usage else None)
        return found, number(row.get("cost_usd"))
    return None, number(row.get("cost_usd"))


def _of_call(one: Any) -> tuple[Usage | None, float | None]:
    """A call as a collection lists it: prompt, cached part of it, output, USD."""
    fields = [*items(one), None, None, None, None][:4]
    prompt, cached, output = (count(n) for n in fields[:3])
    if prompt is None or output is None:
        return None, number(fields[3])
    return Usage(max(prompt - (cached or 0), 0), output, cached), number(fields[3])


def _who(row: dict[str, Any], record: Record, form: str) -> Who:
    session = text(row.get("session_id"))
    task = task_of(row)
    if not session:
        model, trial = text(row.get("model")).rsplit("/", 1)[-1], text(row.get("trial"))
        session = "/".join(part for part in (task, model, trial) if part) or "conversation"
        session = f"{session}/{record.digest[:8]}"
    below = row.get("subagent") is True
    return Who(
        session,
        f"subagent-{record.digest[:8]}" if below else "",
        program_of(text(row.get("harness"))),
        "subagent" if below else "main",
        format="anthropic_messages" if form == "anthropic_messages" else "openai_chat",
    )


_PROGRAMS = ("claude-code", "codex", "opencode", "aider", "mini-swe-agent", "swe-agent", "tau-bench")


def program_of(harness: str) -> str:
    """The short name of a harness that a collection describes."""
    plain = harness.lower().replace(" ", "-")
    return next((name for name in _PROGRAMS if plain.startswith(name)), harness[:40])
