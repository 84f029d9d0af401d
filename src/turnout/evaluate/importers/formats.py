"""The formats there are importers for, and which one a file has, told from what it holds."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from turnout.evaluate.importers import (
    aider,
    claude_code,
    codex,
    conversations,
    opencode,
    outcome_tables,
    trajectories,
)
from turnout.evaluate.importers.events import Event
from turnout.evaluate.importers.source import Looks, Source

Read: TypeAlias = Callable[[Source], Iterator[Event]]


class Importer(Struct, frozen=True):
    """How a format is read. `looks`: whether an object is a record of it, None for formats that are no JSON."""

    name: str
    about: str
    read: Read
    looks: Looks | None = None


IMPORTERS: tuple[Importer, ...] = (
    Importer("claude-code", "project logs, stream-json output", claude_code.read, claude_code.looks),
    Importer("codex", "rollouts, output of `codex exec --json`", codex.read, codex.looks),
    Importer("mini-swe-agent", ".traj.json", trajectories.read_mini, trajectories.looks_mini),
    Importer("swe-agent", ".traj", trajectories.read_swe, trajectories.looks_swe),
    Importer("tau-bench", "results of tau-bench and tau2-bench", trajectories.read_tau, trajectories.looks_tau),
    Importer("opencode", "exported sessions, output of `opencode run --format json`", opencode.read, opencode.looks),
    Importer("anthropic", "conversations of the Messages API", conversations.read_anthropic, conversations.looks_anthropic),
    Importer("openai-chat", "conversations in chat form, also with outcomes", conversations.read_chat, conversations.looks_chat),
    Importer("aider", ".aider.chat.history.md", aider.read),
    Importer("table", "task, model, success, cost: JSON Lines, CSV, Parquet", outcome_tables.read, outcome_tables.looks),
)  # fmt: skip
"""In the order they are tried: the more particular first."""

BY_NAME = {importer.name: importer for importer in IMPORTERS}


def detect(source: Source) -> Importer | None:
    """The importer of a file; None when no record in its beginning is known.

    The format most of the first records have: one damaged or foreign record does not decide.
    """
    if outcome_tables.layout(source) in ("csv", "tsv", "parquet"):
        return BY_NAME["table"]
    found: dict[str, int] = {}
    for value in source.sample():
        for importer in IMPORTERS:
            if importer.looks is not None and importer.looks(value):
                found[importer.name] = found.get(importer.name, 0) + 1
                break
    if found:
        return BY_NAME[max(found, key=lambda name: found[name])]
    head = source.head().decode(errors="replace").replace("\0", "")
    return BY_NAME["aider"] if any(aider.STARTED.match(line) for line in head.splitlines()) else None
