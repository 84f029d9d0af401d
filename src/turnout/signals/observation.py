"""One tool result, normalised over dialects and agents: what verifiably happened, and how we know."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from turnout.signals.course import Course

ToolKind: TypeAlias = Literal["read", "search", "write", "edit", "execute", "test", "plan", "other"]
TOOL_KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
Status: TypeAlias = Literal["ok", "failed", "unknown"]
Evidence: TypeAlias = Literal["flag", "exit_code", "structure", "text", "none"]
"""What the status rests on, strongest first: the format's own failure flag, an exit code, the harness's structured output,
anchored lines of text, nothing."""
ErrorClass: TypeAlias = Literal["none", "informational", "capability", "critical"]
"""none: the tool did its job. informational: negative, but nothing to correct (no match, absent probe). capability: the
agent's code, command or plan is wrong, or something must be diagnosed. critical: environment or provider broken."""


class Observation(Struct, frozen=True, omit_defaults=True, gc=False):
    """One tool result.

    `message`, `part`: its place in the conversation. `error_kind`: a short stable name (`traceback`, `timeout`, `oom` ...).
    `fingerprint`: the failure with volatile tokens normalised, "" unless there is failure evidence. `change`: whether the
    call changed the workspace: `verified` (it says it succeeded), `claimed` (it asked to), None (it did not, or failed).
    `change_size`: characters it put in and took out, None where the call does not tell. `takes_back`: earlier changes it undid:
    `rollback` with paths after it where it is of some only, `undo` (the last one, of `target`), `stash`, `unstash`, `review` (a
    review rejected the work), "" none. `waits`: the call slept or polled. `target`: the path or program it acted
    on. `call`: digest of tool and arguments. `digest`: of the output, durations left out, "" where it
    holds pictures or files. `size`: characters of output.
    `truncated`: the harness cut it. `duration_s`: where the harness states it. `evidence_text`: the line or marker the verdict
    rests on, cut to 200 characters. `retry_of`: how many results before this one the failed one stands that it tries again, 0
    when it is no retry. `agent`: whose result it is, "" for the main agent.
    """

    tool: str
    kind: ToolKind = "other"
    message: int = 0
    part: int = 0
    status: Status = "unknown"
    evidence: Evidence = "none"
    error_class: ErrorClass = "none"
    error_kind: str = ""
    fingerprint: str = ""
    evidence_text: str = ""
    exit_code: int | None = None
    change: Literal["verified", "claimed"] | None = None
    change_size: int | None = None
    takes_back: str = ""
    waits: bool = False
    target: str = ""
    tests_run: int | None = None
    tests_passed_count: int | None = None
    tests_failed: int | None = None
    tests_passed: bool | None = None
    digest: str = ""
    size: int = 0
    call: str = ""
    truncated: bool = False
    duration_s: float | None = None
    retry_of: int = 0
    agent: str = ""


class Signals(Struct, frozen=True, omit_defaults=True):
    """What the conversation shows at this turn, for the agent it belongs to.

    `observations`: the tool results since the last real user turn, oldest first, at most the newest `OBSERVED_AT_MOST`.
    `depth`: steps of the assistant since the last real user turn, the same number whatever the dialect: a turn is one step for
    each call that was answered, at least one. `user_turn`: the newest unit is a real user text rather than a tool result.
    `compacted`: the history was replaced by a summary since the last real user turn. `results`: tool results in the whole
    conversation.
    `course`: how the task went so far, None when only the observations are known. `said_at`: the message of the last real user
    turn; `complaint`: it says that what was done is still wrong; `reads_only`: it asks to look and not to change anything, or
    the agent has no tool that could. `compacted_at`: the summary's message, `since_compaction`: steps since.
    """

    observations: tuple[Observation, ...] = ()
    depth: int = 0
    user_turn: bool = False
    compacted: bool = False
    results: int = 0
    course: Course | None = None
    said_at: int | None = None
    complaint: bool = False
    compacted_at: int | None = None
    since_compaction: int | None = None
    reads_only: bool = False


OBSERVED_AT_MOST = 64

DEEP = 8
"""Assistant turns since the last real user turn from which looking around without any change counts."""
