"""`turnout observe`: what each tool result of recorded conversations shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import options, output

if TYPE_CHECKING:
    from turnout.conversation import Conversation
    from turnout.signals import Observation


def observe(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Conversations, one JSON object a line; - is stdin.")
    ],
    table: Annotated[bool, typer.Option("--table", help="Print a table for people instead of JSON lines.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what each tool result of a recording says.

    One JSON line per tool result, in order: the observation that signals and routers rest on. FILE holds `messages` in
    OpenAI chat form; tool messages may carry `is_error` and `returncode`.
    """
    from turnout.evaluate.recordings import conversations

    rows = (
        (recorded.line, output.whole(seen))
        for recorded in conversations(file)
        for seen in observations(recorded.conversation)
    )
    if table and not as_json:
        _table(rows)
        return
    for line, seen in rows:
        output.emit({"conversation": line, **seen})


def observations(conversation: "Conversation") -> "Iterator[Observation]":
    """Every tool result of a conversation, in order, as it is seen when it is new: signals reach back to the last real user
    turn and hold a bounded number, so the conversation is looked at before each user turn and whenever that number is full."""
    import msgspec

    from turnout.conversation import ToolResult
    from turnout.signals import OBSERVED_AT_MOST, observe, real_user_text

    messages = tuple(conversation.messages)
    told = (-1, -1)
    fresh = 0
    for i in range(len(messages) + 1):
        results = sum(isinstance(part, ToolResult) for part in messages[i].parts) if i < len(messages) else 0
        ends = i == len(messages) or real_user_text(messages[i]) is not None
        if fresh and (ends or fresh + max(results, 1) > OBSERVED_AT_MOST):
            past = msgspec.structs.replace(conversation, messages=messages[:i], roles=tuple(conversation.roles[:i]))
            for seen in observe(past).observations:
                if (seen.message, seen.part) > told:
                    told = (seen.message, seen.part)
                    yield seen
            fresh = 0
        # A text may be a result too (agents without a tool role); counting it as one errs on the side of looking sooner.
        fresh += max(results, 1 if i < len(messages) and messages[i].role == "user" else 0)


def _table(rows: Any) -> None:
    table = output.table("at", "tool", "kind", "status", "by", "error", "tests", "evidence")
    for line, seen in rows:
        tests = {None: "", True: "passed", False: "failed"}[seen["tests_passed"]]
        error = "" if seen["error_class"] == "none" else f"{seen['error_class']} {seen['error_kind']}".rstrip()
        place = f"{line}:{seen['message']}"
        table.row(
            place, seen["tool"], seen["kind"], seen["status"], seen["evidence"], error, tests, seen["evidence_text"]
        )
    table.print()
