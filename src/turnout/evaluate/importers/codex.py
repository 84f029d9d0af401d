"""Codex: rollouts (`~/.codex/sessions/**/rollout-*.jsonl`, both generations) and the lines of `codex exec --json`.

A model call is the items it made in a row; the count of tokens that follows belongs to it.
"""

from collections.abc import Iterator
from typing import Any

from turnout.conversation import Usage
from turnout.evaluate.importers.blocks import flat
from turnout.evaluate.importers.events import Event, Replied, Said, Who, assistant, call, result, user
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, json_text, moment, table, text

_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_EXEC = frozenset(
    {
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
    }
)
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"})
_OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
_OLD = frozenset({"message", "reasoning"}) | _CALLS | _OUTPUTS


def looks(value: dict[str, Any]) -> bool:
    """Whether an object is a line of a rollout or of `codex exec --json`."""
    kind = text(value.get("type"))
    if kind in _KINDS:
        return isinstance(value.get("payload"), dict)
    if kind in _EXEC:
        return True
    if value.get("record_type") == "state":
        return True
    if "id" in value and "timestamp" in value and "instructions" in value:
        return True
    return kind in _OLD and ("call_id" in value or "role" in value or "summary" in value) and "message" not in value


class _Reading:
    """One rollout: the call that is being read, and its results that came before its count of tokens."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._who = Who(source.path.stem.removesuffix(".jsonl"), program="codex", format="openai_responses")
        self._model = ""
        self._texts: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._thought = False
        self._after: list[Said] = []
        self._began: float | None = None
        self._heard: float | None = None
        self._last: float | None = None
        self._total: Any = None
        self._key = ""
        self._n = 0

    def take(self, record: Record) -> Iterator[Event]:
        """The events that this line completes."""
        row = record.value
        kind = text(row.get("type"))
        at = moment(row.get("timestamp"))
        payload = table(row.get("payload"))
        if kind == "response_item":
            yield from self._item(payload, at, record)
        elif kind == "event_msg":
            yield from self._event(payload, record)
        elif kind == "turn_context":
            self._model = text(payload.get("model")) or self._model
            self._source.ignore("turn_context")
        elif kind == "session_meta" or (not kind and "instructions" in row):
            self._begin(payload or row)
            self._source.ignore("session_meta")
        elif kind == "compacted":
            yield from self.close()
            yield Said(
                self._who, user(f"Another language model started to solve this problem\n{text(payload.get('message'))}")
            )
        elif kind in _OLD:
            yield from self._item(row, at, record)
        elif kind in _EXEC:
            yield from self._exec(row, record)
        elif row.get("record_type") == "state":
            self._source.ignore("state")
        else:
            self._source.skip(record.line, "a line of no known kind", f"type {kind!r}")
        self._heard = at if at is not None else self._heard

    def close(self, usage: Usage | None = None) -> Iterator[Event]:
        """The call that is being read, if there is one, then its results."""
        if self._texts or self._calls:
            self._n += 1
            took = (self._last - self._began) if self._last is not None and self._began is not None else 0.0
            message = assistant("\n".join(self._texts), self._calls)
            yield Replied(
                self._who, message, self._key or str(self._n), self._began, max(took, 0.0), self._model, usage
            )
        yield from self._after
        self._texts, self._calls, self._after = [], [], []
        self._began = self._last = None
        self._thought = False
        self._key = ""

    def _begin(self, meta: dict[str, Any]) -> None:
        session = text(meta.get("id")) or text(meta.get("session_id")) or self._who.session
        parent = text(
            table(table(table(meta.get("source")).get("subagent")).get("thread_spawn")).get("parent_thread_id")
        )
        if parent:
            self._who = Who(parent, session, "codex", "subagent", parent, "openai_responses")
        else:
            self._who = Who(session, program="codex", format="openai_responses")

    def _item(self, item: dict[str, Any], at: float | None, record: Record) -> Iterator[Event]:
        kind = text(item.get("type"))
        if kind == "message" and item.get("role") == "assistant":
            yield from self._making(at, record, after_results=True)
            self._texts.append(flat(item.get("content")))
        elif kind == "message":
            yield from self.close()
            yield Said(self._who, {"role": _role(item), "content": flat(item.get("content"))})
        elif kind == "reasoning":
            yield from self._making(at, record, after_results=True)
            self._thought = True
        elif kind in _CALLS:
            yield from self._making(at, record, after_results=not self._open_calls())
            self._calls.append(_call(item))
        elif kind in _OUTPUTS:
            self._after.append(Said(self._who, _output(item)))
        elif kind:
            self._source.ignore(f"response_item {kind}")
        else:
            self._source.skip(record.line, "a line of no known kind", "an item without a type")

    def _open_calls(self) -> bool:
        """Whether a call of this reply has no result yet: then another call belongs to the same reply."""
        done = {one.message["tool_call_id"] for one in self._after}
        return any(one["id"] not in done for one in self._calls)

    def _making(self, at: float | None, record: Record, after_results: bool) -> Iterator[Event]:
        if after_results and self._after:
            yield from self.close()
        if self._began is None:
            self._began = self._heard if self._heard is not None else at
            self._key = f"{record.digest}:{self._n}"
        self._last = at if at is not None else self._last

    def _event(self, payload: dict[str, Any], record: Record) -> Iterator[Event]:
        kind = text(payload.get("type"))
        self._source.ignore(f"event {kind}")
        info = table(payload.get("info"))
        if kind == "token_count" and info and info.get("total_token_usage") != self._total:
            self._total = info.get("total_token_usage")
            yield from self.close(_usage(table(info.get("last_token_usage"))))
        elif kind == "turn_aborted":
            yield from self.close()

    def _exec(self, row: dict[str, Any], record: Record) -> Iterator[Event]:
        kind, item = row["type"], table(row.get("item"))
        if kind == "thread.started":
            self._begin({"id": row.get("thread_id")})
        if kind == "turn.completed":
            yield from self.close(_usage(table(row.get("usage"))) if self._n == 0 else None)
        if kind != "item.completed":
            self._source.ignore(str(kind))
            return
        made = _of_exec(item)
        if made is None:
            self._source.ignore(f"item {text(item.get('type'))}")
            return
        said, calls, results = made
        yield from self._making(None, record, after_results=True)
        self._texts += [said] if said else []
        self._calls += calls
        self._after += [Said(self._who, one) for one in results]


def _role(item: dict[str, Any]) -> str:
    role = text(item.get("role"))
    return role if role in ("system", "developer") else "user"


def _call(item: dict[str, Any]) -> dict[str, Any]:
    id = text(item.get("call_id")) or text(item.get("id"))
    match item.get("type"):
        case "local_shell_call":
            return call(id, "local_shell", json_text(table(item.get("action"))))
        case "web_search_call" | "tool_search_call" as kind:
            return call(id, str(kind).removesuffix("_call"), json_text(table(item.get("action"))))
    name, space = text(item.get("name")) or "?", text(item.get("namespace"))
    arguments = item.get("arguments") if "arguments" in item else item.get("input")
    return call(id, f"{space}__{name}" if space else name, json_text(arguments or ""))


def _output(item: dict[str, Any]) -> dict[str, Any]:
    output = item.get("output")
    failed: bool | None = None
    if isinstance(output, dict):
        failed = False if output.get("success") is True else True if output.get("success") is False else None
        output = output.get("content", output.get("body"))
    content = output if isinstance(output, str) else flat(output)
    return result(text(item.get("call_id")), content, is_error=failed)


def _usage(counted: dict[str, Any]) -> Usage | None:
    """Tokens of one call; the input includes what was cached."""
    prompt, output = count(counted.get("input_tokens")), count(counted.get("output_tokens"))
    if prompt is None or output is None:
        return None
    read, written = count(counted.get("cached_input_tokens")), count(counted.get("cache_write_input_tokens"))
    plain = max(prompt - (read or 0) - (written or 0), 0)
    return Usage(plain, output, read, written, None, count(counted.get("reasoning_output_tokens")))


def _of_exec(item: dict[str, Any]) -> tuple[str, list[dict[str, Any]], list[dict[str, Any]]] | None:
    """What was said, called and returned by an item of `codex exec --json`; None for items that are none of these."""
    id = text(item.get("id"))
    match item.get("type"):
        case "agent_message":
            return text(item.get("text")), [], []
        case "command_execution":
            code = item.get("exit_code")
            output = result(
                id,
                text(item.get("aggregated_output")),
                returncode=code if isinstance(code, int) and not isinstance(code, bool) else None,
            )
            return "", [call(id, "shell", json_text({"command": text(item.get("command"))}))], [output]
        case "file_change":
            changes = [table(one) for one in items(item.get("changes"))]
            lines = [
                f"*** {text(one.get('kind')).title() or 'Update'} File: {text(one.get('path'))}" for one in changes
            ]
            failed = item.get("status") == "failed"
            patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
            return "", [call(id, "apply_patch", patch)], [result(id, "failed" if failed else "Done!", is_error=failed)]
        case "mcp_tool_call":
            name = f"{text(item.get('server'))}__{text(item.get('tool'))}"
            error = table(item.get("error"))
            content = text(error.get("message")) or flat(table(item.get("result")).get("content"))
            arguments = json_text(item.get("arguments") or {})
            return "", [call(id, name, arguments)], [result(id, content, is_error=bool(error) or None)]
        case "web_search":
            arguments = json_text({"query": text(item.get("query"))})
            return "", [call(id, "web_search", arguments)], [result(id, "")]
    return None


def read(source: Source) -> Iterator[Event]:
    """The events of a rollout."""
    reading = _Reading(source)
    yield from source.each(looks, reading.take)
    yield from reading.close()
